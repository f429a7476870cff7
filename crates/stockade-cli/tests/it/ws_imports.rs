//! Attacks through snapshots and imports: second names of files, links on the way, neighbours.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::context::{Context, Ran};
use crate::hint_list::Hints;

const HOOK: &str = ".git/hooks/pre-commit";

fn context() -> Context {
    let mut context = Context::new();
    let store = context.home().join("store");
    context.set("STOCKADE_HOME", store);
    context
}

fn ws(context: &Context, words: &[&str]) -> Ran {
    context.stockade([&["ws"], words].concat())
}

/// A repository in which each of these names is a second one of a hook; the id of its snapshot.
fn linked(context: &Context, names: &[&str]) -> String {
    context.file(".git/HEAD", "ref: refs/heads/main\n");
    fs::create_dir_all(context.project().join(".git/objects")).unwrap();
    fs::create_dir_all(context.project().join(".git/refs")).unwrap();
    let hook = context.file(HOOK, "#!/bin/sh\n");
    for name in names {
        fs::hard_link(&hook, context.project().join(name)).unwrap();
    }
    ws(context, &["create", "site", "--dir", "."]).ends_with(0);
    let id = ws(context, &["snapshot", "site"]).ends_with(0).stdout;
    ws(context, &["export", "site", "../out.tar.zst"]).ends_with(0);
    id.trim().to_owned()
}

/// Sorted before and after the hook's own name: either may be the one that has the content.
const NAMES: [&str; 3] = ["!first", "second", "third"];

#[test]
fn a_second_name_of_a_hook_is_kept_back_from_an_import() {
    for names in [&NAMES[..1], &NAMES[1..], &NAMES] {
        let context = context();
        linked(&context, names);
        let import = |name: &str, flags: &[&str]| {
            let dir = context.home().join(name);
            let words = ["import", "../out.tar.zst", name, "--dir"];
            let words = [&words[..], &[dir.to_str().unwrap()], flags].concat();
            (ws(&context, &words).ends_with(0), dir)
        };
        let (_, control) = import("control", &["--allow-protected"]);
        assert!(control.join(HOOK).exists());
        let (ran, dir) = import("copy", &[]);
        assert!(!dir.join(HOOK).exists(), "{ran:#?}");
        assert!(ran.stderr.contains(HOOK), "{ran:#?}");
        let inodes = names
            .iter()
            .map(|name| fs::metadata(dir.join(name)).unwrap().ino());
        let mut inodes: Vec<u64> = inodes.collect();
        inodes.dedup();
        assert_eq!(inodes.len(), 1, "they are one file");
    }
}

#[test]
fn a_second_name_of_a_hook_is_kept_back_from_a_restore() {
    let context = context();
    let id = linked(&context, &NAMES[..1]);
    let (hook, first) = (
        context.project().join(HOOK),
        context.project().join("!first"),
    );
    let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let restore = |flags: &[&str]| {
        let words = [&["restore"], flags, &["site", &id]].concat();
        ws(&context, &words).ends_with(0)
    };
    // Both names are there with another content, so that neither is new.
    fs::write(&hook, "old").unwrap();
    let ran = restore(&[]);
    assert_eq!(text(&hook), "old", "{ran:#?}");
    assert_eq!(text(&first), "#!/bin/sh\n");
    restore(&["--allow-protected"]);
    assert_eq!(text(&hook), "#!/bin/sh\n", "the control");
    // One name is gone.
    fs::remove_file(&hook).unwrap();
    fs::write(&first, "old").unwrap();
    let ran = restore(&[]);
    assert!(!hook.exists(), "{ran:#?}");
    assert_eq!(text(&first), "#!/bin/sh\n");
}

#[test]
fn an_import_follows_no_link_on_the_way() {
    let context = context();
    context.file(".bashrc", "echo planted\n");
    context.file("plain", "x");
    ws(&context, &["create", "site", "--dir", "."]).ends_with(0);
    ws(&context, &["export", "site", "../out.tar.zst"]).ends_with(0);
    let goal = context.home().join("goal");
    fs::create_dir(&goal).unwrap();
    let import = |name: &str, dir: &str, flags: &[&str]| {
        let words = ["import", "../out.tar.zst", name, "--dir", dir];
        ws(&context, &[&words[..], flags].concat())
    };
    // A command that may write the project plants links, and a tool that follows them writes there.
    let plant = ["ln -s ", goal.to_str().unwrap(), " copy; ln -s copy way"].concat();
    let run = ["run", "-q", "--", "sh", "-c", &plant];
    context.stockade(run).ends_with(0);
    context.other(&["cp", "plain", "copy/"]).ends_with(0);
    fs::remove_file(goal.join("plain")).unwrap();
    for dir in ["copy", "way", "copy/new", "./way/../copy"] {
        let refused = import("copy", dir, &["--allow-protected"]).ends_with(1);
        assert!(refused.stderr.contains("symbolic link"), "{refused:#?}");
    }
    assert_eq!(fs::read_dir(&goal).unwrap().count(), 0);
    // Without a link the names are judged by where they arrive, however the way is written.
    let ran = import("copy", "below/../../home/goal", &[]).ends_with(0);
    assert!(goal.join("plain").exists(), "{ran:#?}");
    assert!(!goal.join(".bashrc").exists(), "{ran:#?}");
    let other = context.home().join("other");
    import("other", other.to_str().unwrap(), &["--allow-protected"]).ends_with(0);
    assert!(other.join(".bashrc").exists(), "the control");
}

#[test]
fn an_import_into_a_directory_of_a_running_workspace() {
    let hints = Hints::of("ws_imports::an_import_into_a_directory_of_a_running_workspace");
    let context = context();
    context.file("plain", "x");
    ws(&context, &["create", "site", "--dir", "."]).ends_with(0);
    ws(&context, &["export", "site", "../out.tar.zst"]).ends_with(0);
    let shared = context.home().join("shared");
    fs::create_dir_all(shared.join("below")).unwrap();
    let shared = shared.to_str().unwrap();
    ws(&context, &["create", "running", "--dir", shared]).ends_with(0);
    ws(
        &context,
        &["run", "-d", "running", "--", "sh", "-c", "read line"],
    )
    .ends_with(0);
    let below = format!("{shared}/below");
    let import = ["import", "../out.tar.zst", "copy", "--dir", &below];
    let hint = hints.in_refusal(&ws(&context, &import));
    assert_eq!(fs::read_dir(&below).unwrap().count(), 0);
    let pause = hint.split('`').nth(1).unwrap().replace("NAME", "running");
    crate::hints::pasted(&context, &pause).ends_with(0);
    ws(&context, &import).ends_with(0);
    assert!(Path::new(&below).join("plain").exists());
    ws(&context, &["rm", "--force", "running"]).ends_with(0);
}

#[test]
fn a_workspace_is_not_made_in_the_store() {
    let context = context();
    context.file("plain", "x");
    ws(&context, &["create", "site", "--dir", "."]).ends_with(0);
    ws(&context, &["export", "site", "../out.tar.zst"]).ends_with(0);
    let inside = context.home().join("store/packs/new");
    let inside = inside.to_str().unwrap();
    for words in [
        &["import", "../out.tar.zst", "copy", "--dir", inside][..],
        &["create", "copy", "--dir", "../home/store/packs"],
    ] {
        let refused = ws(&context, words).ends_with(1);
        assert!(refused.stderr.contains("in the store"), "{refused:#?}");
    }
    assert!(!Path::new(inside).exists());
    ws(&context, &["fsck"]).ends_with(0);
}
