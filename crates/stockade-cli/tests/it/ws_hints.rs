//! Hints of `stockade ws`: what each one names is executed, and then the refused command works.

use std::fs;

use crate::context::{Context, Ran, STOCKADE};
use crate::hint_list::Hints;
use crate::ws::{context, has_overlay, sh};

fn ws(context: &Context, args: &[&str]) -> Ran {
    context.stockade(["ws"].iter().chain(args))
}

/// The command that a hint names between backticks, with `NAME` and `COMMAND` filled in, executed.
#[track_caller]
fn follow(context: &Context, hint: &str, at: usize, name: &str) -> Ran {
    let command = hint.split('`').nth(2 * at + 1);
    let command = command.unwrap_or_else(|| panic!("nothing to paste: {hint}"));
    let line = command.replace("NAME", name).replace("COMMAND", "true");
    let line = line.replacen("stockade", STOCKADE, 1);
    let ran = context.other(&["sh", "-c", &line]);
    assert_eq!(ran.code, 0, "{line}: {ran:#?}");
    ran
}

#[test]
fn names_that_do_not_exist() {
    let hints = Hints::of("ws_hints::names_that_do_not_exist");
    let context = context();
    let project = context.project();
    let project = project.to_str().unwrap();
    ws(&context, &["create", "known", "--dir", project]).ends_with(0);
    let listed = follow(
        &context,
        &hints.in_refusal(&ws(&context, &["show", "unknown"])),
        0,
        "known",
    );
    assert!(listed.stdout.contains("known"), "{listed:#?}");
    let refused = ws(&context, &["restore", "known", "ffff"]);
    let listed = follow(&context, &hints.in_refusal(&refused), 0, "known");
    let id = listed.stdout.split_whitespace().find(|word| {
        let is_hex = |byte: u8| byte.is_ascii_hexdigit();
        word.len() >= 8 && word.bytes().all(is_hex)
    });
    let id = id.unwrap_or_else(|| panic!("{listed:#?}"));
    ws(&context, &["restore", "known", id]).ends_with(0);
}

#[test]
fn a_directory_that_does_not_exist() {
    let hints = Hints::of("ws_hints::a_directory_that_does_not_exist");
    let context = context();
    let missing = context.project().join("missing");
    let create = ["create", "w", "--dir", missing.to_str().unwrap()];
    assert_eq!(
        hints.in_refusal(&ws(&context, &create)).trim(),
        "make the directory first"
    );
    fs::create_dir(&missing).unwrap();
    ws(&context, &create).ends_with(0);
}

#[test]
fn overlays_that_are_not_there() {
    if !has_overlay("overlays_that_are_not_there") {
        return;
    }
    let hints = Hints::of("ws_hints::overlays_that_are_not_there");
    let context = context();
    let project = context.project();
    let project = project.to_str().unwrap();
    let nothing_here = ws(&context, &["diff"]);
    follow(&context, &hints.in_refusal(&nothing_here), 0, "");
    ws(&context, &["diff"]).ends_with(0);
    ws(&context, &["discard"]).ends_with(0);
    ws(&context, &["create", "w", "--dir", project]).ends_with(0);
    let no_overlay = ws(&context, &["commit", "w"]);
    let made = hints.in_refusal(&no_overlay);
    assert!(made.contains("stockade run --overlay=NAME"), "{made}");
    sh(&context, &["--overlay=w"], "echo x > made").ends_with(0);
    ws(&context, &["commit", "w"]).ends_with(0);
    assert!(context.project().join("made").exists());
}

#[test]
fn workspaces_in_which_something_runs() {
    let hints = Hints::of("ws_hints::workspaces_in_which_something_runs");
    let context = context();
    let project = context.project();
    let project = project.to_str().unwrap();
    ws(&context, &["create", "w", "--dir", project]).ends_with(0);
    let id = ws(&context, &["snapshot", "w"]).ends_with(0);
    let restore = ["restore", "w", id.stdout.trim()];
    ws(&context, &["run", "-d", "w", "--", "sleep", "3600"]).ends_with(0);
    assert!(
        hints
            .in_refusal(&ws(&context, &restore))
            .contains("`--pause`")
    );
    ws(&context, &[&restore[..], &["--pause"]].concat()).ends_with(0);
    ws(&context, &["pause", "w"]).ends_with(0);
    let paused = ws(&context, &["run", "w", "--", "true"]);
    follow(&context, &hints.in_refusal(&paused), 0, "w");
    let alive = ws(&context, &["rm", "w"]);
    assert!(hints.in_refusal(&alive).contains("`--force`"), "{alive:#?}");
    ws(&context, &["rm", "--force", "w"]).ends_with(0);
}

