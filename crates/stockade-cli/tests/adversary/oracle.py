"""Makes repositories, lets random sequences loose on them, and looks what the host runs afterwards.

oracle.py DIRECTORY SEQUENCE FINDINGS FIRST COUNT WORKERS PROGRAM [BARE-REPOSITORIES [WAY]]

WAY is `overlay` to run every sequence over an overlay that is committed afterwards. Without a PROGRAM the sequences run bare: nearly all must then be found out, which proves the oracle.
A finding is one line in FINDINGS: the seed, how it ran, and the command that ran the planted program.
"""
import collections, os, random, re, shutil, signal, stat, subprocess, sys, threading, time

DIRECTORY, SEQUENCE, FINDINGS, FIRST, COUNT, WORKERS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
PROGRAM = sys.argv[7] if len(sys.argv) > 7 else ''
# Whether git is also run inside bare repositories that were not there at the start.
NEW_BARE = len(sys.argv) > 8 and sys.argv[8] == '1'
# Over an overlay the commit judges the result, so that more holds than in a direct run.
ALL_OVERLAY = len(sys.argv) > 9 and sys.argv[9] == 'overlay'
NEW_BARE = NEW_BARE or ALL_OVERLAY and bool(PROGRAM)
ONE = COUNT == 1
KINDS = ['plain', 'bare', 'worktree', 'submodule', 'hookspath', 'rebase', 'subdirectory', 'none', 'linked']
SHELL_FILES = ['.bashrc', '.profile', '.bash_profile', '.bash_login', '.zshrc', '.zshenv']
EDITOR_FILES = ['.vscode/tasks.json', '.vscode/settings.json', '.idea/workspace.xml', '.mcp.json', '.claude/settings.json', '.envrc']
# What a person may choose to commit first.
PARTS = ['.git', '.git/hooks', '.git/config', 'lib', 'x', 'evil', 's', 'a', 'b', 'd', 'cache.git', 'cache2.git', 'build', 'sub', 'new', 'n', '.husky', '.git/rebase-merge']
# A run that has not ended by then hangs: the sequence itself ends after 20 seconds.
HANGS = 90

# What git reads may differ between repositories; this is the host's own.
GLOBAL = '''[user]
    name = n
    email = a@b.test
[init]
    defaultBranch = main
    templateDir =
[protocol "file"]
    allow = always
[push]
    default = current
[advice]
    detachedHead = false
[safe]
    directory = *
'''


def environment(base, **more):
    return dict(PATH=os.environ['PATH'], HOME=base + '/home', GIT_TERMINAL_PROMPT='0', GIT_EDITOR='true', GIT_CONFIG_NOSYSTEM='1', LANG='C.UTF-8',
                STOCKADE_TEST_MARK=os.environ.get('STOCKADE_TEST_MARK', ''), **more)


