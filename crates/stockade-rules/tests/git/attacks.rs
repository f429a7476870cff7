//! What the table says about git is true of the git that is installed here: each attack runs its
//! program without Stockade, and the judge refuses it. What the table leaves out runs nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use stockade_rules::protected::git::ConfigContext;
use stockade_rules::protected::{PROTECTED, ProtectedName};

use super::Git;

/// A repository with a conflict between `main` and `side`, and a program that leaves a mark.
struct Stage {
    git: Git,
    repository: PathBuf,
    program: PathBuf,
    mark: PathBuf,
}

impl Stage {
    fn new(test: &str) -> Option<Self> {
        let git = Git::find(test)?;
        let stage = Self {
            repository: git.path("r"),
            program: git.path("evil"),
            mark: git.path("mark"),
            git,
        };
        let script = format!("#!/bin/sh\necho ran > {}\n", stage.mark.display());
        fs::write(&stage.program, script).unwrap();
        fs::set_permissions(&stage.program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(&stage.repository).unwrap();
        stage.git(&["init", "-q", "-b", "main"]);
        stage.commit("one");
        stage.git(&["branch", "side"]);
        stage.commit("two");
        stage.git(&["checkout", "-q", "side"]);
        stage.commit("three");
        stage.commit("four");
        Some(stage)
    }

    fn git(&self, arguments: &[&str]) -> bool {
        self.git.run(&self.repository, arguments).status.success()
    }

    fn commit(&self, text: &str) {
        fs::write(self.repository.join("file"), text).unwrap();
        self.git(&["add", "file"]);
        assert!(self.git(&["commit", "-q", "-m", text]));
    }

    /// Resolves the conflict that a rebase or cherry-pick stopped at.
    fn resolve(&self) {
        fs::write(self.repository.join("file"), "resolved").unwrap();
        self.git(&["add", "file"]);
    }

    /// Puts the program where `git-merge-x/evil` is looked up.
    fn plant_strategy(&self) {
        let directory = self.repository.join("git-merge-x");
        fs::create_dir(&directory).unwrap();
        fs::copy(&self.program, directory.join("evil")).unwrap();
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.repository.join(".git").join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, text).unwrap();
    }

    fn ran(&self) -> bool {
        self.mark.exists()
    }
}

fn row(name: &str) -> &'static ProtectedName {
    PROTECTED.iter().find(|row| row.name == name).unwrap()
}

fn refused(name: &str, old: &str, new: &str) -> bool {
    let judge = row(name).judge;
    let context = ConfigContext::new();
    judge
        .content(old.as_bytes(), new.as_bytes(), &context)
        .is_err()
}

#[test]
fn an_exec_line_runs_when_a_rebase_continues() {
    let Some(stage) = Stage::new("an_exec_line_runs_when_a_rebase_continues") else {
        return;
    };
    assert!(!stage.git(&["rebase", "main"]));
    let todo = stage.repository.join(".git/rebase-merge/git-rebase-todo");
    let old = fs::read_to_string(&todo).unwrap();
    let new = format!("exec {}\n{old}", stage.program.display());
    fs::write(&todo, &new).unwrap();
    stage.resolve();
    stage.git(&["rebase", "--continue"]);
    assert!(stage.ran());
    assert!(refused("rebase-merge/git-rebase-todo", &old, &new));
    assert!(!refused("rebase-merge/git-rebase-todo", "", &old));
}

#[test]
fn a_strategy_with_a_slash_runs_from_the_working_tree() {
    let Some(stage) = Stage::new("a_strategy_with_a_slash_runs_from_the_working_tree") else {
        return;
    };
    stage.plant_strategy();
    assert!(!stage.git(&["rebase", "main"]));
    stage.write("rebase-merge/strategy", "x/evil\n");
    stage.resolve();
    stage.git(&["rebase", "--continue"]);
    assert!(stage.ran());
    assert!(refused("rebase-merge/strategy", "", "x/evil\n"));
}

#[test]
fn a_strategy_in_the_options_of_a_cherry_pick_runs_too() {
    let Some(stage) = Stage::new("a_strategy_in_the_options_of_a_cherry_pick_runs_too") else {
        return;
    };
    stage.plant_strategy();
    stage.git(&["checkout", "-q", "main"]);
    assert!(!stage.git(&["cherry-pick", "side~", "side"]));
    let options = "[options]\n\tstrategy = x/evil\n";
    stage.write("sequencer/opts", options);
    stage.resolve();
    stage.git(&["cherry-pick", "--continue"]);
    assert!(stage.ran());
    assert!(refused("sequencer/opts", "", options));
}