#[test]
fn a_directory_that_was_replaced() {
    if !has_overlay("a_directory_that_was_replaced") {
        return;
    }
    let hints = Hints::of("ws_hints::a_directory_that_was_replaced");
    let context = context();
    let project = context.project();
    for (at, applied) in [(0, true), (1, false)] {
        sh(&context, &["--overlay=w"], "echo x > made").ends_with(0);
        fs::remove_dir_all(&project).unwrap();
        fs::create_dir(&project).unwrap();
        let replaced = ws(&context, &["commit", "w"]);
        follow(&context, &hints.in_refusal(&replaced), at, "w");
        if applied {
            ws(&context, &["commit", "w"]).ends_with(0);
        }
        assert_eq!(project.join("made").exists(), applied);
    }
}

#[test]
fn paths_that_did_not_change_and_files_that_the_host_changed() {
    if !has_overlay("paths_that_did_not_change_and_files_that_the_host_changed") {
        return;
    }
    let hints = Hints::of("ws_hints::paths_that_did_not_change_and_files_that_the_host_changed");
    let context = context();
    let file = context.file("f", "host\n");
    sh(&context, &["--overlay=w"], "echo inside > f").ends_with(0);
    let unchanged = ws(&context, &["commit", "w", "other"]);
    let hint_text = hints.in_refusal(&unchanged);
    assert!(
        hint_text.contains("stockade ws diff --summary"),
        "{hint_text}"
    );
    let listed = ws(&context, &["diff", "--summary", "w"]).ends_with(0);
    assert!(listed.stdout.contains('f'), "{listed:#?}");
    for (flag, kept) in [("--theirs", "edited\n"), ("--ours", "inside\n")] {
        fs::write(&file, "edited\n").unwrap();
        let conflict = ws(&context, &["commit", "w"]);
        assert!(hints.in_refusal(&conflict).contains(flag), "{conflict:#?}");
        ws(&context, &["commit", flag, "w"]).ends_with(0);
        assert_eq!(fs::read_to_string(&file).unwrap(), kept);
        sh(&context, &["--overlay=w"], "echo inside > f").ends_with(0);
    }
}

#[test]
fn a_store_that_nothing_names() {
    let hints = Hints::of("ws_hints::a_store_that_nothing_names");
    let context = context();
    let mut command = context.command(["ws", "list"]);
    command.env_remove("STOCKADE_HOME").env_remove("HOME");
    command.env_remove("XDG_DATA_HOME");
    let refused = crate::context::run(command);
    assert!(
        hints.in_refusal(&refused).contains("--store"),
        "{refused:#?}"
    );
    let store = context.home().join("elsewhere");
    let mut command = context.command(["ws", "--store", store.to_str().unwrap(), "list"]);
    command.env_remove("STOCKADE_HOME").env_remove("HOME");
    assert_eq!(crate::context::run(command).code, 0);
}

#[test]
fn a_store_that_is_damaged() {
    let hints = Hints::of("ws_hints::a_store_that_is_damaged");
    let context = context();
    let project = context.project();
    let project = project.to_str().unwrap();
    ws(&context, &["create", "w", "--dir", project]).ends_with(0);
    let state = context.home().join("store/workspaces/w/state.json");
    fs::write(&state, "garbage").unwrap();
    let damaged = ws(&context, &["show", "w"]);
    assert!(hints.in_refusal(&damaged).contains("`stockade ws fsck`"));
    let checked = ws(&context, &["fsck"]).ends_with(1);
    assert!(checked.stdout.contains("state.json"), "{checked:#?}");
    let kept = ws(&context, &["rm", "w"]);
    assert!(
        hints.in_refusal(&kept).contains("`ws rm --force`"),
        "{kept:#?}"
    );
    ws(&context, &["rm", "--force", "w"]).ends_with(0);
    ws(&context, &["fsck"]).ends_with(0);
}

