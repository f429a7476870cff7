//! G40–G43: symbolic links in git directories, through which git on the host writes elsewhere. G44:
//! protected files that are changed in place.
//!
//! Every leak is an effect: git on the host does ordinary work, and a file or directory outside
//! the project that held something else before has changed.

use stockade_test::{Case, Need, allowed, attack, exits, host};

/// A repository with two commits; git on the host trusts any owner. What links lead to: files that
/// hold a word, and an empty directory. `changes DIRECTORY FILE` does in a repository what git on
/// the host does in the course of a day, and tells whether that changed something outside.
const REPO: &str = "git config --global safe.directory '*'; git config --global user.email a@b.test
    git config --global user.name n; git init -q -b main . && echo 1 > f && git add . && git commit -qm one &&
    echo 2 > f && git commit -qam two; git init -q -b main --bare @OUT@/origin.git
    git remote add origin @OUT@/origin.git; git push -qu origin main
    mkdir @OUT@/dir; for name in a b c d e f g h; do echo safe > @OUT@/$name; done
    cat > @W@/changes <<'END'
cd $1 || exit 1
(git commit -q --allow-empty -m 'touch @OUT@/pwned #'; git fetch -q; git gc -q; git tag x
git commit-graph write; git update-server-info) 2>/dev/null
if test $2 = dir; then test -n \"$(ls -A @OUT@/dir)\"; else test \"$(tr -d '\\0' < @OUT@/$2)\" != safe; fi
END";

/// Another repository in the project, which may be moved and taken apart.
const OTHER: &str = "git clone -q . n && git init -q --bare b.git";

/// A worktree of a repository outside the project, and files that links lead to.
const WORKTREE: &str = "git config --global safe.directory '*'; git config --global user.email a@b.test
    git config --global user.name n; git init -q --bare @OUT@/origin.git; git init -q @OUT@/main; cd @OUT@/main
    git commit -q --allow-empty -m one; git remote add origin @OUT@/origin.git; git push -q origin HEAD
    git worktree add -q -b tree @P@/wt; for name in a b c; do echo safe > @OUT@/$name; done";

/// In the worktree: through these, git on the host would write outside.
const LINKS_OF_WORKTREE: &str = "cd \"$(git rev-parse --git-dir)\" && ln -sf @OUT@/a FETCH_HEAD
    ln -sf @OUT@/b logs/HEAD; ln -sf @OUT@/c COMMIT_EDITMSG";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = made();
    cases.extend(moved());
    cases.extend(overlays());
    cases.extend(ordinary());
    cases
        .into_iter()
        .map(|case| case.needs(Need::Tool("git")))
        .collect()
}