#[test]
fn a_cherry_pick_runs_no_exec_line() {
    let Some(stage) = Stage::new("a_cherry_pick_runs_no_exec_line") else {
        return;
    };
    stage.git(&["checkout", "-q", "main"]);
    assert!(!stage.git(&["cherry-pick", "side~", "side"]));
    let todo = stage.repository.join(".git/sequencer/todo");
    let old = fs::read_to_string(&todo).unwrap();
    let exec = format!("exec {}\n", stage.program.display());
    for new in [format!("{exec}{old}"), format!("{old}{exec}")] {
        fs::write(&todo, &new).unwrap();
        stage.resolve();
        stage.git(&["cherry-pick", "--continue"]);
        assert!(!stage.ran());
    }
}

#[test]
fn an_old_remote_file_may_name_a_program() {
    let Some(stage) = Stage::new("an_old_remote_file_may_name_a_program") else {
        return;
    };
    let program = stage.program.display();
    stage.write("remotes/origin", &format!("URL: ext::{program}\n"));
    stage.git(&["-c", "protocol.ext.allow=always", "fetch", "origin"]);
    assert!(stage.ran());
    assert!(refused("remotes", "", "URL: x\n"));
}

/// Settings that run the program, with the command that makes git run it.
#[test]
fn settings_that_run_a_program_are_refused() {
    let Some(stage) = Stage::new("settings_that_run_a_program_are_refused") else {
        return;
    };
    let program = stage.program.display().to_string();
    let ext = format!("ext::{program}");
    let missing = "1234567890123456789012345678901234567890";
    let attacks: &[(&str, &str, &[&str])] = &[
        ("core.fsmonitor", &program, &["status"]),
        ("core.sshCommand", &program, &["fetch", "ssh://h.test/r"]),
        ("diff.external", &program, &["diff", "HEAD~"]),
        ("core.editor", &program, &["commit", "--amend"]),
        ("alias.x", &format!("!{program}"), &["x"]),
        (
            "alias.x",
            &format!("-c core.fsmonitor={program} status"),
            &["x"],
        ),
        (
            "rebase.instructionFormat",
            &format!("%s%nexec {program}"),
            &["rebase", "--force-rebase", "HEAD~"],
        ),
        (
            "remote.pushDefault",
            &ext,
            &[
                "-c",
                "protocol.ext.allow=always",
                "-c",
                "push.default=current",
                "push",
            ],
        ),
        (
            "branch.side.remote",
            &ext,
            &["-c", "protocol.ext.allow=always", "fetch"],
        ),
        (
            &format!("remote.{ext}.promisor"),
            "true",
            &["-c", "protocol.ext.allow=always", "cat-file", "-p", missing],
        ),
        (
            "url.ext:.insteadOf",
            "x",
            &[
                "-c",
                "protocol.ext.allow=always",
                "fetch",
                &format!("x:{program}"),
            ],
        ),
        (
            "gpg.program",
            &program,
            &["commit", "--amend", "-S", "-m", "x"],
        ),
        (
            "trailer.x.command",
            &program,
            &["interpret-trailers", "/dev/null"],
        ),
        (
            "tar.x.command",
            &program,
            &["archive", "--format=x", "HEAD"],
        ),
    ];
    let before = fs::read(stage.repository.join(".git/config")).unwrap();
    let context = ConfigContext::new();
    for (key, value, command) in attacks {
        // Through `--file`, because git would not let some commands change some keys.
        assert!(
            stage.git(&["config", "--file", ".git/config", key, value]),
            "{key}"
        );
        let after = fs::read(stage.repository.join(".git/config")).unwrap();
        let judged = row("config").judge.content(&before, &after, &context);
        assert!(judged.is_err(), "{key} = {value}");
        if *key == "core.editor" {
            // The editor of the environment comes first.
            let mut amend = stage.git.command(command);
            amend
                .env_remove("GIT_EDITOR")
                .current_dir(&stage.repository);
            amend.output().unwrap();
        } else {
            stage.git(command);
        }
        assert!(
            stage.ran(),
            "{key} = {value} ran nothing: is the entry needed?"
        );
        fs::remove_file(&stage.mark).unwrap();
        fs::write(stage.repository.join(".git/config"), &before).unwrap();
    }
}
