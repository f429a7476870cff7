//! G24, G32, G35: protected names while others change them, content that the repository held before, the index.

use stockade_test::{Case, Flag, Need, allowed, attack, exits, host};

/// A repository whose two last commits differ in the files of editors and agents.
const REPO: &str = "git config --global safe.directory '*'; git config --global user.email a@b.test
    git config --global user.name n; git config --global advice.detachedHead false; git init -q -b main . && echo 1 > f &&
    mkdir .vscode && echo '{\"a\": 1}' > .vscode/settings.json && git add . && git commit -qm one && git branch one &&
    echo '{\"a\": 2}' > .vscode/settings.json && echo '{\"b\": 2}' > .mcp.json && mkdir .claude && echo '{}' > .claude/settings.json &&
    git add . && git commit -qm two && git branch topic one && git checkout -q topic && echo 2 > f && git commit -qam topic &&
    git checkout -q main";

/// Runs git in a way that has it write content under a protected name.
const CHECK_OUT: &str = "check_out() { git update-index --add --cacheinfo 100644,$1,.vscode/tasks.json; git checkout-index -f .vscode/tasks.json; }";

/// Whether the planted content stands there.
const PLANTED: &str = "grep -qx planted .vscode/tasks.json";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = history();
    cases.extend(new_content());
    cases.extend(races());
    cases.extend(index());
    cases
        .into_iter()
        .map(|case| case.needs(Need::Tool("git")))
        .collect()
}

