//! G20–G23: code that the host's git would run later, planted in ways that no single name shows.
//!
//! Every leak here is an effect: git on the host does ordinary work, and a program that only the
//! attack knows of leaves a file in `@OUT@`.

use stockade_test::case::Control;
use stockade_test::{Case, Need, attack, host};

/// A repository with two commits in the project; git on the host trusts any owner.
const REPO: &str = "git config --global safe.directory '*'; git config --global user.email a@b.test
    git config --global user.name n; git init -q -b main . && echo 1 > f && git add . && git commit -qm one &&
    echo 2 > f && git commit -qam two";

/// A directory that git takes for a repository whose configuration runs a program. It is there
/// before the run: the redirect to it is all that the attack has to make.
const EVIL: &str = "mkdir -p evil/objects evil/refs; echo 'ref: refs/heads/main' > evil/HEAD
    printf '[core]\\n repositoryformatversion = 0\\n bare = false\\n worktree = @P@\\n fsmonitor = \"touch @OUT@/pwned; false\"\\n' > evil/config";

/// An executable in the project that leaves the file which nobody else leaves.
const HOOK: &str = "printf '#!/bin/sh\\ntouch @OUT@/pwned\\n' > hook; chmod +x hook;";

/// A remote of the host's own, one commit behind.
const ORIGIN: &str = "git init -q --bare @OUT@/origin.git; git remote add origin @OUT@/origin.git; git push -qu origin main
    git commit -q --allow-empty -m three";

/// Stopped in the middle of a rebase, in the repository of the current directory.
const REBASE: &str = "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -qi HEAD~1";

/// A shell as process 1 of new namespaces, so that the attack on process 1 has a target that is not
/// the host's.
const OWN_INIT: &str = "unshare -Urmpf --mount-proc --kill-child @W@/init";
const OWN_INIT_SETUP: &str =
    "printf '#!/bin/sh\\n\"$@\"\\nexit $?\\n' > @W@/init; chmod +x @W@/init";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = redirects();
    cases.extend(overlays());
    cases.extend(remotes());
    cases.extend(targets());
    cases.extend(prepared());
    cases
        .into_iter()
        .map(|case| case.needs(Need::Tool("git")))
        .collect()
}

