//! What may not reach the host through an overlay, a snapshot or an import, and what is kept of the
//! host's own edits. Every attack has a control that succeeds without the defence.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::context::{Context, Ran, has};
use crate::ws::{context, has_overlay, sh};

fn store(context: &Context) -> PathBuf {
    context.home().join("store")
}

/// The layer of the only root of the only overlay.
fn upper(context: &Context) -> PathBuf {
    let workspaces = store(context).join("workspaces");
    let mut found = Vec::new();
    for workspace in fs::read_dir(workspaces).unwrap().flatten() {
        let overlay = workspace.path().join("overlay");
        for layer in fs::read_dir(overlay).into_iter().flatten().flatten() {
            found.extend(Some(layer.path().join("upper")).filter(|upper| upper.is_dir()));
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Puts a file into the layer, as a run could if nothing mediated its names.
fn plant(context: &Context, path: &str, text: &str) {
    let path = upper(context).join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn ws(context: &Context, args: &[&str]) -> Ran {
    context.stockade(["ws"].iter().chain(args))
}

/// Executes the command that a message names after `apply with: `.
fn follow_hint(context: &Context, ran: &Ran) -> Ran {
    let line = ran
        .stderr
        .lines()
        .find_map(|line| line.split_once("apply with: "));
    let (_, line) = line.unwrap_or_else(|| panic!("no hint: {ran:#?}"));
    let line = line.replacen("stockade", crate::context::STOCKADE, 1);
    context.other(&["sh", "-c", &line])
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[test]
fn a_link_in_place_of_a_root_is_not_followed() {
    if !has_overlay("a_link_in_place_of_a_root_is_not_followed") {
        return;
    }
    let context = context();
    let victim = context.home().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("precious"), "precious").unwrap();
    context.file("sub/a", "one");
    let sub = context.project().join("sub");
    ws(&context, &["create", "site", "--dir", "sub"]).ends_with(0);
    let id = ws(&context, &["snapshot", "site"]).ends_with(0).stdout;
    let script = "echo planted > hook; rm -f precious";
    let over = [
        "run",
        "-q",
        "-C",
        "sub",
        "--overlay=site",
        "--",
        "sh",
        "-c",
        script,
    ];
    context.stockade(over).ends_with(0);

    // What a later run in the project can do.
    fs::rename(&sub, context.project().join("aside")).unwrap();
    symlink(&victim, &sub).unwrap();
    for args in [
        &["commit", "site"][..],
        &["restore", "site", id.trim()],
        &["run", "site", "--", "touch", "made"],
        &["snapshot", "site"],
    ] {
        let ran = ws(&context, args);
        assert_ne!(ran.code, 0, "{args:?}: {ran:#?}");
        assert!(ran.stderr.contains("symbolic link"), "{args:?}: {ran:#?}");
    }
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 1);
    assert_eq!(read(victim.join("precious")).unwrap(), "precious");

    // The same with another directory in its place.
    fs::remove_file(&sub).unwrap();
    fs::rename(&victim, &sub).unwrap();
    for args in [&["commit", "site"][..], &["restore", "site", id.trim()]] {
        let ran = ws(&context, args).ends_with(1);
        assert!(ran.stderr.contains("is not the directory"), "{ran:#?}");
    }
    assert_eq!(read(sub.join("precious")).unwrap(), "precious");

    // Control: the directory itself takes both.
    fs::rename(&sub, &victim).unwrap();
    fs::rename(context.project().join("aside"), &sub).unwrap();
    ws(&context, &["commit", "site"]).ends_with(0);
    assert_eq!(read(sub.join("hook")).unwrap(), "planted\n");
    ws(&context, &["restore", "site", id.trim()]).ends_with(0);
    assert!(!sub.join("hook").exists());

    // A person who replaced it says so.
    fs::remove_dir_all(&sub).unwrap();
    fs::create_dir(&sub).unwrap();
    ws(&context, &["restore", "site", id.trim()]).ends_with(1);
    ws(&context, &["rebind", "site"]).ends_with(0);
    ws(&context, &["restore", "site", id.trim()]).ends_with(0);
    assert_eq!(read(sub.join("a")).unwrap(), "one");
}

#[test]
fn the_store_is_closed_to_every_run() {
    for variable in ["STOCKADE_HOME", "XDG_DATA_HOME", "HOME"] {
        let mut context = Context::new();
        let place = context.home().join("place");
        let store = match variable {
            "STOCKADE_HOME" => place.clone(),
            "XDG_DATA_HOME" => place.join("stockade"),
            _ => context.home().join(".local/share/stockade"),
        };
        if variable != "HOME" {
            context.set(variable, &place);
        }
        ws(&context, &["create", "site", "--dir", "."]).ends_with(0);
        let file = store.join("workspaces/site/state.json");
        let script = "cat \"$0\"; echo x >> \"$0\"; echo x > \"$(dirname \"$0\")/stray\"";
        // Control: the same commands reach it bare.
        let bare = context.other(&["sh", "-c", script, file.to_str().unwrap()]);
        assert!(bare.stdout.contains("\"site\""), "{bare:#?}");
        fs::remove_file(file.with_file_name("stray")).unwrap();
        let before = read(&file).unwrap();
        let home = context.home();
        let home = home.to_str().unwrap();
        let (in_store, all) = (file.to_str().unwrap(), store.to_str().unwrap());
        for grants in [&[][..], &["-w", home], &["-r", all], &["-w", in_store]] {
            let mut line = vec!["run", "-q"];
            line.extend(grants);
            line.extend(["--", "sh", "-c", script, file.to_str().unwrap()]);
            let ran = context.stockade(line);
            assert!(
                !ran.stdout.contains("site"),
                "{variable} {grants:?}: {ran:#?}"
            );
            assert_eq!(read(&file).unwrap(), before, "{variable} {grants:?}");
            assert!(
                !file.with_file_name("stray").exists(),
                "{variable} {grants:?}"
            );
        }
    }
}

#[test]
fn an_index_that_names_another_root_is_refused() {
    if !has_overlay("an_index_that_names_another_root_is_refused") {
        return;
    }
    let context = context();
    sh(&context, &["--overlay"], "echo x > made").ends_with(0);
    let index = upper(&context).join("../../index.json");
    let text = read(&index).unwrap();
    let elsewhere = context.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let project = context.project();
    let planted = text.replace(project.to_str().unwrap(), elsewhere.to_str().unwrap());
    fs::write(&index, planted).unwrap();
    let ran = ws(&context, &["commit"]).ends_with(1);
    assert!(ran.stderr.contains("damaged"), "{ran:#?}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    fs::write(&index, text).unwrap();
    ws(&context, &["commit"]).ends_with(0);
    assert!(project.join("made").exists());
}

#[test]
fn protected_names_are_kept_back_and_the_hint_applies_them() {
    if !has_overlay("protected_names_are_kept_back_and_the_hint_applies_them") {
        return;
    }
    let context = context();
    context.other(&["git", "init", "-q", "."]).ends_with(0);
    fs::create_dir(context.project().join("bare")).unwrap();
    sh(
        &context,
        &["--overlay"],
        "echo x > plain; mkdir -p new/deep; echo x > new/deep/f",
    )
    .ends_with(0);
    let protected = [
        ".git/hooks/pre-commit",
        ".vscode/tasks.json",
        ".bashrc",
        "new/.git/hooks/post-checkout",
        "new/.git/config",
        "new/worktree/.git",
        "mirror/hooks/post-receive",
        "set-id",
    ];
    for path in &protected[..4] {
        plant(&context, path, "#!/bin/sh\necho planted\n");
    }
    plant(
        &context,
        "new/.git/config",
        "[core]\n\tfsmonitor = ./evil\n",
    );
    plant(&context, "new/worktree/.git", "gitdir: ../deep\n");
    plant(&context, "mirror/hooks/post-receive", "#!/bin/sh\n");
    plant(&context, "mirror/hooks/update.sample", "#!/bin/sh\n");
    plant(&context, "mirror/HEAD", "ref: refs/heads/main\n");
    plant(&context, "mirror/objects/x", "");
    plant(&context, "mirror/refs/x", "");
    plant(&context, "set-id", "#!/bin/sh\n");
    let set_id = fs::Permissions::from_mode(0o4755);
    fs::set_permissions(upper(&context).join("set-id"), set_id).unwrap();

    let shown = ws(&context, &["diff", "--summary"]).ends_with(0).stdout;
    assert_eq!(
        shown.matches("(protected)").count(),
        protected.len() + 1,
        "{shown}"
    );
    let ran = ws(&context, &["commit"]).ends_with(0);
    for path in protected {
        assert!(!context.project().join(path).exists(), "{path}: {ran:#?}");
        let told = path.replace("/tasks.json", "");
        assert!(
            ran.stderr.contains(&format!("`{told}`")),
            "{path}: {ran:#?}"
        );
    }
    for path in [
        "plain",
        "new/deep/f",
        "new/.git/hooks",
        "mirror/hooks/update.sample",
        "mirror/HEAD",
    ] {
        assert!(context.project().join(path).exists(), "{path}: {ran:#?}");
    }
    // Nothing more is left of the overlay than what was kept back.
    let left = ws(&context, &["diff", "--summary"]).ends_with(0).stdout;
    assert_eq!(left.lines().count(), protected.len() + 1, "{left}");

    follow_hint(&context, &ran).ends_with(0);
    for path in protected {
        assert!(context.project().join(path).exists(), "{path}");
    }
    let left = ws(&context, &["diff", "--summary"]).ends_with(0).stdout;
    assert_eq!(left, "");
}

#[test]
fn a_clone_is_applied_whole() {
    let test = "a_clone_is_applied_whole";
    if !has_overlay(test) || !has(test, "git", &["git", "--version"]) {
        return;
    }
    let context = context();
    let setup = "git init -q origin; cd origin; echo one > f; git add -A; \
                 git -c user.email=a@b -c user.name=n commit -qm one";
    context.other(&["sh", "-c", setup]).ends_with(0);
    let script = "git clone -q --no-hardlinks origin clone && cd clone && echo two > f && \
                  git -c user.email=a@b -c user.name=n commit -qam two";
    let ran = context.stockade(["run", "--overlay", "--commit", "--", "sh", "-c", script]);
    let ran = ran.ends_with(0);
    assert!(!ran.stderr.contains("kept back"), "{ran:#?}");
    let log = context
        .other(&["git", "-C", "clone", "log", "--format=%s"])
        .ends_with(0);
    assert_eq!(log.stdout, "two\none\n");
    let status = context
        .other(&["git", "-C", "clone", "status", "--short"])
        .ends_with(0);
    assert_eq!(status.stdout, "");
    // Nothing of overlayfs is left on the files, and nothing in the store.
    assert!(
        !context
            .home()
            .join("store/workspaces")
            .read_dir()
            .unwrap()
            .flatten()
            .any(|workspace| workspace.path().join("overlay").exists())
    );
}

#[test]
fn a_run_applies_what_it_changed_only_if_it_may() {
    if !has_overlay("a_run_applies_what_it_changed_only_if_it_may") {
        return;
    }
    let context = context();
    let run = |flags: &[&str], script: &str| {
        let mut line = vec!["run"];
        line.extend(flags);
        line.extend(["--", "sh", "-c", script]);
        context.stockade(line)
    };
    let exists = |name: &str| context.project().join(name).exists();
    run(&["--commit"], "true").ends_with(2);
    let failed = run(&["--overlay", "--commit"], "echo x > failed; exit 3").ends_with(3);
    assert!(failed.stderr.contains("nothing was applied"), "{failed:#?}");
    assert!(!exists("failed"));
    run(&["--overlay", "--commit=always"], "echo x > always; exit 3").ends_with(3);
    assert!(exists("failed") && exists("always"));
    run(&["--overlay", "--commit=on-success"], "echo x > success").ends_with(0);
    assert!(exists("success"));

    // The host edits a file while the run is on: nothing is applied, and the edit stays.
    context.file("both", "before");
    let mut child = context
        .command(["run", "--overlay", "--commit", "--", "sh", "-c"])
        .arg("echo overlay > both; echo x > other; echo begun; read line")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut begun = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut begun).unwrap();
    fs::write(context.project().join("both"), "host").unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"go\n").unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("both") && said.contains("--theirs"), "{said}");
    assert_eq!(read(context.project().join("both")).unwrap(), "host");
    assert!(!exists("other"));
}

#[test]
fn edits_of_the_host_are_never_lost() {
    if !has_overlay("edits_of_the_host_are_never_lost") {
        return;
    }
    let context = context();
    let project = context.project();
    let mode = |name: &str, mode: u32| {
        fs::set_permissions(project.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    let conflict = |script: &str, edit: &dyn Fn(), named: &str| {
        for (name, text) in [
            ("gone/x", "x"),
            ("swap/x", "x"),
            ("dir/x", "x"),
            ("file", "x"),
        ] {
            context.file(name, text);
        }
        mode("dir", 0o755);
        mode("file", 0o644);
        sh(&context, &["--overlay"], script).ends_with(0);
        edit();
        let ran = ws(&context, &["commit"]);
        assert_eq!(ran.code, 1, "{script}: {ran:#?}");
        assert!(
            ran.stderr.contains(&format!("{named}`")),
            "{script}: {ran:#?}"
        );
        ws(&context, &["commit", "--theirs"]).ends_with(0);
    };
    conflict(
        "rm -r gone",
        &|| drop(context.file("gone/x", "edited")),
        "gone/x",
    );
    assert_eq!(read(project.join("gone/x")).unwrap(), "edited");
    conflict(
        "rm -r gone",
        &|| drop(context.file("gone/new", "new")),
        "gone/new",
    );
    assert_eq!(read(project.join("gone/new")).unwrap(), "new");
    let swap = "rm -r swap; mkdir swap; echo y > swap/y";
    conflict(swap, &|| drop(context.file("swap/x", "edited")), "swap/x");
    assert_eq!(read(project.join("swap/x")).unwrap(), "edited");
    conflict(
        "rm -r swap; echo y > swap",
        &|| drop(context.file("swap/z", "z")),
        "swap/z",
    );
    assert_eq!(read(project.join("swap/z")).unwrap(), "z");
    conflict("chmod 600 file", &|| mode("file", 0o700), "file");
    assert_eq!(
        fs::metadata(project.join("file")).unwrap().mode() & 0o777,
        0o700
    );
    conflict("echo more >> file", &|| mode("file", 0o640), "file");
    assert_eq!(
        fs::metadata(project.join("file")).unwrap().mode() & 0o777,
        0o640
    );
    conflict("chmod 700 dir", &|| mode("dir", 0o711), "dir");
    assert_eq!(
        fs::metadata(project.join("dir")).unwrap().mode() & 0o777,
        0o711
    );

    // A mode that only the host changed stays, whatever the run did in the directory.
    mode("dir", 0o755);
    sh(&context, &["--overlay"], "echo y > dir/y").ends_with(0);
    mode("dir", 0o700);
    ws(&context, &["commit"]).ends_with(0);
    assert!(project.join("dir/y").exists());
    assert_eq!(
        fs::metadata(project.join("dir")).unwrap().mode() & 0o777,
        0o700
    );
}

#[test]
fn a_restore_and_an_import_write_no_protected_name_unasked() {
    let context = context();
    context.file(".git/hooks/pre-commit", "#!/bin/sh\n");
    context.file(".bashrc", "echo planted\n");
    context.file("plain", "x");
    context.file(".git/logs/refs/heads/main", "x");
    let link = Path::new(".git/logs/HEAD");
    // One that leads out is refused by an import as a whole.
    std::os::unix::fs::symlink("../../plain", context.project().join(link)).unwrap();
    ws(&context, &["create", "site", "--dir", "."]).ends_with(0);
    let id = ws(&context, &["snapshot", "site"]).ends_with(0).stdout;
    ws(&context, &["export", "site", "../out.tar.zst"]).ends_with(0);
    for name in [
        ".git/hooks/pre-commit",
        ".git/logs/HEAD",
        ".bashrc",
        "plain",
    ] {
        fs::remove_file(context.project().join(name)).unwrap();
    }
    let check = |top: &Path, ran: &Ran| {
        assert!(top.join("plain").exists(), "{ran:#?}");
        assert!(!top.join(".git/hooks/pre-commit").exists(), "{ran:#?}");
        assert!(!top.join(".bashrc").exists(), "{ran:#?}");
        assert!(!top.join(link).is_symlink(), "{ran:#?}");
        assert!(ran.stderr.contains("kept back: `.bashrc`"), "{ran:#?}");
        follow_hint(&context, ran).ends_with(0);
        assert!(top.join(link).is_symlink());
        assert!(top.join(".git/hooks/pre-commit").exists());
        assert!(top.join(".bashrc").exists());
    };
    let ran = ws(&context, &["restore", "site", id.trim()]).ends_with(0);
    check(&context.project(), &ran);
    let copy = context.home().join("copy");
    let import = [
        "import",
        "../out.tar.zst",
        "copy",
        "--dir",
        copy.to_str().unwrap(),
    ];
    let ran = ws(&context, &import).ends_with(0);
    check(&copy, &ran);
}

#[test]
fn a_restore_waits_for_nobody_who_writes() {
    let context = context();
    context.file("a", "one");
    ws(&context, &["create", "site", "--dir", "."]).ends_with(0);
    let id = ws(&context, &["snapshot", "site"]).ends_with(0).stdout;
    context.file("a", "two");
    ws(
        &context,
        &["run", "-d", "site", "--", "sh", "-c", "read line"],
    )
    .ends_with(0);
    let ran = ws(&context, &["restore", "site", id.trim()]).ends_with(1);
    assert!(ran.stderr.contains("--pause"), "{ran:#?}");
    assert_eq!(read(context.project().join("a")).unwrap(), "two");
    ws(&context, &["restore", "--pause", "site", id.trim()]).ends_with(0);
    assert_eq!(read(context.project().join("a")).unwrap(), "one");
    ws(&context, &["rm", "--force", "site"]).ends_with(0);
}