# Repositories of each kind; $B is the base directory, p the workspace.
START = 'mkdir -p $B/p $B/out $B/home $B/hit $B/aside/directory; echo safe > $B/aside/file; cd $B/p; '
COMMITS = 'git init -q .; mkdir -p .git/hooks; echo 1 > f; git add .; git commit -qm one; echo 2 > f; git commit -qam two; '
ORIGIN = 'git clone -q --bare . $B/out/origin.git; git remote add origin $B/out/origin.git; git fetch -q; git branch -q -u origin/main; '
NESTED = 'git init -q lib; mkdir lib/.git/hooks; cd lib; echo l > l; mkdir .vscode; echo {} > .vscode/settings.json; git add .; git commit -qm l; cd ..; git init -q deep/lib; '
BUILD = {
    'plain': START + COMMITS + ORIGIN + NESTED,
    'bare': START + COMMITS + ORIGIN + NESTED + 'git clone -q --bare . cache.git; git remote add cache ./cache.git; mkdir -p cache.git/hooks; printf "#!/bin/sh\\n" > cache.git/hooks/update; chmod +x cache.git/hooks/update',
    'worktree': START + 'rmdir $B/p; mkdir $B/out/main; cd $B/out/main; ' + COMMITS + ORIGIN + 'git worktree add -q $B/p -b w; cd $B/p; ' + NESTED,
    'submodule': START + COMMITS + ORIGIN + 'git init -q $B/out/lib; cd $B/out/lib; echo l > l; git add .; git commit -qm l; cd $B/p; git submodule --quiet add $B/out/lib sub; git commit -qm s; git push -q',
    'hookspath': START + COMMITS + ORIGIN + 'mkdir .husky; printf "#!/bin/sh\\n" > .husky/pre-push; chmod +x .husky/pre-push; echo "[user]" > team.gitconfig; git config core.hooksPath .husky; git config include.path ../team.gitconfig',
    'rebase': START + COMMITS + ORIGIN + "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -qi HEAD~1",
    'subdirectory': START + 'cd $B; ' + COMMITS.replace('git init -q .;', 'git init -q .; printf "/aside\\n/home\\n/hit\\n/out\\n" > .git/info/exclude 2> /dev/null || { mkdir -p .git/info; printf "/aside\\n/home\\n/hit\\n/out\\n" > .git/info/exclude; };') + 'cd p; echo s > s1',
    'none': START + NESTED,
    'linked': START + COMMITS + ORIGIN + 'git worktree add -q $B/out/w -b w; git worktree add -q wt -b wt',
}


def prepare(base, templates):
    for kind in KINDS:
        os.makedirs(base + '/home'); open(base + '/home/.gitconfig', 'w').write(GLOBAL); open(base + '/home/.bashrc', 'w').write('# own\n')
        done = subprocess.run(['/bin/sh', '-ec', BUILD[kind]], env=environment(base, B=base), capture_output=True, text=True)
        if done.returncode: sys.exit('can not make a repository of kind %s: %s' % (kind, done.stderr))
        os.rename(base, os.path.join(templates, kind))


def remove(base):
    if os.path.exists(base): subprocess.run(['chmod', '-R', 'u+rwX', base], stderr=subprocess.DEVNULL); shutil.rmtree(base, ignore_errors=True)
    if os.path.exists(base): subprocess.run(['rm', '-rf', base])


def kill_group(leader):
    try: os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError: pass


