//! `stockade init`, profiles by name.

use std::fs;
use std::os::unix::fs::symlink;

use crate::context::{Context, run};
use crate::hint_list::Hints;
use crate::hints::{pasted, quoted};

const LOCK: &str = r#"{"a": {"resolved": "https://packages.example.org/a.tgz"}}"#;

#[test]
fn a_starter_is_valid_and_narrows() {
    let context = Context::new();
    context.file("package.json", "{}");
    context.file("package-lock.json", LOCK);
    context.file(".env", "SECRET=1\n");
    let cat = ["run", "-q", "cat", ".env"];
    assert_eq!(context.stockade(cat).ends_with(0).stdout, "SECRET=1\n");

    let ran = context.stockade(["init", "--profile", "web"]).ends_with(0);
    let next = "next: stockade run --profile web npm test";
    assert!(ran.stdout.contains(next), "{ran:#?}");
    context
        .stockade(["policy", "check", "stockade.toml"])
        .ends_with(0);
    assert_eq!(context.stockade(cat).ends_with(1).stdout, "");

    let listed = context.stockade(["policy", "list"]).ends_with(0);
    assert!(listed.stdout.contains("minimal") && listed.stdout.contains("web.toml"));
    let file = context.home().join(".config/stockade/profiles/web.toml");
    // Nothing is granted until the user takes the marks away.
    let show = ["policy", "show", "--json", "--profile", "web"];
    let shown = context.stockade(show).ends_with(0).json();
    assert_eq!(
        shown["profile"]["network"]["mode"]["value"], "off",
        "{shown}"
    );
    let text = fs::read_to_string(&file).unwrap();
    let begin = text.find("# allow").unwrap();
    let length = text[begin..].find("\n\n").unwrap();
    let trusted = text[begin..begin + length].replace("# ", "");
    let text = format!("{}{}{}", &text[..begin], trusted, &text[begin + length..]);
    fs::write(&file, text).unwrap();
    let shown = context.stockade(show).ends_with(0);
    assert!(shown.stdout.contains("packages.example.org"), "{shown:#?}");
}

#[test]
fn a_starter_never_replaces_a_file_or_follows_a_link() {
    let hints = Hints::of("init::a_starter_never_replaces_a_file_or_follows_a_link");
    let context = Context::new();
    let outside = context.home().join("outside");
    symlink(&outside, context.project().join("stockade.toml")).unwrap();
    // What looks like a lock file may be a link to a file that the user can read.
    fs::write(
        context.home().join("private"),
        "https://private.example.org/",
    )
    .unwrap();
    symlink(
        context.home().join("private"),
        context.project().join("Cargo.lock"),
    )
    .unwrap();
    let refused = context.stockade(["init"]).ends_with(1);
    assert!(!outside.exists());
    fs::remove_file(context.project().join("stockade.toml")).unwrap();
    let command = quoted(&hints.in_refusal(&refused)).join(" ");
    let ran = pasted(&context, &command).ends_with(0);
    assert!(ran.stdout.contains("[filesystem]"), "{ran:#?}");
    assert!(!context.project().join("stockade.toml").exists());
    let found = context
        .stockade(["init", "--dry-run", "--json"])
        .ends_with(0);
    assert_eq!(found.json()["hosts"], serde_json::json!([]));

    let refused = context
        .stockade(["init", "--profile", "minimal"])
        .ends_with(2);
    assert_eq!(hints.in_refusal(&refused), "choose another name");
    context
        .stockade(["init", "--profile", "other"])
        .ends_with(0);
    let again = context
        .stockade(["init", "--profile", "third"])
        .ends_with(1);
    assert!(again.stderr.contains("exists"), "{again:#?}");
    assert!(
        !context
            .home()
            .join(".config/stockade/profiles/third.toml")
            .exists()
    );
}

#[test]
fn a_profile_is_taken_by_its_name() {
    let hints = Hints::of("init::a_profile_is_taken_by_its_name");
    let context = Context::new();
    let write = |profile: &str| {
        let args = ["run", "-q", "--profile", profile, "touch", "made"];
        run(context.command(args))
    };
    write("workspace-write").ends_with(0);
    fs::remove_file(context.project().join("made")).unwrap();
    assert_ne!(write("read-only").code, 0);
    assert!(!context.project().join("made").exists());
    let refused = write("unknown").ends_with(125);
    let command = quoted(&hints.in_refusal(&refused)).join(" ");
    pasted(&context, &command).ends_with(0);
    write("../config").ends_with(2);
    // The profile of a run is not the run's to change.
    let directory = context.home().join(".config/stockade/profiles");
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join("own.toml");
    fs::write(
        &file,
        "version = 1\n[filesystem]\nwrite = [\"~/.config\"]\n",
    )
    .unwrap();
    let attack = format!("echo >> {}", file.display());
    let args = ["run", "-q", "--profile", "own", "sh", "-c", &attack];
    assert_ne!(context.stockade(args).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
}
