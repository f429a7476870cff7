//! G27–G29: what a run over an overlay wrote, where no file is mediated, and a commit judges it.
//!
//! Every class of planting has a row. The control runs the same commands bare.

use stockade_test::{Case, Need, attack, host};

const REPO: &str = "git config --global safe.directory '*'; git config --global user.email a@b.test
    git config --global user.name n; git config --global protocol.file.allow always
    git init -q -b main . && echo 1 > f && git add . && git commit -qm one && echo 2 > f && git commit -qam two";

/// A remote of the host's own, one commit behind.
const ORIGIN: &str = "git init -q --bare @OUT@/origin.git; git remote add origin @OUT@/origin.git; git push -qu origin main
    git commit -q --allow-empty -m three";

/// An executable in the project that leaves the file which nobody else leaves.
const HOOK: &str = "printf '#!/bin/sh\\ntouch @OUT@/pwned\\n' > hook; chmod +x hook;";

/// A setting that runs a program at `git status`.
const MONITOR: &str = "[core]\\n\\tfsmonitor = \"touch @OUT@/pwned; false\"\\n";

/// Commands over an overlay that is then committed, or bare.
fn committed(attack: &str) -> String {
    steps(&[(attack, "")])
}

/// Commands one after the other, each over an overlay of which these paths are committed.
fn steps(all: &[(&str, &str)]) -> String {
    let step = |(number, (attack, paths)): (usize, &(&str, &str))| {
        let file = format!("@W@/attack{number}");
        format!(
            "cat > {file} <<'ATTACK'
echo @MARK@ >&2
{attack}
ATTACK
if test -n \"$s\"; then $s run -q --overlay=t -- sh {file}; $s ws commit t {paths}; else sh {file}; fi
"
        )
    };
    let steps: String = all.iter().enumerate().map(step).collect();
    format!("s=$(set -- @RUN@; echo $1)\n{steps}true")
}

const STATUS: &str = "git status; test -e @OUT@/pwned";
const COMMIT: &str = "git commit -q --allow-empty -m x; test -e @OUT@/pwned";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = targets();
    cases.extend(links());
    cases.extend(removals());
    cases.extend(in_parts());
    cases
        .into_iter()
        .map(|case| {
            case.needs(Need::Tool("git"))
                .needs(Need::Userns)
                .cli_only("the command line commits overlays")
        })
        .collect()
}