class Plan:
    """How the sequence of a seed is run."""

    def __init__(self, seed):
        rng = random.Random(seed ^ 0x5eed)
        self.seed, self.kind = seed, rng.choice(KINDS)
        self.two = rng.random() < 0.3
        self.overlay = bool(PROGRAM) and (rng.random() < 0.12 or ALL_OVERLAY)
        self.home = not self.overlay and rng.random() < 0.15
        self.kill = rng.random() * 0.3 if rng.random() < 0.1 else None
        # In parts, as a person may choose paths; or by the run itself.
        self.commit = rng.choice(['run', 'ws', 'parts']) if self.overlay else None
        self.parts = rng.sample(PARTS, 3)

    def describe(self):
        words = [self.kind] + [word for word, on in (('two runs', self.two), ('overlay, committed by %s' % self.commit, self.overlay), ('home writable', self.home), ('launcher killed', self.kill is not None)) if on]
        return ', '.join(words)

    def run(self, base):
        """Runs the sequence, or two at once; what went wrong, if it is not what was planted."""
        canary = 'touch %s/hit/pwned' % base
        runs = []
        for role in 'ab' if self.two else 'a':
            inner = ['/usr/bin/python3', SEQUENCE, str(self.seed), role, self.kind, canary, 'inside' if PROGRAM else 'bare'] + (['verbose'] if ONE else [])
            flags = ['-q'] + (['--write', base + '/home'] if self.home else []) + (['--overlay'] if self.overlay else []) + (['--commit=always'] if self.commit == 'run' else [])
            words = [PROGRAM, 'run', *flags, '--', *inner] if PROGRAM else inner
            output = None if ONE else subprocess.DEVNULL
            runs.append(subprocess.Popen(words, cwd=base + '/p', env=environment(base), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True))
        if self.kill is not None:
            time.sleep(self.kill); runs[0].kill()
        end = time.monotonic() + HANGS
        for run in runs:
            try: run.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL); run.wait(); return 'the run did not end'
            finally:
                # Bare, a git that waits on a pipe outlives its sequence.
                if not PROGRAM: kill_group(run.pid)
        if self.overlay:
            name = self.name(base) if self.commit == 'parts' else None
            for part in self.parts if name else []: self.ws(base, 'commit', name, part)
            self.ws(base, 'commit')
        return None

    def ws(self, base, *words):
        output = None if ONE else subprocess.DEVNULL
        subprocess.run([PROGRAM, 'ws', *words], cwd=base + '/p', env=environment(base), stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=HANGS)

    def name(self, base):
        listed = subprocess.run([PROGRAM, 'ws', 'list', '--json'], cwd=base + '/p', env=environment(base), stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
        found = re.search('"name": *"(p-[0-9a-f]*)"', listed)
        return found and found.group(1)


def outside(base, plan):
    """What must not change: files outside the writable roots, by content and mode."""
    seen = {}
    tops = ['out'] + ([] if plan.home else ['home'])
    if plan.kind == 'subdirectory': tops += ['.git/hooks', '.git/config', 'f']
    for name in os.listdir(base):
        if plan.kind != 'subdirectory' or name != '.git': seen[name] = 'there'
    for top in tops:
        for directory, names, files in os.walk(os.path.join(base, top)):
            relative = os.path.relpath(directory, base)
            # The store of overlays, and the parts of a repository that work in a worktree changes.
            names[:] = [name for name in names if (relative, name) not in (('home', '.local'), ('home', '.cache'))]
            if relative == 'out/main/.git': names[:] = [name for name in names if name in ('hooks', 'rebase-merge')]; files = [name for name in files if name == 'config']
            # An empty directory of a rebase is none.
            for name in files + ([] if relative.startswith('out/main/.git') else names):
                path = os.path.join(directory, name)
                try:
                    info = os.lstat(path)
                    text = open(path, 'rb').read() if stat.S_ISREG(info.st_mode) else os.readlink(path) if stat.S_ISLNK(info.st_mode) else ''
                    seen[os.path.relpath(path, base)] = (stat.S_IFMT(info.st_mode), info.st_mode & 0o7777, text)
                except OSError: pass
    return seen


def repositories(base, plan):
    """Directories in which somebody runs git: with a .git of any kind, and bare ones of the start."""
    found = []
    for directory, names, files in os.walk(base + '/p'):
        if '.git' in names or '.git' in files: found.append(directory)
        if NEW_BARE and 'HEAD' in files and 'objects' in names and 'refs' in names and os.path.basename(directory) != '.git': found.append(directory)
        names[:] = [name for name in names if name not in ('.git', 'objects', 'refs')][:40]
        if len(found) > 7: break
    more = {'worktree': [base + '/out/main'], 'bare': [base + '/p/cache.git'], 'linked': [base + '/out/w'], 'subdirectory': [base]}
    return found + [path for path in more.get(plan.kind, []) if os.path.isdir(path)]


COMMANDS = '''
hit=$1; shift
for r; do
    cd "$r" || continue
    for c in 'status --short' 'log -1' 'diff' 'commit -q --allow-empty -m x' 'fetch -q --all' 'push -q' 'push -q cache HEAD' 'rebase --continue' 'submodule --quiet update --init' 'checkout -q HEAD' 'add -A .' 'tag x' 'gc --quiet'; do
        case $c in rebase*) test -d "$(timeout 5 git rev-parse --git-path rebase-merge 2> /dev/null)" || continue;; submodule*) test -e .gitmodules || continue;; esac
        timeout 10 git $c > /dev/null 2>&1 < /dev/null
        if test -e "$hit"; then echo "git $c in $r"; exit; fi
    done
done
'''
SHELLS = '''
hit=$1; shift
for h; do for s in 'bash -lc :' 'bash -ic :' 'sh -lc :' 'bash -c :'; do
    HOME=$h timeout 10 $s > /dev/null 2>&1 < /dev/null
    if test -e "$hit"; then echo "$s with HOME=$h"; exit; fi
done; done
'''


def identity(path):
    """What tells a file from another of the same name."""
    try: info = os.lstat(path)
    except OSError: return None
    return info.st_ino, stat.S_IFMT(info.st_mode)


def projects(base):
    """The repositories below the workspace, and which they are."""
    found = {os.path.join('p', name): identity(os.path.join(base, 'p', name, '.git')) for name in ('lib', 'sub', 'wt', 'deep/lib')}
    return {root: which for root, which in found.items() if which}


def written_aside(base):
    """What git on the host wrote where only links in git directories lead."""
    aside = os.path.join(base, 'aside')
    if sorted(os.listdir(aside)) != ['directory', 'file']: return ' '.join(os.listdir(aside))
    if open(aside + '/file', 'rb').read() != b'safe\n': return 'file'
    return ' '.join(os.listdir(aside + '/directory'))


def remove_pipes(base):
    """Removes named pipes: git on the host waits for ever when it opens one, and a pipe runs nothing."""
    subprocess.run(['find', base, '-type', 'p', '-delete'], stderr=subprocess.DEVNULL)


def judge(base, plan, before):
    hit = base + '/hit/pwned'
    if os.path.exists(hit): return 'the sequence itself reached out'
    after = outside(base, plan)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed: return 'changed outside: ' + ', '.join(changed[:5])
    remove_pipes(base)
    homes = [base + '/home'] if plan.home else []
    if any(os.path.lexists(os.path.join(base, 'p', name)) for name in SHELL_FILES): homes.append(base + '/p')
    for script, words in ((SHELLS, homes), (COMMANDS, repositories(base, plan))):
        if words:
            try: done = subprocess.run(['/bin/sh', '-c', script, 'judge', hit, *words], env=environment(base), cwd=base, capture_output=True, text=True, timeout=300)
            except subprocess.TimeoutExpired: return 'git on the host did not end'
            if os.path.exists(hit): return 'ran the planted program: ' + done.stdout.strip().replace(base, '')
            if written_aside(base): return 'git on the host wrote outside: ' + written_aside(base)
    # Editor files that nobody on the host put there, at the root of a project: the workspace, and each
    # repository that is still the one of the start.
    for root in ['p'] + [root for root, was in plan.projects.items() if identity(os.path.join(base, root, '.git')) == was]:
        for name in EDITOR_FILES:
            path = os.path.join(base, root, name)
            try:
                if stat.S_ISREG(os.stat(path).st_mode) and 'pwned' in open(path).read(): return 'an editor would run ' + os.path.join(root, name)
            except OSError: pass
    return None


lock, findings, done = threading.Lock(), [], collections.Counter()


def work(number, seeds):
    base, templates = os.path.join(DIRECTORY, 'w%d' % number), os.path.join(DIRECTORY, 't%d' % number)
    os.makedirs(templates); prepare(base, templates)
    while True:
        with lock:
            if not seeds: return
            seed = seeds.pop()
        plan = Plan(seed)
        subprocess.run(['cp', '-a', os.path.join(templates, plan.kind), base], check=True)
        before, plan.projects = outside(base, plan), projects(base)
        result = plan.run(base) or judge(base, plan, before)
        with lock:
            done[plan.kind] += 1
            if result: findings.append('seed %d (%s): %s' % (seed, plan.describe(), result)); print(findings[-1], flush=True)
        if result and ONE and os.environ.get('KEEP'): return
        remove(base)


def main():
    begin = time.monotonic()
    seeds = list(range(FIRST, FIRST + COUNT))[::-1]
    workers = [threading.Thread(target=work, args=(number, seeds)) for number in range(WORKERS)]
    [worker.start() for worker in workers]; [worker.join() for worker in workers]
    with open(FINDINGS, 'w') as file: file.writelines(line + '\n' for line in findings)
    minutes = (time.monotonic() - begin) / 60
    print('%d sequences from seed %d, %d findings, %.0f a minute; %s' % (sum(done.values()), FIRST, len(findings), sum(done.values()) / minutes, dict(done)))


main()
