//! docs/protected-names.md is what the tables say. `STOCKADE_BLESS=1` writes it anew.
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

use std::fmt::Write as _;
use std::path::Path;

use stockade_rules::protected::git::{KEYS, Value};
use stockade_rules::protected::{Anchor, Effect, Extent, Judge, PROTECTED};

const INTRO: &str = "# Protected names

Some files in a project make code run on the host later, when nobody thinks of the sandbox any more:
hooks and configuration of git, Mercurial and Jujutsu, settings of editors and agents, start-up files of shells. A sandboxed
command can't put such files in place, although it may write everything else in the project.

A name is on the list if refusing it stops code from running on the host that would not have run
otherwise. Removing a file plants nothing, and inside dependencies and new repositories the files of
editors, agents and shells are ordinary ones. `--write PATH` lifts the protection of a path, and
`--git-config` that of git's configuration.

This page is made from the tables in `crates/stockade-rules/src/protected`; a test keeps it so.

## Names

*Git directory*: a directory that is called `.git` or has entries `objects` and `refs`, and where it keeps the
state of its worktrees and submodules. *Project*: the
workspace, the root of a repository that was there when the run began, and the home directory.

";

const OLD_CONTENT: &str = "
Sample hooks (`hooks/*.sample`) are ordinary files. What a protected name is a symbolic link to when the
run begins is protected like the name itself: a script in the project that a hook is a link to, a file
in a repository of dotfiles that `~/.bashrc` is a link to.

## Symbolic links in git directories

Git on the host writes through symbolic links in its own directory: with `.git/logs/HEAD` a link to `~/.bashrc`,
`git commit` adds a line to that file. So no link is made in a git directory or moved there, a directory that moves there
must have none, and neither must a directory that becomes a git directory. In a bare repository this is about the entries
of its directory and about the directories that git writes (`logs`, `objects`, `refs`, …), because the directory may hold working
trees. Links that were there when the run began stay, and git's own test whether the file system has links passes. What
makes such links as part of its work (`repo`, `git-new-workdir`, the probe of `git annex init`) fails inside.

## Old content

Git may check out files of editors, agents and shells, as `git checkout`, `git stash pop` and `git rebase`
do, if no sandboxed command can have written what they hold:

- The file held the same under the same name when the run began.
- Or the file is at the root of the workspace's repository, and the repository holds the content as an
  object that is older than the first sandboxed command that wrote objects there. The age is the change
  time of the object's file, or of its pack and the pack's index; no program can set it. Objects
  of other repositories (`objects/info/alternates`) do not count.

The path that the content had in the history is not compared: any old file of the repository may
stand under any of these names. What such a file can do to the host was in the repository before.

The mediator keeps the time of the first sandboxed command in `objects/stockade-since` of the git directory.
Compared with the start of the current run, the age would prove little: one run could store an object,
and the next one check it out. Packs that `git gc` or `git fetch` makes later count as new. To trust
everything that the repository holds now, remove the file on the host:
`rm \"$(git rev-parse --git-path objects/stockade-since)\"`.

Other content is refused when git has written it. The file then holds again what it held before, or is
missing, and the report lists it.
";

const LEFT_OUT: &str = "
## Names that are not protected

Refusing these would stop no code that does not run otherwise, or would stop a project's ordinary work:

- `info/attributes` and `core.attributesFile`: attributes choose among filters and drivers that the
  configuration defines, and so does `.gitattributes`, which anybody may commit.
- `gitdir` in `.git/worktrees/NAME`: it says where the working tree is; git neither runs nor reads
  configuration from there.
- `sequencer/todo`: `cherry-pick` and `revert` accept no command but their own in it.
- `rebase-merge/git-rebase-todo.backup` and `done`: git compares them and runs nothing.
- `rebase-apply`: `git am` reads patches, flags and an author from it, and runs nothing.
- `objects/info/alternates`: objects are named by their hash, wherever they come from.
- `.gitmodules`: git ignores commands in it (`update = !…`).
- `.svn`: Subversion has hooks on servers only, and reads commands from the home directory only.
- `.jj/repo/config-id` and `.jj/workspace-config-id`: they choose among the configurations that jj keeps in
  the home directory (since 0.37), which the user wrote.
- `.jj/repo/store/git_target`: it names a git directory, and the hooks and configuration of every git
  directory that the sandbox can write are judged.
- The rest of `.jj`, such as `.jj/working_copy`: state and history, which jj reads and does not run.
- `.github/workflows`, `Makefile`, `package.json`, `build.rs`: the project's own code, which a
  person runs knowingly or which runs elsewhere after review.