fn history() -> Vec<Case> {
    vec![
        allowed("G32", "check out commits that differ in files of editors and agents")
            .setup(REPO)
            .sh("set -e; git checkout -q one; grep -q 1 .vscode/settings.json; test ! -e .mcp.json; test -z \"$(git status --short)\"
                 git checkout -q main; grep -q 2 .vscode/settings.json; grep -q 2 .mcp.json; test -z \"$(git status --short)\"
                 git checkout -q one")
            .works(exits(0))
            .works(host("grep -q 1 .vscode/settings.json && test ! -e .mcp.json && test -z \"$(git status --short)\"")),
        allowed("G32b", "stash and rebase across files of editors and agents")
            .setup(REPO)
            .setup("echo '{\"a\": 3}' > .vscode/settings.json; git stash -q; echo '{\"a\": 4}' > .vscode/settings.json")
            .sh("set -e; git stash -q; grep -q 2 .vscode/settings.json; git stash pop -q; grep -q 4 .vscode/settings.json
                 git checkout -q .vscode; git rebase -q main topic; grep -q 2 .mcp.json; test -z \"$(git status --short)\"
                 git stash pop -q; grep -q 3 .vscode/settings.json")
            .works(exits(0))
            .works(host("grep -q 3 .vscode/settings.json && test $(cat f) = 2 && test $(git branch --show-current) = topic")),
        allowed("G32c", "the same out of packs, in both object formats")
            .setup(REPO)
            .setup("git gc -q; git init -q --object-format=sha256 other && cd other && mkdir .vscode && echo 1 > .vscode/settings.json &&
                    git add . && git commit -qm one && echo 2 > .vscode/settings.json && git commit -qam two")
            .sh("set -e; git checkout -q one; grep -q 1 .vscode/settings.json; test -z \"$(git status --short .vscode)\"")
            .works(exits(0))
            .works(host("grep -q 1 .vscode/settings.json")),
        allowed("G32k", "clone and copy the workspace's repository after objects were written")
            .setup(REPO)
            .sh("set -e; echo 3 > f; git commit -qam three; git clone -q . n; git clone -q -l . m; git clone -q --bare . b.git; cp -r .git c
                 git -C n log --oneline; git gc -q; git fsck; git clone -q . o; rm -rf n m; git count-objects -v | grep -qx 'garbage: 0'")
            .works(exits(0))
            .works(host("test -e o/f -a -e b.git/HEAD -a -e c/HEAD -a ! -e n && git -C o log --oneline | grep -q three")),
    ]
}

fn new_content() -> Vec<Case> {
    vec![
        attack("G32d", "check out content that was stored in this run")
            .setup(REPO)
            .sh(format!("{CHECK_OUT}; echo planted > x; check_out $(git hash-object -w x)"))
            .leak(host(PLANTED)),
        attack("G32e", "the same with an object that looks old")
            .setup(REPO)
            .sh(format!(
                "{CHECK_OUT}; echo planted > x; b=$(git hash-object -w x); o=$(echo $b | sed 's|..|&/|')
                 touch -d 2001-01-01 .git/objects/$o; cp -p .git/objects/$o y; touch -d 2001-01-01 y; mv -f y .git/objects/$o; check_out $b"
            ))
            .leak(host(PLANTED)),
        attack("G32f", "the same with an old object under a new name")
            .setup(REPO)
            .setup("cp -r . @W@/copy")
            .sh(format!(
                "{CHECK_OUT}; echo planted > x; b=$(git hash-object -w x); o=$(echo $b | sed 's|..|&/|'); git cat-file blob $b > /dev/null
                 cp .git/objects/$o y; f=$(git rev-parse HEAD:f | sed 's|..|&/|'); rm -f .git/objects/$o; ln .git/objects/$f .git/objects/$o
                 chmod u+w .git/objects/$o; cat y > .git/objects/$o; check_out $b"
            ))
            .leak(host(PLANTED)),
        attack("G32g", "check out content that was packed in this run")
            .setup(REPO)
            .sh(format!(
                "{CHECK_OUT}; echo planted > x; b=$(git hash-object -w x); echo $b | git pack-objects -q .git/objects/pack/pack
                 git prune-packed; touch -d 2001-01-01 .git/objects/pack/*; check_out $b"
            ))
            .leak(host(PLANTED)),
        attack("G32h", "store content in one run and check it out in the next")
            .setup(REPO)
            .launcher(format!(
                "@RUN@ sh -c 'echo @MARK@; echo planted > x; git hash-object -w x > id'
                 @RUN@ sh -c '{CHECK_OUT}; echo @MARK@; check_out $(cat id)'
                 @RUN@ sh -c '{CHECK_OUT}; echo @MARK@; rm -rf .git/objects/stockade-since; mv .git/objects/stockade-since x; check_out $(cat id)'"
            ))
            .leak(host(PLANTED)),
        attack("G32i", "check out content that another repository held before")
            .setup(REPO)
            .setup("for r in 1 2 3; do git init -q d$r && cd d$r && echo planted $r > x && git add x && git commit -qm dep && cd .. || exit 1; done")
            .sh("check_out() { git update-index --add --cacheinfo 100644,$1,.vscode/$2; git checkout-index -f .vscode/$2; }
                 b=$(git -C d1 rev-parse HEAD:x); d=$(echo $b | cut -c1-2); # By chance an object of the repository can have the same two digits.
                 if test -e .git/objects/$d; then mv d1/.git/objects/$d/* .git/objects/$d; else mv d1/.git/objects/$d .git/objects/$d; fi; check_out $b 1.json
                 b=$(git -C d2 rev-parse HEAD:x); echo @P@/d2/.git/objects > .git/objects/info/alternates; check_out $b 2.json
                 b=$(git -C d3 rev-parse HEAD:x); mv .git/objects away; mv d3/.git/objects .git/objects; check_out $b 3.json; true")
            .leak(host("test -s .vscode/1.json"))
            .leak(host("test -s .vscode/2.json"))
            .leak(host("test -s .vscode/3.json")),
        attack("G32j", "move content that was stored in this run over a file of an editor")
            .setup(REPO)
            .sh("echo planted > x; git hash-object -w x; mkdir -p n; cp .vscode/settings.json n/s; mv n/s .vscode/settings.json
                 mv x .vscode/tasks.json; echo planted > y; ln y .vscode/tasks.json")
            .leak(host(PLANTED)),
    ]
}

/// Renames a new directory to each of the goals while threads make a file in it. A goal is the name of the
/// directory, and the file that is protected there.
fn rename_race(goals: &str) -> String {
    const RACE: &str = r"
import threading
os.chdir('@P@')
goals = GOALS
stop = False
def make(directory, name):
    while not stop:
        try: os.close(os.open(directory + '/' + name, os.O_CREAT | os.O_WRONLY, 0o755))
        except OSError: pass
        try: os.unlink(directory + '/' + name)
        except OSError: pass
end = time.monotonic() + @RACE@
for number, (target, name) in enumerate(goals):
    source = 's%d' % number
    os.makedirs(source + '/' + os.path.dirname(name), exist_ok=True)
    until = time.monotonic() + (end - time.monotonic()) / (len(goals) - number)
    while time.monotonic() < until and not os.path.exists(target + '/' + name):
        stop = False
        threads = [threading.Thread(target=make, args=(source, name)) for _ in range(2)]
        for thread in threads: thread.start()
        while time.monotonic() < until and not stop:
            for pair in ((source, target), (target, source)):
                try: os.rename(*pair)
                except OSError: pass
                stop = stop or os.path.exists(target + '/' + name)
                if stop: break
        stop = True
        for thread in threads: thread.join()
";
    RACE.replace("GOALS", goals)
}

fn races() -> Vec<Case> {
    vec![
        attack("G24", "two runs make a git directory together, a third one holds every lock")
            .setup("git config --global safe.directory '*'; mkdir d; for i in $(seq 400); do mkdir -p d/$i/hooks d/$i/refs; done; mkfifo @W@/in")
            .launcher(
                "cat > @W@/hold.py <<'END'
import fcntl, os, sys
held = []
for i in range(1, 401): held.append(os.open(f'd/{i}', os.O_RDONLY)); fcntl.flock(held[-1], fcntl.LOCK_EX)
print('@MARK@', flush=True); open('ready', 'w').close(); sys.stdin.read()
END
                 cat > @W@/race.py <<'END'
import os, sys, time
print('@MARK@', flush=True); plants = sys.argv[1] == 'plants'
open('here-' + sys.argv[1], 'w').close()
limit = time.monotonic() + 20
while not all(map(os.path.exists, ('here-plants', 'here-completes', 'ready'))) and time.monotonic() < limit: pass
# The clock brings both to the same directory at the same time.
start = os.stat('ready').st_mtime + 1; end = time.monotonic() + (0 if @RACE@ >= 60 else 4 * @RACE@)
for i in range(1, 401):
    while time.time() < start + i * 0.005 and time.monotonic() < end: pass
    try:
        if plants: os.close(os.open(f'd/{i}/hooks/pre-commit', os.O_CREAT | os.O_WRONLY, 0o755))
        else: os.mkdir(f'd/{i}/objects')
    except OSError: pass
END
                 ulimit -n 1024
                 @RUN@ /usr/bin/python3 @W@/hold.py < @W@/in & a=$!; exec 3> @W@/in
                 @RUN@ /usr/bin/python3 @W@/race.py plants & b=$!; @RUN@ /usr/bin/python3 @W@/race.py completes & c=$!
                 wait $b $c; exec 3>&-; wait $a",
            )
            .leak(host("for i in d/*; do test ! -d $i/objects -o ! -e $i/hooks/pre-commit || exit 0; done; exit 1")),
        attack("G24b", "rename a directory to a protected name while a file is made in it")
            .setup("git init -q n; rm -rf n/.git; mkdir n/.config")
            .python(rename_race("[('.vscode', 'tasks.json'), ('.claude', 'settings.json'), ('n/.git', 'hooks/pre-commit')]"))
            .leak(host("test -e .vscode/tasks.json"))
            .leak(host("test -e .claude/settings.json"))
            .leak(host("test -e n/.git/hooks/pre-commit")),
        attack("G24e", "rename a directory to the state of a sequence while its options are made")
            .setup("git init -q --bare r")
            .python(rename_race("[('r/sequencer', 'opts')]"))
            .leak(host("test -e r/sequencer/opts")),
        attack("G24f", "rename a directory into the submodules and worktrees of a git directory while files are made in it")
            .setup("git init -q n; mkdir n/.git/modules n/.git/worktrees; git init -q --bare r; mkdir r/modules r/worktrees")
            .python(rename_race(
                "[('n/.git/modules/m', 'config'), ('n/.git/modules/h', 'hooks/update'), ('n/.git/worktrees/w', 'config.worktree'),
                  ('r/modules/m', 'config'), ('r/worktrees/w', 'rebase-merge/git-rebase-todo')]",
            ))
            .leak(host("test -e n/.git/modules/m/config"))
            .leak(host("test -e n/.git/modules/h/hooks/update"))
            .leak(host("test -e n/.git/worktrees/w/config.worktree"))
            .leak(host("test -e r/modules/m/config"))
            .leak(host("test -e r/worktrees/w/rebase-merge/git-rebase-todo")),
        attack("G24g", "rename something that becomes another kind of file in between")
            .flag(Flag::DenyWrite("@P@/keep/file".into()))
            .setup("mkdir evil; echo planted > evil/settings.json; echo planted > evil/file; git init -q --bare r")
            .python(
                r"
import threading
os.chdir('@P@')
stop = False
# A file, a symbolic link, a directory and a second name of the target take turns under one name.
def swap(source, target):
    def file(): open(source, 'w').write('[core]\n\tfsmonitor = planted\n')
    def link(): os.symlink('evil', source)
    def directory(): os.mkdir(source)
    def same(): os.link(target, source)
    def clear():
        for remove in (os.unlink, os.rmdir):
            try: remove(source)
            except OSError: pass
    while not stop:
        for make in (file, link, directory, file, same, link):
            clear()
            try: make()
            except OSError: pass
def has_link(target): return os.path.islink(target)
def has_text(target):
    try: return 'planted' in open(target).read()
    except OSError: return False
goals = [('.claude', has_link), ('keep', has_link), ('r/config', has_text)]
end = time.monotonic() + @RACE@
for number, (target, won) in enumerate(goals):
    stop = False
    source = 's%d' % number
    thread = threading.Thread(target=swap, args=(source, target)); thread.start()
    until = time.monotonic() + (end - time.monotonic()) / (len(goals) - number)
    while time.monotonic() < until and not won(target):
        # The directory may have come first, and nothing else can take its place.
        for call in (lambda: os.rename(source, target), lambda: os.rmdir(target)):
            try: call()
            except OSError: pass
    stop = True; thread.join()
",
            )
            .leak(host("grep -q planted .claude/settings.json"))
            .leak(host("grep -q planted keep/file"))
            .leak(host("grep -q planted r/config")),
        attack("G24h", "exchange a file or directory in a git directory's storage with another directory")
            .setup("git init -q n; git init -q --bare n/.git/modules/m; mkdir n/.git/modules/d; echo > n/.git/modules/f")
            .python(
                r"
os.chdir('@P@')
for name in 'mdf':
    os.makedirs(name + '/hooks'); open(name + '/hooks/update', 'w').close()
    attempt('renameat2', AT_FDCWD, b'n/.git/modules/' + name.encode(), AT_FDCWD, name.encode(), 2)
",
            )
            .leak(host("test -e n/.git/modules/m/hooks/update"))
            .leak(host("test -e n/.git/modules/d/hooks/update"))
            .leak(host("test -e n/.git/modules/f/hooks/update")),
        attack("G24c", "write to a protected file while its repository changes places with another directory")
            .setup("git init -q lib; mkdir lib/.vscode; echo text > lib/.vscode/settings.json; git init -q --bare cache.git
                    printf '#!/bin/sh\\n' > cache.git/hooks/update; chmod +x cache.git/hooks/update")
            .python(
                r"
import threading
os.chdir('@P@')
for name in ('f0/.vscode/settings.json', 'f1/config', 'f1/hooks/update'):
    os.makedirs(os.path.dirname(name), exist_ok=True); open(name, 'w').close()
stop = False
def swap(real, other, away):
    while not stop:
        for pair in ((real, away), (other, real), (real, other), (away, real)):
            try: os.rename(*pair)
            except OSError: pass
end = time.monotonic() + @RACE@
goals = [('lib', 'f0', '.vscode/settings.json'), ('cache.git', 'f1', 'config'), ('cache.git', 'f1', 'hooks/update')]
for number, (real, other, name) in enumerate(goals):
    stop = False
    thread = threading.Thread(target=swap, args=(real, other, 'away%d' % number)); thread.start()
    until = time.monotonic() + (end - time.monotonic()) / (len(goals) - number)
    tries = 0
    while time.monotonic() < until:
        try: os.link(real + '/' + name, 'second')
        except OSError: pass
        for path in (real + '/' + name, 'second'):
            try: fd = os.open(path, os.O_WRONLY)
            except OSError: continue
            os.write(fd, b'[core]\n fsmonitor = planted\n#'); os.close(fd)
        try: os.unlink('second')
        except OSError: pass
        tries += 1
        if @RACE@ >= 60 and tries > 200: break
    stop = True; thread.join()
    for pair in ((real, other), ('away%d' % number, real)):
        try: os.rename(*pair)
        except OSError: pass
    # Without a sandbox there is nothing to race for.
    trying(name, lambda: open(real + '/' + name, 'w').write('[core]\n fsmonitor = planted\n'))
",
            )
            .leak(host("for d in lib f0 away*; do test ! -d $d/.git || ! grep -q planted $d/.vscode/settings.json || exit 0; done; exit 1"))
            .leak(host("for d in cache.git f1 away*; do test ! -d $d/objects || ! grep -q planted $d/config || exit 0; done; exit 1"))
            .leak(host("for d in cache.git f1 away*; do test ! -d $d/objects || ! grep -q planted $d/hooks/update || exit 0; done; exit 1")),
        attack("G24d", "carry settings of a repository over to another that takes its place while they are written")
            .setup("git config --global safe.directory '*'; git config --global user.email a@b.test; git config --global user.name n
                    git init -q x; git -C x config core.hooksPath .husky")
            .python(
                r"
import subprocess
os.chdir('@P@')
subprocess.run(['git', 'init', '-q', 'y'])
os.mkdir('y/.husky'); open('y/.husky/pre-commit', 'w').write('#!/bin/sh\ntouch @OUT@/pwned\n'); os.chmod('y/.husky/pre-commit', 0o755)
text = open('x/.git/config', 'rb').read()
fd = os.open('x/.git/config', os.O_WRONLY)
os.rename('x', 'z'); os.rename('y', 'x')
os.write(fd, text); os.close(fd)
trying('copy', lambda: open('x/.git/config', 'wb').write(text))",
            )
            .leak(host("git -C x commit -q --allow-empty -m x; test -e @OUT@/pwned")),
        attack("N21e", "protected names in directories that nobody may search meanwhile")
            .setup("git init -q lib; mkdir lib/.vscode; git init -q --bare cache.git; mkdir -p cache.git/hooks d n")
            .python(
                r"
def put(directory, name, around):
    # The directory is held open while the one around it is closed to everybody.
    fd = os.open(directory, os.O_PATH); os.chmod(around, 0)
    trying(directory, lambda: os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o755, dir_fd=fd)))
    os.chmod(around, 0o755)
put('lib/.vscode', 'tasks.json', 'lib')
put('cache.git/hooks', 'update', 'cache.git')
os.mkdir('d/hooks'); open('d/hooks/pre-commit', 'w').close(); os.chmod('d', 0o200)
trying('rename', lambda: os.rename('d', 'n/.git'))
trying('chmod', lambda: os.chmod('n/.git', 0o755))",
            )
            .leak(host("test -e lib/.vscode/tasks.json"))
            .leak(host("test -e cache.git/hooks/update"))
            .leak(host("test -e n/.git/hooks/pre-commit")),
        attack("N21d", "editor files in a repository whose .git is elsewhere meanwhile")
            .setup("git init -q lib; git init -q other; mkdir d; git init -q d/lib")
            .sh("mv lib/.git away; mkdir lib/.vscode; echo planted > lib/.vscode/tasks.json; mv away lib/.git
                 cp -r other/.git copy; rm -rf other/.git; mkdir other/.vscode; echo planted > other/.vscode/tasks.json; mv copy other/.git
                 mv d/lib d/x; mkdir d/lib d/lib/.vscode; echo planted > d/lib/.vscode/tasks.json; mv d/x/.git d/lib/.git; true")
            .leak(host("test -e lib/.git -a -e lib/.vscode/tasks.json"))
            .leak(host("test -e other/.git -a -e other/.vscode/tasks.json"))
            .leak(host("test -e d/lib/.git -a -e d/lib/.vscode/tasks.json")),
    ]
}

/// Makes an index with an entry that git would take from no tree, at `path`.
const FORGE: &str = r"
import hashlib, subprocess
def git(*words, **more): return subprocess.run(('git',) + words, capture_output=True, text=True, **more).stdout.strip()
def forge(tree, name, path, **more):
    hook = git('-C', tree, 'hash-object', '-w', '--stdin', input='#!/bin/sh\ntouch @OUT@/pwned\n')
    other = name.replace('.git', '+git')
    env = dict(os.environ, GIT_INDEX_FILE='@P@/forged')
    if os.path.exists('forged'): os.unlink('forged')
    git('-C', tree, 'update-index', '--add', '--cacheinfo', '100755,%s,%s' % (hook, other), env=env)
    text = open('forged', 'rb').read()[:-20].replace(other.encode(), name.encode())
    with open(path, 'wb') as file: file.write(text + hashlib.sha1(text).digest())
os.chdir('@P@')
";

fn index() -> Vec<Case> {
    const HOST: &str = "git checkout -q .; git commit -q --allow-empty -m x; test -e @OUT@/pwned";
    let forged = |script: &str| format!("{FORGE}{script}");
    vec![
        attack("G35", "an index whose entry is a hook, renamed into place")
            .setup(REPO)
            .python(forged("forge('.', '.git/hooks/pre-commit', 'new'); trying('rename', lambda: os.rename('new', '.git/index'))"))
            .leak(host(HOST)),
        attack("G35b", "the same, written in place")
            .setup(REPO)
            .python(forged("trying('write', lambda: forge('.', '.git/hooks/pre-commit', '.git/index'))"))
            .leak(host(HOST)),
        attack("G35c", "the same in a worktree and in a repository that gets its directories later")
            .setup(REPO)
            .setup("git worktree add -q w; git init -q n")
            .python(forged(
                "
forge('.', 'x/.git/hooks/pre-commit', 'new'); trying('worktree', lambda: os.rename('new', '.git/worktrees/w/index'))
os.rename('n/.git/objects', 'o'); trying('later', lambda: forge('.', '.git/hooks/pre-commit', 'n/.git/index'))
trying('objects', lambda: os.rename('o', 'n/.git/objects'))",
            ))
            .leak(host("git -C w ls-files | grep -q '^x/.git/'"))
            .leak(host("git -C n ls-files | grep -q '^.git/'")),
        allowed("G35d", "every form of index that git writes")
            .setup(REPO)
            .sh("set -e; for v in 2 3 4; do echo $v > v$v; git update-index --index-version $v; git add v$v; git commit -qm $v; done
                 echo > w; git add -N w; git update-index --untracked-cache; git status --short; git -c index.skipHash=true add w; git commit -qm w
                 mkdir -p d/e; echo > d/e/f; git add d; git commit -qm d; git sparse-checkout init --cone --sparse-index; git sparse-checkout set .vscode
                 git sparse-checkout disable; git init -q --object-format=sha256 s; echo > s/f; git -C s add f; git -C s commit -qm s
                 git worktree add -q t; echo > t/f; git -C t commit -qam t; cp -r .git copy; git --git-dir=copy ls-files | grep -q v4; rm .git/index; git reset -q --hard")
            .works(exits(0))
            .works(host("test -z \"$(git status --short v2 v3 v4 w d)\" && git -C s ls-files | grep -qx f && git -C t ls-files | grep -qx f")),
    ]
}