fn targets() -> Vec<Case> {
    vec![
        attack("G27", "bring hooks that core.hooksPath names out of an overlay")
            .setup(REPO)
            .setup("mkdir .husky; git config core.hooksPath .husky; git add .; git commit -qm husky --allow-empty")
            .launcher(committed(&format!("{HOOK} cp -p hook .husky/pre-commit; echo fine > g")))
            .works(host("test -e g"))
            .leak(host(COMMIT)),
        attack("G27b", "bring a file that include.path names out of an overlay")
            .setup(REPO)
            .setup("echo '[user]' > team.gitconfig; git config include.path ../team.gitconfig")
            .launcher(committed(&format!("printf '{MONITOR}' >> team.gitconfig; echo fine > g")))
            .works(host("test -e g"))
            .leak(host(STATUS)),
        attack("G27c", "bring a bare repository with hooks out of an overlay and push there")
            .setup(REPO)
            .setup(ORIGIN)
            .launcher(committed(&format!(
                "{HOOK} git init -q --bare build/cache; mkdir -p build/cache/hooks; cp -p hook build/cache/hooks/post-receive
                 git remote set-url origin @P@/build/cache"
            )))
            .works(host("test -d build/cache/objects"))
            .leak(host("git push -q; git push -q origin main:x; test -e @OUT@/pwned")),
        attack("G27d", "bring a command of a rebase out of an overlay")
            .setup(REPO)
            .setup("GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -qi HEAD~1")
            .launcher(committed("echo 'exec touch @OUT@/pwned' >> .git/rebase-merge/git-rebase-todo"))
            .leak(host("GIT_EDITOR=true git rebase --continue; test -e @OUT@/pwned")),
        attack("G27e", "bring a set-id program out of an overlay")
            .setup("echo 1 > f")
            .launcher(committed("cp /bin/true run; chmod 4755 run; cp /bin/true group; chmod 2755 group; echo fine > g"))
            .works(host("test -e g"))
            .leak(host("test -u run"))
            .leak(host("test -g group")),
        attack("G27f", "bring hooks and settings of a submodule out of an overlay")
            .setup(REPO)
            .setup("git init -q @OUT@/lib; git -C @OUT@/lib commit -q --allow-empty -m l; git submodule --quiet add @OUT@/lib sub; git commit -qm sub")
            .launcher(committed(&format!(
                "{HOOK} mkdir -p .git/modules/sub/hooks; cp -p hook .git/modules/sub/hooks/post-commit; cp -p hook .git/modules/sub/hooks/pre-commit"
            )))
            .leak(host("git -C sub commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("G27h", "bring hooks of a repository below the workspace out of an overlay")
            .setup(REPO)
            .setup("git init -q lib; git -C lib commit -q --allow-empty -m l; mkdir lib/.husky; git -C lib config core.hooksPath .husky")
            .launcher(committed(&format!("{HOOK} cp -p hook lib/.husky/pre-commit; echo fine > lib/.husky/g")))
            .works(host("test -e lib/.husky/g"))
            .leak(host("git -C lib commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("G27i", "change a script of the project that a hook is a link to, in an overlay")
            .setup(REPO)
            .setup("printf '#!/bin/sh\\n' > check.sh; chmod +x check.sh; mkdir -p .git/hooks; ln -s ../../check.sh .git/hooks/pre-commit")
            .launcher(committed("echo 'touch @OUT@/pwned' >> check.sh"))
            .leak(host(COMMIT)),
        attack("G27j", "store content over an overlay and check it out in a direct run")
            .setup(REPO)
            .launcher(
                "s=$(set -- @RUN@; echo $1)
                 cat > @W@/store <<'ATTACK'
echo @MARK@ >&2
git checkout -qb evil; mkdir .vscode; echo evil > .vscode/tasks.json; git add -A; git commit -qm evil; git checkout -qf main
ATTACK
                 cat > @W@/use <<'ATTACK'
echo @MARK@ >&2
git checkout -qf evil
ATTACK
                 if test -n \"$s\"; then $s run -q --overlay --commit=always -- sh @W@/store; $s run -q -- sh @W@/use
                 else sh @W@/store; sh @W@/use; fi; true",
            )
            .works(host("git rev-parse -q --verify evil"))
            .leak(host("test -e .vscode/tasks.json")),
        attack("G27g", "make a program of a hook in an overlay")
            .setup(REPO)
            .setup("mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch @OUT@/pwned\\n' > .git/hooks/pre-commit; chmod 644 .git/hooks/pre-commit")
            .launcher(committed("chmod +x .git/hooks/pre-commit"))
            .leak(host(COMMIT)),
    ]
}

fn links() -> Vec<Case> {
    vec![
        attack("G28", "bring a link in place of the hooks' directory out of an overlay")
            .setup(REPO)
            .setup("mkdir -p .git/hooks")
            .launcher(committed(&format!(
                "mkdir h; {HOOK} mv hook h/pre-commit; rm -rf .git/hooks; ln -s ../h .git/hooks"
            )))
            .leak(host(COMMIT)),
        attack("G28b", "bring a link in place of a repository out of an overlay")
            .setup(REPO)
            .setup("git init -q lib; git -C lib commit -q --allow-empty -m l; mkdir .vscode")
            .launcher(committed(
                "git init -q other; mkdir other/.vscode; echo evil > other/.vscode/tasks.json; rm -rf lib; ln -s other lib",
            ))
            .leak(host("test -e lib/.vscode/tasks.json")),
        attack("G28c", "keep a second name of a settings file for the next run")
            .setup(REPO)
            .launcher(steps(&[
                ("cp .git/config x; ln -f x .git/config", ""),
                (&format!("printf '{MONITOR}' >> x"), ""),
            ]))
            .leak(host(STATUS)),
        attack("G28d", "bring links in place of settings' directories out of an overlay")
            .setup(REPO)
            .launcher(committed("mkdir a b; echo evil > a/tasks.json; echo evil > b/settings.json; ln -s a .vscode; ln -s b .claude"))
            .works(host("test -d a"))
            .leak(host("test -e .vscode/tasks.json"))
            .leak(host("test -e .claude/settings.json")),
    ]
}

fn removals() -> Vec<Case> {
    let hook = "mkdir -p .git/hooks; printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit";
    vec![
        attack("G29", "remove the repository's hooks and settings in an overlay")
            .setup(REPO)
            .setup(hook)
            .launcher(committed("rm .git/hooks/pre-commit .git/config; echo fine > g"))
            .works(host("test -e g"))
            .leak(host("test ! -e .git/hooks/pre-commit"))
            .leak(host("test ! -e .git/config")),
        attack("G29b", "make the repository anew in an overlay")
            .setup(REPO)
            .setup(hook)
            .launcher(committed(&format!("rm -rf .git; git init -q .; {HOOK} mkdir -p .git/hooks; cp -p hook .git/hooks/post-commit")))
            .leak(host("test ! -e .git/hooks/pre-commit"))
            .leak(host("rm -f .git/hooks/pre-commit; git commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("G29c", "plant in a repository that an overlay renames")
            .setup(REPO)
            .setup("git init -q lib; git -C lib commit -q --allow-empty -m l")
            .launcher(committed(&format!("{HOOK} mkdir -p lib/.git/hooks; cp -p hook lib/.git/hooks/pre-commit; mv lib lib2")))
            .works(host("test -d lib2/.git"))
            .leak(host("git -C lib2 commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("G29d", "plant editor files in a repository that an overlay makes anew")
            .setup(REPO)
            .setup("git init -q lib; git -C lib commit -q --allow-empty -m l")
            .launcher(committed("rm -rf lib; mkdir -p lib/.vscode; echo evil > lib/.vscode/tasks.json; echo fine > lib/g"))
            .works(host("test -e lib/g"))
            .leak(host("test -e lib/.vscode/tasks.json")),
    ]
}

fn in_parts() -> Vec<Case> {
    vec![
        attack("G29e", "plant a hook in what is no repository, and complete it in the next run")
            .setup(REPO)
            .setup(ORIGIN)
            .launcher(steps(&[
                (&format!("{HOOK} mkdir -p b/hooks; cp -p hook b/hooks/post-receive"), ""),
                ("git init -q --bare c; cp -r c/objects c/refs c/HEAD b; git remote set-url origin @P@/b", ""),
            ]))
            .works(host("test -e b/hooks/post-receive"))
            .leak(host("git push -q origin main:x; test -e @OUT@/pwned")),
        attack("G29f", "plant a hook in a repository of which only a part is committed")
            .setup(REPO)
            .setup(ORIGIN)
            .setup("git clone -q --bare . b; mkdir -p b/hooks; git remote set-url origin @P@/b")
            .launcher(steps(&[(
                &format!("{HOOK} cp -r b/refs away; mkdir -p b/hooks; cp -p hook b/hooks/post-receive; test -n \"$STOCKADE_SANDBOX_ACTIVE\" && rm -r b/refs"),
                "b/hooks",
            )]))
            .leak(host("git push -q origin main:x; test -e @OUT@/pwned")),
    ]
}