- `.pre-commit-config.yaml`, `lefthook.yml` and the like: where a person has installed the tool's hook,
  `git commit` on the host runs the commands in them. They are the project's own code all the same. The
  linters and tests that such hooks start take code and plugins from the project, so most projects run
  their own code at a commit whatever these files hold. And the files change often: protected, they would
  stop `git pull` and `git rebase` inside. To make such a file read-only, use
  `--deny-write .pre-commit-config.yaml`. To commit without running the project's code on the host, use
  `stockade run -- git commit` or `git commit --no-verify`.
";

const KEYS_INTRO: &str = "
## Keys of git's configuration

Only settings that are new or changed are judged. A key that is not listed passes, unless it is called
like a program (`…command`, `…cmd`, `…program`, `…hook`).

";

fn place(anchor: Anchor) -> &'static str {
    match anchor {
        Anchor::Anywhere => "anywhere",
        Anchor::GitDirectory => "git directory",
        Anchor::Root => "project",
        _ => unreachable!("an anchor without words"),
    }
}

fn passes(judge: Judge) -> &'static str {
    match judge {
        Judge::AuthorScript => "name, address and date of an author",
        Judge::CommonDirectory | Judge::Redirect => {
            "a path to a git directory that the sandbox can't have prepared"
        }
        Judge::Config => "keys that do no harm, see below",
        Judge::Index => "entries in the working tree and in no git directory; no split index",
        Judge::JujutsuConfig => "`revset-aliases`, `user`",
        Judge::JujutsuRepository => "a path to a `.jj/repo` that the sandbox may write",
        Judge::MercurialConfig => "addresses in `paths`, `ui.username`, `phases.publish`",
        Judge::MercurialShare => "a path to an `.hg` that the sandbox may write",
        Judge::Never => "nothing",
        Judge::SequencerOptions => "anything but a strategy that git has not built in",
        Judge::Strategy => "a strategy that git has built in",
        Judge::Todo => "every command but `exec`",
        _ => unreachable!("a judge without words"),
    }
}

fn values(value: Value) -> String {
    match value {
        Value::Address | Value::Addresses => "addresses of built-in transports".into(),
        Value::Alias => "commands of git that run nothing else".into(),
        Value::Boolean => "true, false".into(),
        Value::InstructionFormat => "formats of one line".into(),
        Value::MergeOptions => "options without strategy".into(),
        Value::Never => "none".into(),
        Value::OneOf(values) => {
            let shown = values.iter().map(|value| match *value {
                "" => "empty".to_owned(),
                value => format!("`{value}`"),
            });
            shown.collect::<Vec<_>>().join(", ")
        }
        Value::PlainName => "names without a slash".into(),
        Value::SharedMode => "modes that not everybody may write by".into(),
        Value::SubsectionAddress => "any, if the name is an address of a built-in transport".into(),
        Value::True => "true".into(),
        Value::VimLayout => "names of windows and `@+,/()`".into(),
        Value::Worktree => "directories that the sandbox may write".into(),
        _ => unreachable!("a value without words"),
    }
}

fn rendered() -> String {
    let mut page = INTRO.to_owned();
    page.push_str("| name | where | what passes | why |\n|---|---|---|---|\n");
    for row in PROTECTED {
        let name = match row.extent {
            Extent::Subtree => format!("{}/", row.name),
            _ => row.name.to_owned(),
        };
        let passes = if row.accepts_old_content() {
            "old content, see below"
        } else {
            passes(row.judge)
        };
        let place = place(row.anchor);
        writeln!(page, "| `{name}` | {place} | {passes} | {} |", row.reason).unwrap();
    }
    page.push_str(OLD_CONTENT);
    page.push_str(LEFT_OUT);
    page.push_str(KEYS_INTRO);
    for (effect, heading) in [
        (Effect::RunsProgram, "Keys that run a program"),
        (
            Effect::Redirects,
            "Keys that lead to another file, directory or host",
        ),
        (Effect::WeakensCheck, "Keys that weaken a check"),
    ] {
        writeln!(
            page,
            "### {heading}\n\n| key | what passes | why |\n|---|---|---|"
        )
        .unwrap();
        for key in KEYS.iter().filter(|key| key.effect == effect) {
            let values = values(key.value);
            writeln!(page, "| `{}` | {values} | {} |", key.name, key.reason).unwrap();
        }
        page.push('\n');
    }
    page.pop();
    page
}

#[test]
fn the_page_is_what_the_tables_say() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protected-names.md");
    let expected = rendered();
    if std::env::var_os("STOCKADE_BLESS").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let page = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        page == expected,
        "docs/protected-names.md is out of date: run this test with STOCKADE_BLESS=1"
    );
}