#[test]
fn a_directory_that_was_moved_behind_a_link() {
    if !has_overlay("a_directory_that_was_moved_behind_a_link") {
        return;
    }
    let hints = Hints::of("ws_hints::a_directory_that_was_moved_behind_a_link");
    let context = context();
    let project = context.project();
    let moved = project.with_file_name("moved");
    let hide = || {
        fs::rename(&project, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &project).unwrap();
    };
    let show = || {
        fs::remove_file(&project).unwrap();
        fs::rename(&moved, &project).unwrap();
    };
    sh(&context, &["--overlay=w"], "echo x > made").ends_with(0);
    hide();
    let behind = hints.in_refusal(&ws(&context, &["commit", "w"]));
    assert!(behind.contains("move it back"), "{behind}");
    show();
    ws(&context, &["commit", "w"]).ends_with(0);
    assert!(project.join("made").exists());
    let create = ["create", "v", "--dir", project.to_str().unwrap()];
    ws(&context, &create).ends_with(0);
    hide();
    let behind = hints.in_refusal(&ws(&context, &["snapshot", "v"]));
    assert!(
        behind.contains("`stockade ws rebind NAME --dir DIR`"),
        "{behind}"
    );
    ws(&context, &["rebind", "v", "--dir", moved.to_str().unwrap()]).ends_with(0);
    ws(&context, &["snapshot", "v"]).ends_with(0);
    show();
}

#[test]
fn a_store_that_the_command_could_write() {
    if !has_overlay("a_store_that_the_command_could_write") {
        return;
    }
    let hints = Hints::of("ws_hints::a_store_that_the_command_could_write");
    let mut context = context();
    let store = context.home().join("store");
    context.set("STOCKADE_HOME", context.project().join("store"));
    let inside = sh(&context, &["--overlay"], "true");
    assert!(
        hints.in_refusal(&inside).contains("STOCKADE_HOME"),
        "{inside:#?}"
    );
    context.set("STOCKADE_HOME", store);
    sh(&context, &["--overlay"], "true").ends_with(0);
}

#[test]
fn a_store_that_others_could_write() {
    use std::os::unix::fs::PermissionsExt;
    let hints = Hints::of("ws_hints::a_store_that_others_could_write");
    let context = context();
    let project = context.project();
    ws(
        &context,
        &["create", "w", "--dir", project.to_str().unwrap()],
    )
    .ends_with(0);
    let packs = context.home().join("store/packs");
    let allow = |mode| fs::set_permissions(&packs, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o777);
    let open = ws(&context, &["snapshot", "w"]);
    assert!(
        hints.in_refusal(&open).contains("`chmod 700` it"),
        "{open:#?}"
    );
    allow(0o700);
    ws(&context, &["snapshot", "w"]).ends_with(0);
}

#[test]
fn a_conflict_at_the_end_of_a_run() {
    let test = "ws_hints::a_conflict_at_the_end_of_a_run";
    if !has_overlay(test) {
        return;
    }
    let hints = Hints::of(test);
    let context = context();
    let file = context.file("f", "host\n");
    for (at, kept) in [(1, "edited\n"), (2, "inside\n")] {
        sh(&context, &["--overlay=w"], "echo inside > f").ends_with(0);
        fs::write(&file, "edited\n").unwrap();
        let conflict = sh(&context, &["--overlay=w", "--commit"], "true");
        let hint = hints.in_refusal(&conflict);
        let shown = follow(&context, &hint, 0, "w");
        assert!(shown.stdout.contains("inside"), "{shown:#?}");
        follow(&context, &hint, at, "w");
        assert_eq!(fs::read_to_string(&file).unwrap(), kept);
        let _ = ws(&context, &["discard", "w"]);
    }
}

#[test]
fn an_overlay_that_is_in_the_way() {
    let test = "ws_hints::an_overlay_that_is_in_the_way";
    if !has_overlay(test) {
        return;
    }
    let hints = Hints::of(test);
    let context = context();
    let (project, other) = (context.project(), context.home().join("other"));
    fs::create_dir(&other).unwrap();
    ws(
        &context,
        &["create", "w", "--dir", project.to_str().unwrap()],
    )
    .ends_with(0);
    sh(&context, &["--overlay=w"], "echo x > made").ends_with(0);
    let rebind = ["rebind", "w", "--dir", other.to_str().unwrap()];
    let hint = hints.in_refusal(&ws(&context, &rebind));
    follow(&context, &hint, 0, "w");
    ws(&context, &rebind).ends_with(0);
}

