//! G: git works, and nothing it later runs on the host can be planted.

use stockade_test::case::Control;
use stockade_test::{
    Case, Flag, HostSide, Need, allowed, attack, exits, host, not, prints, quiet, stdout_is,
};

/// A repository with one commit in the project.
const REPO: &str =
    "git init -q -b main . && git config user.email a@b.test && git config user.name n
    echo 1 > f && git add . && git commit -qm one";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = work();
    cases.extend(hooks());
    cases.extend(config());
    cases.extend(redirects());
    cases
        .into_iter()
        .map(|case| case.needs(Need::Tool("git")))
        .collect()
}

fn work() -> Vec<Case> {
    vec![
        allowed("G01", "add and commit")
            .setup(REPO)
            .sh("echo 2 > g; git status --short && git add . && git commit -qm second")
            .works(exits(0))
            .works(host("git -c safe.directory='*' log --oneline | grep -q second")),
        allowed("G01b", "branch, rebase, stash, tag, gc")
            .setup(REPO)
            .sh("set -e; git checkout -qb topic; echo t > t; git add .; git commit -qm topic
                 git checkout -q main; echo m > m; git add .; git commit -qm m; git checkout -q topic
                 git rebase -q main; echo dirty >> t; git stash -q; git stash pop -q; git tag v1
                 git checkout -q -- t; git checkout -q main; git merge -q topic; git branch -d topic; git gc -q")
            .works(exits(0))
            .works(host("git -c safe.directory='*' log --oneline | grep -q topic")),
        allowed("G04", "objects, refs, logs and index can be written")
            .setup(REPO)
            .sh("echo x | git hash-object -w --stdin && git update-ref refs/heads/new HEAD &&
                 git update-index --refresh && git symbolic-ref HEAD refs/heads/new && git reflog -1")
            .works(exits(0))
            .works(host("test -e .git/refs/heads/new")),
        allowed("G10", "a parent repository is found from below")
            .setup(REPO)
            .setup("mkdir sub")
            .cwd("@P@/sub")
            .sh("git rev-parse --show-toplevel")
            .works(stdout_is("@P@")),
        attack("G12", "the launcher walks the project")
            .setup("for i in 1 2 3 4 5; do mkdir -p t$i/deep; echo > t$i/deep/f; done")
            .setup(REPO)
            .side(HostSide::Watch("@P@/t1"))
            .side(HostSide::Watch("@P@/t3/deep"))
            .side(HostSide::Watch("@P@/t5"))
            .sh("true")
            .control(Control::Script("find . > /dev/null"))
            .leak(not(quiet())),
        allowed("G15", "clone a local repository into the project")
            .setup("git init -q -b main @OUT@/src && cd @OUT@/src && git config user.email a@b.test &&
                    git config user.name n && echo 1 > f && git add . && git commit -qm one")
            .sh("git clone -q @OUT@/src c && cat c/f && cd c && git log --oneline | grep -q one")
            .works(exits(0))
            .works(host("test -e c/.git/HEAD")),
        allowed("G16", "init, remote add, upstream")
            .sh("set -e; git init -q -b main n; cd n; git config user.email a@b.test
                 git config user.name n; echo 1 > f; git add .; git commit -qm one
                 git remote add origin https://example.test/x.git; git remote set-url origin https://example.test/y.git
                 git branch -q side; git config branch.side.remote origin")
            .works(exits(0))
            .works(host("grep -q y.git n/.git/config")),
        allowed("G17", "a worktree inside the project")
            .setup(REPO)
            .sh("git worktree add -q wt -b w && cd wt && echo w > w && git add . && git commit -qm in-wt")
            .works(exits(0))
            .works(host("git -c safe.directory='*' log --oneline w | grep -q in-wt")),
    ]
}

fn hooks() -> Vec<Case> {
    let planted = "printf '#!/bin/sh\\ntouch @OUT@/pwned\\n' > hook; chmod +x hook;";
    let runs = "git -c safe.directory='*' -c user.name=n -c user.email=e commit -q --allow-empty -m h; \
                test -e @OUT@/pwned";
    vec![
        attack("G02", "plant a hook")
            .setup(REPO)
            .sh(format!(
                "{planted} cat hook > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
            ))
            .leak(host(runs)),
        attack("G02b", "plant a hook where there is no hooks directory")
            .setup(REPO)
            .setup("rm -rf .git/hooks")
            .sh(format!(
                "{planted} mkdir .git/hooks; cp -p hook .git/hooks/pre-commit"
            ))
            .leak(host(runs)),
        attack("G02c", "plant a hook by rename, link and symlink")
            .setup(REPO)
            .sh(format!(
                "{planted} mv hook .git/hooks/pre-commit; {planted} ln hook .git/hooks/post-commit
                 ln -s @P@/hook .git/hooks/commit-msg"
            ))
            .leak(host("ls .git/hooks | grep -v sample | grep -q commit"))
            .leak(host(runs)),
        attack("G02d", "put another hooks directory in place")
            .setup(REPO)
            .sh(format!(
                "{planted} mkdir h; mv hook h/pre-commit; mv .git/hooks old; mv h .git/hooks"
            ))
            .leak(host(runs)),
        attack(
            "G09",
            "plant a hook in a repository that does not exist yet",
        )
        .sh(format!(
            "git init -q -b main .; {planted} mkdir -p .git/hooks; cp -p hook .git/hooks/pre-commit"
        ))
        .leak(host(runs)),
        attack("G09b", "make a repository elsewhere and move it into place")
            .sh(format!(
                "mkdir x; cd x; git init -q -b main .; {planted} mv .git g; mkdir -p g/hooks
                 cp -p hook g/hooks/pre-commit; mv g ../.git"
            ))
            .leak(host(runs)),
        attack("G13", "plant a hook in a nested repository made by hand")
            .sh(format!(
                "{planted} mkdir -p n/.git/hooks n/.git/objects n/.git/refs
                 echo 'ref: refs/heads/main' > n/.git/HEAD; cp -p hook n/.git/hooks/pre-commit"
            ))
            .leak(host("test -x n/.git/hooks/pre-commit")),
        attack(
            "G07",
            "plant a hook or configuration in a submodule's directory",
        )
        .setup(REPO)
        .setup(
            "mkdir -p .git/modules/m/hooks; echo '[core]' > .git/modules/m/config
                    echo 'ref: refs/heads/main' > .git/modules/m/HEAD",
        )
        .sh(format!(
            "{planted} cp hook .git/modules/m/hooks/pre-commit
                 echo 'fsmonitor = evil' >> .git/modules/m/config"
        ))
        .leak(host("test -e .git/modules/m/hooks/pre-commit"))
        .leak(host("grep -q evil .git/modules/m/config")),
    ]
}

fn config() -> Vec<Case> {
    vec![
        attack("G03", "set a key that runs code")
            .setup(REPO)
            .sh("git config core.fsmonitor @OUT@/evil")
            .leak(host("grep -qi fsmonitor .git/config"))
            .boxed(not(exits(0))),
        allowed("G03b", "the same with the opt-in")
            .flag(Flag::GitConfig)
            .setup(REPO)
            .sh("git config core.fsmonitor false")
            .works(exits(0))
            .works(host("grep -qi fsmonitor .git/config")),
        allowed("G03c", "keys that neither run code nor redirect")
            .setup(REPO)
            .sh("set -e; git config user.name other; git remote add o https://e.test/r.git
                 git config branch.main.remote o; git config branch.main.merge refs/heads/main")
            .works(exits(0))
            .works(host("grep -q e.test .git/config && grep -q other .git/config")),
        attack("G03d", "every key that runs code or redirects")
            .setup(REPO)
            .sh("for key in core.hooksPath core.sshCommand core.editor core.pager core.askPass alias.st \
                     filter.x.clean filter.x.smudge filter.x.process include.path includeIf.onbranch:main.path \
                     remote.o.uploadpack remote.o.receivepack remote.o.vcs uploadpack.packObjectsHook \
                     credential.helper diff.external diff.x.command diff.x.textconv merge.x.driver \
                     gpg.program gpg.ssh.program core.gitProxy core.worktree sequence.editor \
                     url.file:///evil.insteadOf protocol.ext.allow submodule.x.update http.proxy \
                     man.x.cmd browser.x.cmd difftool.x.cmd mergetool.x.cmd pager.log init.templateDir \
                     sendemail.smtpServer interactive.diffFilter core.alternateRefsCommand
                 do git config \"$key\" evil-@ID@ && echo \"set-$key\"; done; true")
            .leak(host("grep -q evil-@ID@ .git/config"))
            .leak(prints("set-core.hooksPath"))
            .leak(prints("set-core.sshCommand"))
            .leak(prints("set-alias.st"))
            .leak(prints("set-filter.x.clean"))
            .leak(prints("set-include.path"))
            .leak(prints("set-diff.external"))
            .leak(prints("set-core.worktree")),
        attack("G03e", "write the configuration without git")
            .setup(REPO)
            .sh("printf '[core]\\n fsmonitor = a-@ID@\\n' >> .git/config
                 cp .git/config c; printf '[core]\\n fsmonitor = b-@ID@\\n' >> c; mv c .git/config
                 printf '[core]\\n fsmonitor = c-@ID@\\n' > d; cp d .git/config; cat d > .git/config
                 ln -f d .git/config; sed -i 's/bare.*/fsmonitor = e-@ID@/' .git/config; truncate -s 0 .git/config")
            .leak(host("grep -q 'fsmonitor = .-@ID@' .git/config || test ! -s .git/config")),
        attack("G03f", "spell a dangerous key so that a filter might miss it")
            .setup(REPO)
            .sh("w() { cp .git/config .git/config.lock; printf \"$1\" >> .git/config.lock; mv .git/config.lock .git/config; }
                 w '[CORE]\\n\\tFsMonitor=x-@ID@\\n'; w '[core] fsmonitor = x-@ID@\\n'
                 w '[core]\\n fsmonitor = \\\\\\n x-@ID@\\n'; w '[user]\\n name = a\\n[core]\\n fsmonitor = x-@ID@ # c\\n'
                 w '\\357\\273\\277[core]\\n fsmonitor = x-@ID@\\n'
                 w '[core]fsmonitor=x-@ID@\\r\\n'; w '[ core]\\n fsmonitor = x-@ID@\\n'; true")
            .leak(host("grep -q x-@ID@ .git/config")),
        attack("G08", "let git's own lock file carry the change")
            .setup(REPO)
            .sh("cp .git/config .git/config.lock; printf '[alias]\\n x = !evil-@ID@\\n' >> .git/config.lock
                 mv .git/config.lock .git/config")
            .leak(host("grep -q evil-@ID@ .git/config")),
        attack("G08b", "change a lock file after it was judged")
            .setup(REPO)
            .python(
                r"
# A writer keeps the lock file open and writes to it after the rename.
import shutil
shutil.copy('.git/config', '.git/config.lock')
fd = os.open('.git/config.lock', os.O_RDWR | os.O_APPEND)
os.link('.git/config.lock', 'twin') if not os.path.exists('twin') else None
try:
    os.rename('.git/config.lock', '.git/config')
except OSError as error:
    print(error)
os.write(fd, b'[core]\n fsmonitor = late-@ID@\n')
open('twin', 'a').write('[core]\n fsmonitor = twin-@ID@\n')
",
            )
            .leak(host("grep -q late-@ID@ .git/config"))
            .leak(host("grep -q twin-@ID@ .git/config")),
        attack("G14", "plant a bare repository whose configuration runs code")
            .sh("mkdir -p b/objects b/refs; echo 'ref: refs/heads/main' > b/HEAD
                 printf '[core]\\n bare = false\\n worktree = ..\\n fsmonitor = evil-@ID@\\n' > b/config")
            .leak(host("grep -q evil-@ID@ b/config && git -c safe.directory='*' -C b config core.fsmonitor")),
    ]
}

fn redirects() -> Vec<Case> {
    let main =
        "git init -q -b main @OUT@/main && cd @OUT@/main && git config user.email a@b.test &&
        git config user.name n && echo 1 > f && git add . && git commit -qm one &&
        git worktree add -q @P@/wt -b w";
    vec![
        attack("G05", "commit in a linked worktree, without reach into the main repository")
            .setup(main)
            .cwd("@P@/wt")
            .sh("echo 2 > g && git add . && git commit -qm from-wt
                 echo x > @OUT@/main/.git/hooks/pre-commit; echo x > @OUT@/main/planted
                 git config core.fsmonitor evil; printf '[core]\\n pager = evil\\n' >> @OUT@/main/.git/config")
            .works(host("git -c safe.directory='*' -C @OUT@/main log --oneline w | grep -q from-wt"))
            .leak(host("test -e @OUT@/main/.git/hooks/pre-commit"))
            .leak(host("test -e @OUT@/main/planted"))
            .leak(host("grep -q evil @OUT@/main/.git/config")),
        attack("G05b", "point .git at a directory that does not point back")
            .setup("mkdir -p @OUT@/victim/objects @OUT@/victim/refs; echo old > @OUT@/victim/f
                    echo 'ref: refs/heads/main' > @OUT@/victim/HEAD; echo 'gitdir: @OUT@/victim' > .git")
            .sh("echo x > @OUT@/victim/f; echo x > @OUT@/victim/g; echo x > @OUT@/victim/objects/o")
            .leak(host("grep -qx x @OUT@/victim/f"))
            .leak(host("test -e @OUT@/victim/g"))
            .leak(host("test -e @OUT@/victim/objects/o"))
            .may_refuse(),
        attack("G05c", "point a worktree's .git elsewhere for the next run")
            .setup(main)
            .cwd("@P@/wt")
            .sh("echo 'gitdir: @P@/wt/evil' > .git; mv .git g; echo 'gitdir: @P@/wt/evil' > .git")
            .leak(host("grep -q evil wt/.git")),
        attack("G06", "redirect git with commondir, config.worktree and alternates of hooks")
            .setup(REPO)
            .sh("echo ../evil > .git/commondir; printf '[core]\\n fsmonitor = evil\\n' > .git/config.worktree
                 echo ../evil > t; mv t .git/commondir; ln -s ../evil .git/commondir")
            .leak(host("test -e .git/commondir -o -L .git/commondir"))
            .leak(host("test -e .git/config.worktree")),
        attack("G11", "replace .git by a file that redirects")
            .setup(REPO)
            .sh("mv .git g2; echo 'gitdir: @P@/evil' > .git")
            .leak(host("test -f .git")),
        attack("G11b", "remove the repository's directory")
            .setup(REPO)
            .sh("rm -rf .git")
            .leak(not(host("test -e .git/config"))),
        attack("G11c", "plant a .git file in a directory that has none")
            .sh("mkdir -p sub evil; echo 'gitdir: @P@/evil' > sub/.git; mkdir -p evil/objects evil/refs
                 echo 'ref: refs/heads/main' > evil/HEAD; printf '[core]\\n fsmonitor = evil-@ID@\\n' > evil/config")
            .leak(host("git -c safe.directory='*' -C sub config core.fsmonitor | grep -q evil-@ID@")),
    ]
}
