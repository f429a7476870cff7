//! Hints of `session` and `exec`, executed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::hint_list::Hints;
use crate::hints::pasted;
use crate::session::Sessions;

#[test]
fn sessions() {
    let hints = Hints::of("session_hints::sessions");
    let mut sessions = Sessions::new();
    let hint = hints.in_refusal(&sessions.exec("none", "true"));
    pasted(&sessions.0, &hint).ends_with(0);

    let open = ["session", "open", "build"];
    sessions.0.stockade(open).ends_with(0);
    let exec = |variable| {
        let words = ["exec", "build", "--env", variable, "--", "true"];
        sessions.0.stockade(words)
    };
    let hint = hints.in_refusal(&exec("NAME"));
    exec(hint.strip_prefix("--env ").unwrap()).ends_with(0);

    let hint = hints.in_refusal(&sessions.0.stockade(open));
    pasted(&sessions.0, &hint).ends_with(0);
    sessions.0.stockade(open).ends_with(0);

    hints.in_refusal(&sessions.0.stockade(["session", "open", "a b"]));
    sessions.open(&["a.b_c-1"]);

    let snapshot = |name| sessions.0.stockade(["session", "snapshot", name, "first"]);
    let hint = hints.in_refusal(&snapshot("build"));
    let opened = pasted(&sessions.0, &hint).ends_with(0);
    let name = opened.stdout.trim_end();
    let restore = ["session", "restore", name, "first"];
    let hint = hints.in_refusal(&sessions.0.stockade(restore));
    pasted(&sessions.0, &hint).ends_with(0);
    snapshot(name).ends_with(0);
    sessions.0.stockade(restore).ends_with(0);

    let refused = ["session", "open", "--danger-full-access"];
    let hint = hints.in_refusal(&sessions.0.stockade(refused));
    pasted(&sessions.0, &hint).ends_with(0);

    let landlock = ["session", "open", "--backend", "landlock", "--best-effort"];
    let hint = hints.in_refusal(&sessions.0.stockade(landlock));
    pasted(&sessions.0, &hint).ends_with(0);

    sessions
        .0
        .stockade(["session", "close", "--all"])
        .ends_with(0);
    let directory = sessions.0.home().join("runtime/stockade");
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    hints.in_refusal(&sessions.0.stockade(open));
    let private = sessions.0.home().join("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    sessions.0.set("XDG_RUNTIME_DIR", private);
    sessions.0.stockade(open).ends_with(0);
}