fn made() -> Vec<Case> {
    vec![
        attack("G40", "link files that git writes to files outside")
            .setup(REPO)
            .sh("cd .git; ln -sf @OUT@/a logs/HEAD; ln -sf @OUT@/b logs/refs/heads/main; ln -sf @OUT@/c COMMIT_EDITMSG
                 ln -sf @OUT@/d FETCH_HEAD; ln -sf @OUT@/e objects/info/commit-graph; ln -sf @OUT@/f gc.pid")
            .leak(host("sh @W@/changes . a"))
            .leak(host("sh @W@/changes . b"))
            .leak(host("sh @W@/changes . c"))
            .leak(host("sh @W@/changes . d"))
            .leak(host("sh @W@/changes . e"))
            .leak(host("sh @W@/changes . f")),
        attack("G40b", "link the directory of reflogs to one outside")
            .setup(REPO)
            .sh("rm -rf .git/logs; ln -s @OUT@/dir .git/logs")
            .leak(host("sh @W@/changes . dir")),
        attack("G40c", "link the directory of packs to one outside")
            .setup(REPO)
            .sh("rm -rf .git/objects/pack; ln -s @OUT@/dir .git/objects/pack")
            .leak(host("sh @W@/changes . dir")),
        attack("G40d", "link the directory of tags to one outside, by a relative way")
            .setup(REPO)
            .sh("rm -rf .git/refs/tags; ln -s \"$(realpath --relative-to=.git/refs @OUT@/dir)\" .git/refs/tags")
            .leak(host("git tag y; test -e @OUT@/dir/y")),
        attack("G40e", "links in repositories that are not called .git, in worktrees and submodules")
            .setup(REPO)
            .setup("git init -q --bare b.git; git -C b.git config core.logAllRefUpdates always
                    git worktree add -q wt; git -c protocol.file.allow=always submodule --quiet add @OUT@/origin.git sub; git commit -qm sub")
            .sh("mkdir -p b.git/logs/refs/heads; ln -s @OUT@/a b.git/logs/refs/heads/main
                 ln -sf @OUT@/b .git/worktrees/wt/logs/HEAD; ln -sf @OUT@/c .git/modules/sub/COMMIT_EDITMSG")
            .leak(host("git push -q ./b.git main; test \"$(cat @OUT@/a)\" != safe"))
            .leak(host("sh @W@/changes wt b"))
            .leak(host("sh @W@/changes sub c")),
        attack("G40g", "link files in the git directory of the worktree that is the project")
            .setup(WORKTREE)
            .cwd("@P@/wt")
            .sh(LINKS_OF_WORKTREE)
            .leak(host("cd wt; git fetch -q; test \"$(cat @OUT@/a)\" != safe"))
            .leak(host("cd wt; git commit -q --allow-empty -m two; test \"$(cat @OUT@/b)\" != safe"))
            .leak(host("cd wt; git commit -q --allow-empty -m three; test \"$(tr -d '\\0' < @OUT@/c)\" != safe")),
        attack("G40f", "a link like the one by which git tries the file system, to another file")
            .setup(REPO)
            .sh("ln -s testing .git/tABCdef; mv .git/tABCdef .git/COMMIT_EDITMSG; ln -s @OUT@/a .git/testing
                 ln -sf testing .git/COMMIT_EDITMSG")
            .leak(host("sh @W@/changes . a")),
    ]
}

fn moved() -> Vec<Case> {
    vec![
        attack("G41", "make a link elsewhere and bring it into a git directory")
            .setup(REPO)
            .python(
                "
def link(letter):
    os.symlink('@OUT@/' + letter, letter); return letter
trying('rename', lambda: os.rename(link('a'), '.git/logs/HEAD'))
def hard():
    os.unlink('.git/COMMIT_EDITMSG'); os.link(link('b'), '.git/COMMIT_EDITMSG', follow_symlinks=False)
trying('link', hard)
def exchange():
    open('.git/FETCH_HEAD', 'a').close(); attempt('renameat2', AT_FDCWD, link('c').encode(), AT_FDCWD, b'.git/FETCH_HEAD', 2)
trying('exchange', exchange)
def directory():
    os.mkdir('info'); os.symlink('@OUT@/d', 'info/commit-graph'); os.rename('.git/objects/info', 'old'); os.rename('info', '.git/objects/info')
trying('directory', directory)",
            )
            .leak(host("sh @W@/changes . a"))
            .leak(host("sh @W@/changes . b"))
            .leak(host("sh @W@/changes . c"))
            .leak(host("sh @W@/changes . d")),
        attack("G41b", "exchange a directory of a git directory for one with a link")
            .setup(REPO)
            .python(
                "
os.mkdir('l'); os.symlink('@OUT@/a', 'l/HEAD')
attempt('renameat2', AT_FDCWD, b'l', AT_FDCWD, b'.git/logs', 2)",
            )
            .leak(host("sh @W@/changes . a")),
        attack("G41c", "put links into a directory and make a repository of it")
            .setup(REPO)
            .setup(OTHER)
            .sh("mv n/.git x; rm -rf x/refs; ln -sf @OUT@/a x/logs/HEAD; mkdir x/refs; mv x n/.git
                 git init -q m; mv m/.git y; rm -rf y/objects; mkdir -p y/logs z; ln -s @OUT@/b y/logs/HEAD; chmod 0 y/logs; mv y z/.git
                 chmod 755 y/logs z/.git/logs; mkdir -p z/.git/objects")
            .leak(host("sh @W@/changes n a"))
            .leak(host("sh @W@/changes z b")),
        attack("G41d", "put links into a bare repository and complete it")
            .setup(REPO)
            .setup(OTHER)
            .sh("rm -rf b.git/refs; ln -s @OUT@/a b.git/FETCH_HEAD; mkdir -p l/refs/heads; ln -s @OUT@/b l/refs/heads/main
                 mv l b.git/logs; mkdir b.git/refs; mkdir r; mv r b.git/refs")
            .leak(host("git -C b.git fetch -q ..; test \"$(cat @OUT@/a)\" != safe"))
            .leak(host("git -C b.git config core.logAllRefUpdates always; git push -q ./b.git main; test \"$(cat @OUT@/b)\" != safe")),
        attack("G41e", "a link takes the place of what completes a repository")
            .setup(REPO)
            .setup(OTHER)
            .sh("rm -rf b.git/refs; ln -s @OUT@/dir b.git/refs; ln -s @OUT@/dir s; mv s b.git/refs")
            .leak(host("mkdir -p @OUT@/dir/heads; git push -q ./b.git main; test -e @OUT@/dir/heads/main")),
        attack("G41f", "two runs bring a link and a repository together")
            .setup(REPO)
            .setup("mkdir d; for i in $(seq 400); do mkdir -p d/$i/logs d/$i/refs; done")
            .launcher(
                "cat > @W@/race.py <<'END'
import os, sys, time
print('@MARK@', flush=True); plants = sys.argv[1] == 'plants'
open('here-' + sys.argv[1], 'w').close()
limit = time.monotonic() + 20
while not all(map(os.path.exists, ('here-plants', 'here-completes'))) and time.monotonic() < limit: pass
# The clock brings both to the same directory at the same time.
start = os.stat('d').st_mtime // 1 + 2; start = max(start, os.stat('here-plants').st_mtime, os.stat('here-completes').st_mtime) + 0.5
end = time.monotonic() + (0 if @RACE@ >= 60 else 4 * @RACE@)
for i in range(1, 401):
    while time.time() < start + i * 0.005 and time.monotonic() < end: pass
    try:
        if plants: os.symlink('@OUT@/a', f'd/{i}/logs/HEAD')
        elif i % 2: os.mkdir(f'd/{i}/objects')
        else: os.rename(f'd/{i}', f'd/{i}-'); os.mkdir(f'd/{i}'); os.rename(f'd/{i}-', f'd/{i}/.git')
    except OSError: pass
END
                 @RUN@ /usr/bin/python3 @W@/race.py plants & b=$!; @RUN@ /usr/bin/python3 @W@/race.py completes & c=$!
                 wait $b $c",
            )
            .leak(host("for i in d/*; do test -d $i/objects -a -h $i/logs/HEAD && exit 0; test -h $i/.git/logs/HEAD && exit 0; done; exit 1")),
        attack("G41g", "a hard link in a git directory to a file outside")
            .setup(REPO)
            .python(
                "
def link(name, target):
    os.unlink(name); os.link(target, name)
trying('link', lambda: link('.git/COMMIT_EDITMSG', '@OUT@/a'))
trying('descriptor', lambda: attempt('linkat', os.open('@OUT@/b', os.O_PATH), b'', AT_FDCWD, b'.git/FETCH_HEAD', 0x1000))",
            )
            .leak(host("sh @W@/changes . a")),
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
        attack("G42", "bring links in git directories out of an overlay by commit")
            .setup(REPO)
            .setup(OTHER)
            .launcher(committed(
                "ln -sf @OUT@/a .git/logs/HEAD; ln -sf @OUT@/b .git/objects/info/commit-graph; mv n m
                 ln -sf @OUT@/c m/.git/COMMIT_EDITMSG; ln -s @OUT@/d b.git/FETCH_HEAD; git init -q k; ln -s @OUT@/e k/.git/COMMIT_EDITMSG",
            ))
            .leak(host("sh @W@/changes . a"))
            .leak(host("sh @W@/changes . b"))
            .leak(host("sh @W@/changes m c"))
            .leak(host("git -C b.git fetch -q ..; test \"$(cat @OUT@/d)\" != safe"))
            .leak(host("sh @W@/changes k e")),
        attack("G42b", "complete a repository around a link of the host in an overlay")
            .setup(REPO)
            .setup("git init -q --bare b.git; rm -rf b.git/refs; ln -s @OUT@/a b.git/FETCH_HEAD")
            .launcher(committed("mkdir b.git/refs"))
            .leak(host("git -C b.git fetch -q ..; test \"$(cat @OUT@/a)\" != safe")),
    ]
    .into_iter()
    .map(|case| {
        case.needs(Need::Userns)
            .cli_only("the command line commits overlays")
    })
    .collect()
}

fn ordinary() -> Vec<Case> {
    vec![
        allowed("G43", "git finds out that the file system has links")
            .sh("git init -q n; git init -q --bare b.git; git init -q --separate-git-dir=s w
                 git -C n config core.symlinks; git -C b.git config core.symlinks; git -C w config core.symlinks; true")
            .works(exits(0))
            .works(host("! grep -rq symlinks n/.git/config b.git/config s/config")),
        allowed("G43b", "clone, copy, move and remove repositories, worktrees and submodules")
            .setup(REPO)
            .sh("set -e; git clone -q . n; git clone -q . n/sub; git clone -q --local n c; cp -r n d; mv d e; git -C e log --oneline; rm -rf c
                 git -C n -c protocol.file.allow=always submodule --quiet add ./sub sub; git -C n submodule absorbgitdirs
                 git -C n commit -qm sub; git -C n/sub log --oneline; git worktree add -q wt; git worktree move wt wu; git -C wu commit -q --allow-empty -m w
                 git worktree remove wu; mv n m; git -C m status; git -C m gc -q; rm -rf e m")
            .works(exits(0)),
        allowed("G43c", "links in working trees, in a bare repository too")
            .setup(REPO)
            .setup("git init -q --bare b.git; git push -q ./b.git main; git -C b.git worktree add -q tree main")
            .sh("set -e; ln -s f g; ln -s /etc/hostname h; git add g h; git commit -qm links; git checkout -q HEAD~1; git checkout -q main
                 mkdir -p b.git/tree/node_modules/.bin; ln -s ../x b.git/tree/node_modules/.bin/x; ln -s f b.git/tree/g
                 git -C b.git/tree worktree move . ../moved || mv b.git/tree b.git/moved; test -h b.git/moved/g")
            .works(exits(0))
            .works(host("test -h g")),
        allowed("G43d", "links that were in a git directory before")
            .setup(REPO)
            .setup("mkdir -p store; mv .git/logs store/logs; ln -s ../store/logs .git/logs; mv .git/info store/info; ln -s ../store/info .git/info")
            .sh("set -e; git commit -q --allow-empty -m three; git reflog | grep three; git status; git gc -q; git worktree add -q wt; git -C wt commit -q --allow-empty -m four")
            .works(exits(0))
            .works(host("grep -q three store/logs/HEAD")),
        allowed("G44", "what was written to a protected file in place is there when it is opened next")
            .setup(REPO)
            .setup("mkdir .git/rebase-merge; : > .git/rebase-merge/git-rebase-todo")
            .python(
                "
for path, line in (('.git/rebase-merge/git-rebase-todo', 'pick %d\\n'), ('.git/config', '# %d\\n')):
    start = open(path).read()
    for _ in range(100):
        open(path, 'w').write(start)
        for number in range(4):
            file = os.open(path, os.O_WRONLY | os.O_APPEND); os.write(file, (line % number).encode()); os.close(file)
        found = open(path).read()
        assert found == start + ''.join(line % number for number in range(4)), found",
            )
            .works(exits(0)),
    ]
}