fn redirects() -> Vec<Case> {
    vec![
        attack("G20", "exchange a worktree's .git with another file")
            .setup(REPO)
            .setup(EVIL)
            .setup("git worktree add -q wt")
            .python(
                "for name in 'wxyz': open(name, 'w').write('gitdir: @P@/evil\\n')
attempt('renameat2', AT_FDCWD, b'w', AT_FDCWD, b'wt/.git', 2)
# The same with one made in this run, from both sides.
for name in 'ab': os.mkdir(name); trying('good', lambda: open(name + '/.git', 'w').write('gitdir: @P@/.git/worktrees/wt\\n'))
attempt('renameat2', AT_FDCWD, b'a/.git', AT_FDCWD, b'x', 2)
attempt('renameat2', AT_FDCWD, b'y', AT_FDCWD, b'b/.git', 2)",
            )
            .leak(host("git -C wt status; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; git -C a status; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; git -C b status; test -e @OUT@/pwned")),
        attack("G20b", "exchange the repository's directory with a file that redirects")
            .setup(REPO)
            .setup(EVIL)
            .python(
                "open('x', 'w').write('gitdir: @P@/evil\\n')
attempt('renameat2', AT_FDCWD, b'x', AT_FDCWD, b'.git', 2)
os.mkdir('s'); os.mkdir('t'); open('s/x', 'w').write('gitdir: ../evil\\n'); open('t/y', 'w').close()
here, there = os.open('s', os.O_PATH), os.open('t', os.O_PATH)
attempt('renameat2', here, b'x', there, b'y', 2)
attempt('renameat2', there, b'y', here, b'.git', 0)",
            )
            .leak(host("git status; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; git -C s status; test -e @OUT@/pwned")),
        attack("G20c", "make a redirect, then rename the directory that it is in")
            .setup(REPO)
            .setup(EVIL)
            .sh("mkdir -p s a/b; echo 'gitdir: @P@/evil' > s/.git; mv s t
                 echo 'gitdir: @P@/evil' > a/b/.git; mv a c")
            .leak(host("git -C t status; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; git -C c/b status; test -e @OUT@/pwned")),
        attack("G20d", "write to a redirect through a hard link")
            .setup(REPO)
            .setup(EVIL)
            .setup("git worktree add -q wt")
            .sh("ln wt/.git x; echo 'gitdir: @P@/evil' > x")
            .leak(host("git -C wt status; test -e @OUT@/pwned")),
        attack("G20e", "the same with commondir, for a worktree outside the project")
            .setup(REPO)
            .setup(EVIL)
            .setup("git worktree add -q @OUT@/wt")
            .sh("ln .git/worktrees/wt/commondir x; echo @P@/evil > x; echo @P@/evil > .git/worktrees/wt/commondir
                 echo @P@/evil > y; mv y .git/worktrees/wt/commondir")
            .leak(host("git -C @OUT@/wt status; test -e @OUT@/pwned")),
        attack("G20f", "use up the processor time of process 1 while a redirect waits to be judged")
            .guarded()
            .needs(Need::Userns)
            .setup(REPO)
            .setup(EVIL)
            .setup(OWN_INIT_SETUP)
            .python(
                "
import resource
os.mkdir('s')
trying('prlimit', lambda: resource.prlimit(1, resource.RLIMIT_CPU, (1, 1)))
trying('redirect', lambda: open('s/.git', 'w').write('gitdir: @P@/evil\\n'))
# A control has won already; inside, the calls use up the time of whoever performs them.
end = time.monotonic() + (4 * @RACE@ if @RACE@ < 60 else 0)
while time.monotonic() < end:
    os.close(os.open('z', os.O_CREAT | os.O_WRONLY)); os.unlink('z')",
            )
            .control(Control::Behind(OWN_INIT))
            .leak(host("git -C s status; test -e @OUT@/pwned")),
        attack("G20g", "one run holds a descriptor of what another moves into place")
            .setup(REPO)
            .setup(EVIL)
            .setup("git worktree add -q s; mv s/.git x; mkfifo @W@/in @W@/out")
            .launcher(
                "@RUN@ sh -c 'exec 5<> x; echo @MARK@; read line; echo \"gitdir: @P@/evil/././././././././.\" >&5' < @W@/in > @W@/out & pid=$!
                 exec 3> @W@/in; read line < @W@/out; echo $line
                 @RUN@ sh -c 'echo @MARK@; mv x s/.git'
                 echo >&3; exec 3>&-; wait $pid",
            )
            .leak(host("git -C s status; test -e @OUT@/pwned")),
        attack("G20l", "one run holds a link of what another moves into place")
            .setup(REPO)
            .setup(EVIL)
            .setup("git worktree add -q s; mv s/.git x; mkfifo @W@/in @W@/out")
            .launcher(
                "@RUN@ sh -c 'ln x y; echo @MARK@; read line; echo \"gitdir: @P@/evil\" > y' < @W@/in > @W@/out & pid=$!
                 exec 3> @W@/in; read line < @W@/out; echo $line
                 @RUN@ sh -c 'echo @MARK@; mv x s/.git'
                 echo >&3; exec 3>&-; wait $pid",
            )
            .leak(host("git -C s status; test -e @OUT@/pwned")),
        attack("G20h", "repository, redirect and configuration, all made inside")
            .setup("git config --global safe.directory '*'")
            .sh(format!(
                "{EVIL}; mkdir s t; echo 'gitdir: @P@/evil' > s/.git; echo 'gitdir: @P@/evil' > x; mv x t/.git"
            ))
            .leak(host("git -C s status; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; git -C t status; test -e @OUT@/pwned")),
    ]
}

fn overlays() -> Vec<Case> {
    let committed = |attack: &str| {
        format!(
            "s=$(set -- @RUN@; echo $1)
             cat > @W@/attack <<'ATTACK'
echo @MARK@ >&2
{attack}
ATTACK
             if test -n \"$s\"; then $s run -q --overlay -- sh @W@/attack; $s ws commit; else sh @W@/attack; fi; true"
        )
    };
    vec![
        attack("G20i", "bring a redirect out of an overlay by commit")
            .setup(REPO)
            .setup(EVIL)
            .launcher(committed(
                "mkdir s a; echo 'gitdir: @P@/evil' > s/.git; echo 'gitdir: @P@/evil' > a/.git; mv a c",
            ))
            .leak(host("git -C s status; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; git -C c status; test -e @OUT@/pwned")),
        attack("G20j", "bring hooks and configuration out of an overlay by commit")
            .setup(REPO)
            .launcher(committed(&format!(
                "{HOOK} cp -p hook .git/hooks/pre-commit; git init -q n; cp -p hook n/.git/hooks/pre-commit
                 git config core.fsmonitor 'touch @OUT@/monitored; false'"
            )))
            .leak(host("git status; test -e @OUT@/monitored"))
            .leak(host("git commit -q --allow-empty -m x; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; git -C n commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("G20k", "bring shell and editor files out of an overlay by commit")
            .setup(REPO)
            .launcher(committed("echo evil > .bashrc; mkdir .vscode; echo evil > .vscode/tasks.json; echo fine > g"))
            .works(host("test -e g"))
            .leak(host("test -e .bashrc"))
            .leak(host("test -e .vscode/tasks.json")),
    ]
    .into_iter()
    .map(|case| {
        case.needs(Need::Userns)
            .cli_only("the command line commits overlays")
    })
    .collect()
}

fn remotes() -> Vec<Case> {
    let bare = format!(
        "{HOOK} git init -q --bare build/cache; mkdir -p build/cache/hooks
         cp -p hook build/cache/hooks/post-receive; cp -p hook build/cache/hooks/update;"
    );
    vec![
        attack("G21", "make a bare repository with hooks the host's remote")
            .setup(REPO)
            .setup(ORIGIN)
            .sh(format!("{bare} git remote set-url origin @P@/build/cache"))
            .leak(host("git push -q; test -e @OUT@/pwned")),
        attack("G21b", "the same by the remote of a branch")
            .setup(REPO)
            .setup(ORIGIN)
            .sh(format!(
                "{bare} git config branch.main.remote @P@/build/cache; git config branch.main.merge refs/heads/main"
            ))
            .leak(host("git push -q; test -e @OUT@/pwned")),
        attack("G21c", "the same by the remote that a branch is pushed to")
            .setup(REPO)
            .setup(ORIGIN)
            .sh(format!(
                "{bare} git config branch.main.pushRemote @P@/build/cache; git config remote.pushDefault @P@/build/cache"
            ))
            .leak(host("git -c push.default=current push -q; test -e @OUT@/pwned")),
        attack("G21d", "a bare repository by hand, moved into place, reached by a relative address")
            .setup(REPO)
            .setup(ORIGIN)
            .sh(format!(
                "{HOOK} mkdir -p t/objects t/refs t/h; echo 'ref: refs/heads/main' > t/HEAD; cp -p hook t/h/post-receive
                 mv t/h t/hooks; printf '[core]\\n bare = true\\n' > t/config; mkdir build; mv t build/cache
                 git remote set-url --push origin ./build/cache"
            ))
            .leak(host("git push -q; test -e @OUT@/pwned")),
        attack("G21e", "a fetch that runs a program which the configuration names")
            .setup(REPO)
            .setup(ORIGIN)
            .sh("git init -q --bare build/cache; printf '#!/bin/sh\\ntouch @OUT@/pwned\\nexec \"$@\"\\n' > pack; chmod +x pack
                 git push -q @P@/build/cache main; git config remote.origin.uploadpack '@P@/pack git-upload-pack'
                 git remote set-url origin @P@/build/cache")
            .leak(host("git fetch -q; test -e @OUT@/pwned")),
    ]
}

fn targets() -> Vec<Case> {
    vec![
        attack("G22", "plant a hook in the directory of core.hooksPath")
            .setup(REPO)
            .setup("mkdir .husky; git config core.hooksPath .husky")
            .sh(format!("{HOOK} cp -p hook .husky/pre-commit; mv hook .husky/post-commit"))
            .leak(host("git commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("G22b", "change a hook in the directory of core.hooksPath")
            .setup(REPO)
            .setup("mkdir -p .config/hooks; printf '#!/bin/sh\\ntrue\\n' > .config/hooks/pre-commit
                    chmod +x .config/hooks/pre-commit; git config core.hooksPath .config/hooks")
            .sh("echo 'touch @OUT@/pwned' >> .config/hooks/pre-commit")
            .leak(host("git commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("G22c", "put another directory in place of that of core.hooksPath")
            .setup(REPO)
            .setup("mkdir .husky; git config core.hooksPath .husky")
            .sh(format!("{HOOK} mkdir n; mv hook n/pre-commit; mv .husky away; mv n .husky"))
            .leak(host("git commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("G22d", "change a file that the configuration includes")
            .setup(REPO)
            .setup("echo '[user]' > team.gitconfig; git config include.path ../team.gitconfig")
            .sh("printf '[core]\\n fsmonitor = \"touch @OUT@/pwned; false\"\\n' >> team.gitconfig
                 printf '[core]\\n fsmonitor = \"touch @OUT@/pwned; false\"\\n' > t; mv t team.gitconfig")
            .leak(host("git status; test -e @OUT@/pwned")),
        attack("G22i", "change a script of the project that a hook is a link to")
            .setup(REPO)
            .setup("mkdir scripts; printf '#!/bin/sh\\ntrue\\n' > scripts/check; chmod +x scripts/check; ln -s ../../scripts/check .git/hooks/pre-commit")
            .sh(format!("{HOOK} echo 'touch @OUT@/pwned' >> scripts/check; cp -p hook t; mv t scripts/check; mkdir n; mv hook n/check; mv scripts away; mv n scripts"))
            .leak(host("git commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("G22j", "plant a hook where the directory of hooks is a link to")
            .setup(REPO)
            .setup("mkdir githooks; rm -rf .git/hooks; ln -s ../githooks .git/hooks")
            .sh(format!("{HOOK} cp -p hook githooks/pre-commit; mkdir n; mv hook n/pre-commit; mv githooks away; mv n githooks"))
            .leak(host("git commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("G22k", "change hooks of a repository below the workspace that names their directory")
            .setup(REPO)
            .setup("for r in a b c; do git init -q $r && mkdir $r/.husky && git -C $r config core.hooksPath .husky || exit 1; done
                    mkdir a/.husky/_; git -C a config core.hooksPath .husky/_")
            .sh(format!("{HOOK} cp -p hook a/.husky/pre-commit; cp -p hook a/.husky/_/pre-commit; mkdir n; cp -p hook n/pre-commit; mv b/.husky away
                 mv n b/.husky; mkdir m; cp -p hook m/pre-commit; rm -rf c/.husky; ln -s ../m c/.husky; echo ok > a/.husky/notes"))
            .works(host("test -e a/.husky/notes"))
            .leak(host("git -C a commit -q --allow-empty -m x; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; git -C b commit -q --allow-empty -m x; test -e @OUT@/pwned"))
            .leak(host("rm -f @OUT@/pwned; git -C c commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("G22e", "append to what a rebase in progress has to do")
            .setup(REPO)
            .setup(REBASE)
            .sh("echo 'exec touch @OUT@/pwned' >> .git/rebase-merge/git-rebase-todo
                 echo 'exec touch @OUT@/pwned' > t; mv t .git/rebase-merge/git-rebase-todo")
            .leak(host("git rebase --continue; test -e @OUT@/pwned")),
        attack("G22f", "the same in the main repository, from a worktree")
            .setup("git config --global safe.directory '*'; git config --global user.email a@b.test
                    git config --global user.name n; git init -q -b main @OUT@/main && cd @OUT@/main && echo 1 > f &&
                    git add . && git commit -qm one && echo 2 > f && git commit -qam two && git worktree add -q @P@/wt -b w &&
                    GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -qi HEAD~1")
            .cwd("@P@/wt")
            .sh("echo 'exec touch @OUT@/pwned' >> @OUT@/main/.git/rebase-merge/git-rebase-todo
                 echo 'exec touch @OUT@/pwned' > t; cp t @OUT@/main/.git/rebase-merge/git-rebase-todo")
            .leak(host("cd @OUT@/main && git rebase --continue; test -e @OUT@/pwned")),
        attack("G22g", "leave a rebase with a command in it for the host to continue")
            .setup(REPO)
            .sh("GIT_SEQUENCE_EDITOR='printf \"break\\nexec touch @OUT@/pwned\\n\" >' git rebase -qi HEAD~1")
            .leak(host("git rebase --continue; test -e @OUT@/pwned")),
        attack("G22h", "make the state of a rebase by hand")
            .setup(REPO)
            .setup(REBASE)
            .setup("cp -r .git/rebase-merge saved; git rebase --quit; git checkout -q main")
            .sh("echo 'exec touch @OUT@/pwned' >> saved/git-rebase-todo; cp -r saved .git/rebase-merge
                 test -e .git/rebase-merge || mv saved .git/rebase-merge")
            .leak(host("git rebase --continue; test -e @OUT@/pwned")),
    ]
}

fn prepared() -> Vec<Case> {
    vec![
        attack("G23", "a prepared directory that calls itself a worktree widens the grant")
            .setup(
                "mkdir -p @OUT@/g/worktrees/w @OUT@/g/objects @OUT@/g/refs; cd @OUT@/g/worktrees/w; echo 'gitdir: .' > .git
                 echo @OUT@/g/worktrees/w/.git > gitdir; echo ../.. > commondir; echo 'ref: refs/heads/main' > HEAD
                 echo 'ref: refs/heads/main' > ../../HEAD",
            )
            .cwd("@OUT@/g/worktrees/w")
            .may_refuse()
            .sh("for f in planted HEAD refs/r objects/o worktrees/other; do echo evil > ../../$f; done; echo x > own")
            .leak(host("test -e @OUT@/g/planted"))
            .leak(host("grep -q evil @OUT@/g/HEAD"))
            .leak(host("test -e @OUT@/g/refs/r"))
            .leak(host("test -e @OUT@/g/objects/o"))
            .leak(host("test -e @OUT@/g/worktrees/other")),
        attack("G23b", "the same around a directory that is no repository at all")
            .setup(
                "mkdir -p @OUT@/docs/worktrees/w; echo text > @OUT@/docs/page; cd @OUT@/docs/worktrees/w; echo 'gitdir: .' > .git
                 echo @OUT@/docs/worktrees/w/.git > gitdir; echo @OUT@/docs > commondir; echo 'ref: refs/heads/main' > HEAD",
            )
            .cwd("@OUT@/docs/worktrees/w")
            .may_refuse()
            .sh("echo evil > @OUT@/docs/page; echo evil > @OUT@/docs/index; mkdir @OUT@/docs/refs; true")
            .leak(host("grep -q evil @OUT@/docs/page"))
            .leak(host("test -e @OUT@/docs/index -o -e @OUT@/docs/refs")),
    ]
}
