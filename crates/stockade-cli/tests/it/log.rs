//! `stockade log`: what runs were refused is noted, and no command inside can change the note.

use std::fs;

use crate::context::{Context, Ran};

fn run(context: &Context, script: &str) -> Ran {
    context.stockade(["run", "--", "sh", "-c", script])
}

#[test]
fn the_line_about_refusals_names_a_command_that_shows_them() {
    for context in Context::of_each_user() {
        let nothing = context.stockade(["log"]).ends_with(0);
        assert_eq!(nothing.stdout, "nothing was refused\n");
        run(&context, "true").ends_with(0);
        assert!(
            !context.home().join(".local").exists(),
            "nothing was refused"
        );

        let told = run(&context, "touch .bashrc .profile; true").ends_with(0);
        assert!(
            told.stderr.contains("1 more; `stockade log` shows all"),
            "{told:#?}"
        );
        let shown = context.stockade(["log"]).ends_with(0).stdout;
        for text in [
            "touch .bashrc",
            "/project/.bashrc`",
            "/project/.profile`",
            "allow with: --",
        ] {
            assert!(shown.contains(text), "{text}: {shown}");
        }
        let failed = run(
            &context,
            "touch .bashrc .zshrc .profile .zshenv .envrc; exit 3",
        )
        .ends_with(3);
        assert!(
            failed.stderr.contains("`stockade log` shows all"),
            "{failed:#?}"
        );
        let json = context
            .stockade(["log", "--json", "--last", "1"])
            .ends_with(0)
            .json();
        let runs = json["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 1, "{json}");
        assert_eq!(runs[0]["exit"], 3);
        assert_eq!(runs[0]["dir"], context.project().to_str().unwrap());
        assert_eq!(runs[0]["refused"].as_array().unwrap().len(), 5, "{json}");
    }
}

#[test]
fn names_that_were_refused_do_not_reach_the_terminal() {
    for context in Context::of_each_user() {
        let script = r#"touch "$(printf '\033[31mred\n\342\200\256x').locked"; true"#;
        let line = ["run", "--deny-write", "*.locked", "--", "sh", "-c", script];
        context.stockade(line).ends_with(0);
        let shown = context.stockade(["log"]).ends_with(0).stdout;
        assert!(shown.contains("\\u{1b}[31mred\\n\\u{202e}x"), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
    }
}

#[test]
fn no_command_inside_reaches_the_log() {
    for context in Context::of_each_user() {
        run(&context, "touch .bashrc; true").ends_with(0);
        let file = context.home().join(".local/state/stockade/refusals.jsonl");
        let before = fs::read(&file).unwrap();
        let script = format!("cat '{0}'; echo x >> '{0}'; rm -f '{0}'", file.display());
        let bare = context.other(&["sh", "-c", &script]).ends_with(0);
        assert!(bare.stdout.contains("touch .bashrc"), "{bare:#?}");
        assert!(!file.exists());
        fs::write(&file, &before).unwrap();
        context.give(&file);
        // Also where all of the home directory is granted.
        let home = context.home();
        let home = home.to_str().unwrap();
        for flags in [&[][..], &["--write", home]] {
            let line = [&["run"], flags, &["--", "sh", "-c", &script]].concat();
            let inside = context.stockade(line);
            assert!(!inside.stdout.contains("touch"), "{inside:#?}");
            assert!(fs::read(&file).unwrap().starts_with(&before), "{inside:#?}");
        }
    }
}