#[test]
fn a_restart_since_the_overlay_was_written() {
    let test = "ws_hints::a_restart_since_the_overlay_was_written";
    if !has_overlay(test) {
        return;
    }
    let hints = Hints::of(test);
    let context = context();
    sh(&context, &["--overlay=w"], "echo x > made").ends_with(0);
    let index = context.home().join("store/workspaces/w/overlay/index.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
    json["boot"] = "00000000-0000-0000-0000-000000000000".into();
    fs::write(&index, json.to_string()).unwrap();
    let hint = hints.in_refusal(&ws(&context, &["commit", "w"]));
    let shown = ws(&context, &["diff", "w"]).ends_with(0);
    assert!(shown.stdout.contains("made"), "{shown:#?}");
    let flag = hint.split('`').nth(3).unwrap();
    ws(&context, &["commit", "w", flag]).ends_with(0);
    assert!(context.project().join("made").exists());
}

#[test]
fn too_many_workspaces() {
    let hints = Hints::of("ws_hints::too_many_workspaces");
    let context = context();
    let project = context.project();
    let project = project.to_str().unwrap();
    ws(&context, &["create", "w0", "--dir", project]).ends_with(0);
    let create = |number: usize| {
        let name = format!("w{number}");
        ws(&context, &["create", &name, "--dir", project])
    };
    let refused = (1..1000).map(create).find(|made| made.code != 0).unwrap();
    let hint = hints.in_refusal(&refused);
    follow(&context, &hint, 0, "");
    follow(&context, &hint, 1, "w0");
    ws(&context, &["create", "another", "--dir", project]).ends_with(0);
}

/// A store on a small file system, in mount namespaces of the test's own.
#[test]
fn a_disk_that_is_full_or_read_only() {
    let test = "ws_hints::a_disk_that_is_full_or_read_only";
    if !crate::context::has(test, "userns", &["unshare", "-Urm", "true"]) {
        return;
    }
    let hints = Hints::of(test);
    let context = context();
    let on_disk = |size: &str, script: &str| {
        let script = format!(
            "rm -rf tree && mkdir -p disk tree && mount -t tmpfs -o size={size} disk disk && export STOCKADE_HOME=$PWD/disk/store
             {script}"
        );
        context.other(&["unshare", "-Urm", "sh", "-c", &script, STOCKADE])
    };
    let full = "head -c 300000 /dev/urandom > tree/kept; head -c 300000 /dev/urandom > tree/old
        \"$0\" ws create w --dir tree > /dev/null && \"$0\" ws snapshot w > disk/one || exit 9
        rm tree/old; head -c 1200000 /dev/urandom > tree/new; \"$0\" ws snapshot w";
    let hint = hints.in_refusal(&on_disk("1500k", full));
    assert_eq!(hint.split('`').nth(1), Some("stockade ws gc"));
    // What no snapshot needs any more makes room.
    let followed = format!(
        "{full} 2> /dev/null; \"$0\" ws rm w && \"$0\" ws gc && \"$0\" ws create w --dir tree && exec \"$0\" ws snapshot w"
    );
    on_disk("1500k", &followed).ends_with(0);

    let read_only = "\"$0\" ws create w --dir tree && mount -o remount,bind,ro disk && exec \"$0\" ws snapshot w";
    let hint = hints.in_refusal(&on_disk("4m", read_only));
    assert!(hint.contains("--store or STOCKADE_HOME"), "{hint}");
    let elsewhere = "mount -o remount,bind,ro disk; export STOCKADE_HOME=$PWD/store; \"$0\" ws create w --dir tree && exec \"$0\" ws snapshot w";
    on_disk("4m", elsewhere).ends_with(0);
    // Overlays take no other overlay for the place of their layers.
    if has_overlay(test) {
        let layered = "mkdir disk/l disk/u disk/w disk/m && mount -t overlay o -o lowerdir=disk/l,upperdir=disk/u,workdir=disk/w,userxattr disk/m
            cd tree && STOCKADE_HOME=$PWD/../disk/m/store exec \"$0\" run -q --overlay -- true";
        let hint = hints.in_refusal(&on_disk("4m", layered));
        assert!(hint.contains("elsewhere with STOCKADE_HOME"), "{hint}");
        let beside = "cd tree && STOCKADE_HOME=$PWD/../store exec \"$0\" run -q --overlay -- true";
        on_disk("4m", beside).ends_with(0);
    }
}
