//! Files: what is read, and what is said about what can't be.

use super::*;

#[test]
fn a_full_file_is_read() {
    let profile = user(
        r#"
        extends = "minimal"
        level = "enhanced"
        backend = "native"
        require = ["fs-read", "network"]
        best_effort = true
        git_config = true
        devices = ["/dev/fuse"]
        danger_nested_namespaces = true

        [filesystem]
        read = ["~/.cargo", "/srv/*.txt"]
        write = ["/var/cache/x"]
        deny = ["secrets"]
        deny_read = ["**/.env"]
        deny_write = ["Cargo.lock"]

        [network]
        allow = ["github.com", "*.example.org:8443"]
        block = ["evil.example.org"]
        resolve = ["db.test=10.0.0.1"]
        unix = ["/run/a.sock"]
        expose = [3000]
        host_port = [5432]

        [environment]
        set = { A = "b" }
        keep = ["EDITOR"]

        [limits]
        mem = "512M"
        pids = 64
        cpu = "60s"
        fsize = "1G"
        tmp = "64M"
        output = "1M"
        files = 1024
        timeout = "30s"

        [seccomp]
        profile = "permissive"
        block = ["kcmp"]
        "#,
    )
    .unwrap();
    insta::assert_snapshot!(profile.show().to_string());
}

#[test]
fn the_profile_of_nothing() {
    let profile = with_flags(Flags::default()).unwrap();
    insta::assert_snapshot!(profile.show().to_string());
}

#[test]
fn one_word_stands_for_a_table() {
    let profile = user("network = \"open\"\nseccomp = \"logging\"").unwrap();
    assert_eq!(profile.network.mode.value, NetworkMode::Open);
    assert_eq!(profile.seccomp.mode.value, SeccompMode::Logging);
}

#[test]
fn relative_paths_are_about_the_workspace() {
    let profile = user("[filesystem]\ndeny = [\"a/../b\"]").unwrap();
    assert!(!readable(&profile, "/home/u/ws/b/x"));
    assert!(readable(&profile, "/home/u/ws/a"));
}

/// Every mistake, and the message that it gets.
#[test]
fn mistakes_are_named_with_line_and_column() {
    let cases = [
        "[filesystem]\nwirte = [\"src\"]",
        "[filesytem]\nread = []",
        "[limits]\nallow = []",
        "colour = 1",
        "level = \"hard\"",
        "level = 3",
        "[filesystem]\nread = \"src\"",
        "[filesystem]\nread = [\n  \"ok\",\n  \"a\\u0000b\",\n]",
        "[filesystem]\ndeny = [\"[a\"]",
        "[filesystem]\nread = [\"~root/x\"]",
        "filesystem = 1",
        "[network]\nallow = [\"https://github.com\"]",
        "[network]\nallow = [\"*\"]",
        "[network]\nexpose = [0]",
        "[network]\nexpose = [70000]",
        "[network]\nexpose = [\"80\"]",
        "[network]\nresolve = [\"a.test\"]",
        "[network]\nmode = \"off\"\nallow = [\"a.test\"]",
        "[environment]\nset = [\"A=b\"]",
        "[environment]\nset = { \"A=\" = \"b\" }",
        "[limits]\nmem = \"12X\"",
        "[limits]\nmem = 0",
        "[limits]\npids = -1",
        "[limits]\ncpu = 1.5",
        "[seccomp]\nblock = [\"Not A Call\"]",
        "require = [\"fs\"]",
        "git_config = \"yes\"",
        "extends = \"minmal\"",
        "extends = \"./nowhere.toml\"",
        "read = 1\nread = 2",
        "a = [1",
        "x = \"\u{1b}[2J",
    ];
    let messages: Vec<String> = cases
        .iter()
        .map(|text| message(&user(text).unwrap_err()))
        .collect();
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn the_version_comes_first() {
    let load = |text: &str| {
        let files = Files::default().with("/home/u/.config/stockade/config.toml", text);
        message(&Profile::resolve(&sources(), &files).unwrap_err())
    };
    insta::assert_snapshot!(
        [
            load(""),
            load("future = 1\nversion = 2\n"),
            load("version = \"1\"")
        ]
        .join("\n\n")
    );
}

#[test]
fn bytes_that_are_no_text() {
    let files = Files::default().with(
        "/home/u/.config/stockade/config.toml",
        b"version = 1\nx\xff",
    );
    let error = Profile::resolve(&sources(), &files).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/home/u/.config/stockade/config.toml:2:2: the file is not UTF-8"
    );
}

#[test]
fn a_file_of_more_than_a_mebibyte_is_not_read() {
    let huge = vec![b'#'; MAX_FILE_BYTES + 1];
    let files = Files::default().with("/home/u/.config/stockade/config.toml", huge);
    let error = Profile::resolve(&sources(), &files).unwrap_err();
    assert!(matches!(
        error,
        ProfileError::Load(LoadError::TooLarge { .. })
    ));
    let large = format!("version = 1\n#{}", "x".repeat(MAX_FILE_BYTES - 20));
    let files = Files::default().with("/home/u/.config/stockade/config.toml", large);
    assert!(Profile::resolve(&sources(), &files).is_ok());
}

#[test]
fn deep_nesting_is_refused_not_followed() {
    let text = format!("x = {}", "[".repeat(200_000));
    assert!(matches!(
        user(&text),
        Err(ProfileError::Load(LoadError::Syntax(_)))
    ));
}
