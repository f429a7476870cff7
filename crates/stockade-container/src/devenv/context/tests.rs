use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn bases_are_images_and_not_stages() {
    let text = "FROM --platform=x debian:12 AS build\nRUN x\nfrom build\nFROM scratch\nCOPY --from=build / /\n";
    assert_eq!(bases(text), ["debian:12", "scratch"]);
}

#[test]
fn the_context_is_what_dockerignore_leaves_in() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "a",
        "b/a",
        "target/x",
        "keep/secret",
        "keep/other",
        "n/node_modules/y",
    ] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    let rules = "# no\n/a\ntarget\nkeep/*\n!keep/other\n**/node_modules\n";
    fs::write(dir.path().join(".dockerignore"), rules).unwrap();
    let found = context(dir.path()).unwrap();
    let names: Vec<_> = found.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(
        names,
        [".dockerignore", "b", "b/a", "keep", "keep/other", "n"]
    );
}

#[test]
fn the_digest_sees_content_modes_and_links_and_not_what_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let digest = || {
        let mut hasher = blake3::Hasher::new();
        for file in context(dir.path()).unwrap() {
            digest_file(dir.path(), &file, &mut hasher).unwrap();
        }
        hasher.finalize().to_hex().to_string()
    };
    fs::write(dir.path().join(".dockerignore"), "ignored\n").unwrap();
    fs::write(dir.path().join("file"), "one").unwrap();
    let first = digest();
    fs::write(dir.path().join("ignored"), "x").unwrap();
    assert_eq!(digest(), first);
    fs::write(dir.path().join("file"), "two").unwrap();
    let second = digest();
    assert_ne!(second, first);
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(dir.path().join("file"), mode).unwrap();
    let third = digest();
    assert_ne!(third, second);
    std::os::unix::fs::symlink("file", dir.path().join("link")).unwrap();
    assert_ne!(digest(), third);
}

#[test]
fn the_archive_has_the_dockerfile_and_no_pipe() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "one").unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from(0o600),
        0,
    )
    .unwrap();
    let bytes = archive(dir.path(), "FROM scratch\n").unwrap();
    let mut read = tar::Archive::new(bytes.as_slice());
    let names: Vec<_> = read
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    assert_eq!(names, ["file", DOCKERFILE]);
}
