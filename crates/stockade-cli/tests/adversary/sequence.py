"""The inside of one sequence: random operations on names that try to plant a program.

sequence.py SEED ROLE KIND CANARY inside|bare [verbose]: works in the current directory. The same seed makes the same plan;
threads, processes and a second run at the same time make the order differ. Each plan is a few goals
(put content that runs CANARY under a name that the host acts on), each reached by a random method
through random ways of naming, with random operations in between. Every error is ignored: what matters
is what the host finds afterwards.
"""
import ctypes, os, random, signal, socket, stat, sys, threading, time

SEED, ROLE, KIND, CANARY = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
# Bare, process 1 is the host's.
INSIDE = sys.argv[5] == 'inside'
VERBOSE = len(sys.argv) > 6
ROOT = os.getcwd()
OUT = os.path.join(os.path.dirname(ROOT), 'out')
HOME = os.path.join(os.path.dirname(ROOT), 'home')
ASIDE = os.path.join(os.path.dirname(ROOT), 'aside')
EXCHANGE = 2
libc = ctypes.CDLL(None, use_errno=True)
rng = random.Random(SEED * 2 + (ROLE == 'b'))

SHELL_FILES = ['.bashrc', '.profile', '.bash_profile', '.bash_login', '.zshrc', '.zshenv']
EDITOR_FILES = ['.vscode/tasks.json', '.vscode/settings.json', '.idea/workspace.xml', '.mcp.json', '.claude/settings.json', '.envrc']
HOOKS = ['pre-commit', 'post-commit', 'prepare-commit-msg', 'commit-msg', 'post-checkout', 'pre-push', 'reference-transaction',
         'post-index-change', 'post-rewrite', 'pre-auto-gc', 'post-merge', 'pre-rebase']
SERVER_HOOKS = ['post-receive', 'pre-receive', 'update', 'post-update', 'reference-transaction', 'proc-receive']
PLAIN = ['a', 'b', 'x', 'y', 's', 't', 'd/e', 'build', 'lib', 'sub', 'tmp']


def say(*words):
    if VERBOSE: print(*words, flush=True)


def attempt(function, *arguments, **keywords):
    try:
        result = function(*arguments, **keywords)
        say('ok  ', getattr(function, '__name__', ''), arguments, keywords)
        return result
    except (OSError, ValueError) as error:
        say('    ', getattr(function, '__name__', ''), arguments, keywords, error)
        return None


def symlink_to(path, target, dir_fd=None):
    os.symlink(target, path, dir_fd=dir_fd)


def renameat2(source, target, flags, src_dir_fd=-100, dst_dir_fd=-100):
    if libc.renameat2(src_dir_fd, os.fsencode(source), dst_dir_fd, os.fsencode(target), flags):
        number = ctypes.get_errno(); raise OSError(number, os.strerror(number), source)


# ---- Git directories of the fixture, by kind; the first is that of the workspace. ----

def git_directories():
    found = {'plain': ['.git', 'lib/.git'], 'bare': ['.git', 'cache.git', 'lib/.git'], 'worktree': [OUT + '/main/.git', OUT + '/main/.git/worktrees/p', 'lib/.git'],
             'submodule': ['.git', '.git/modules/sub'], 'hookspath': ['.git'], 'rebase': ['.git'], 'subdirectory': ['../.git'], 'none': ['lib/.git'],
             'linked': ['.git', '.git/worktrees/w']}
    return found[KIND]


# ---- Content ----

def hook(): return '#!/bin/sh\n%s\nexit 0\n' % CANARY


def config():
    line = rng.choice(['[core]\n\tfsmonitor = "%s; false"\n', '[core]\n\tsshCommand = "%s"\n\tfsmonitor = "%s; false"\n', '[core]\n\thooksPath = @/h\n',
                       '[core]\n\tpager = "%s; cat"\n\teditor = "%s; true"\n\tfsmonitor = "%s; false"\n', '[include]\n\tpath = @/inc\n', '[diff]\n\texternal = "%s"\n',
                       '[alias]\n\tst = "!%s"\n[core]\n\tfsmonitor = "%s; false"\n', '[filter "x"]\n\tclean = "%s; cat"\n\tsmudge = "%s; cat"\n\tprocess = "%s"\n',
                       '[remote "origin"]\n\tuploadpack = "%s; git-upload-pack"\n\treceivepack = "%s; git-receive-pack"\n', '[gpg]\n\tprogram = "%s"\n[commit]\n\tgpgSign = true\n',
                       '[CORE]\n FsMonitor = \\\n "%s; false"\n', '[core]fsmonitor="%s; false"\n'])
    text = line.replace('%s', CANARY).replace('@', ROOT)
    whole = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n'
    return rng.choice([whole + text, whole + '\tworktree = %s\n' % ROOT + text, text])


def redirect(prefix='gitdir: '):
    target = rng.choice(['evil', 'evil', 'evil', 'evil2', 'x', 'cache.git', 'lib/.git'])
    return prefix + rng.choice([ROOT + '/' + target, '../' + target, target]) + '\n'


def todo(): return 'exec %s\n' % CANARY


def shell(): return CANARY + '\n'


# ---- Ways of naming ----

links = 0


def naming(path):
    """(name, dir_fd) for a path, one of the ways there are."""
    global links
    parent, name = os.path.split(path)
    way = rng.randrange(9)
    if way == 0: return os.path.join(ROOT, path), None
    if way == 1:
        fd = attempt(os.open, parent or '.', os.O_PATH | os.O_DIRECTORY)
        return (name, fd) if fd is not None else (path, None)
    if way == 2:
        fd = attempt(os.open, parent or '.', os.O_RDONLY | os.O_DIRECTORY)
        return ('/proc/self/fd/%d/%s' % (fd, name), None) if fd is not None else (path, None)
    if way == 3 and parent:
        links += 1
        if attempt(os.symlink, os.path.abspath(os.path.join(ROOT, parent)), 'link%s%d' % (ROLE, links)) is None: return 'link%s%d/%s' % (ROLE, links, name), None
    if way == 4: return os.path.join(parent, '.', name), None
    if way == 5: return os.path.join(parent or '.', '..', os.path.basename(os.path.abspath(parent or ROOT)), name), None
    if way == 6: return '/proc/self/cwd/' + path if not path.startswith('/') else path, None
    if way == 7: return '/proc/thread-self/root' + os.path.abspath(os.path.join(ROOT, path)), None
    return path, None


def at(function, path, *arguments, **keywords):
    name, fd = naming(path)
    if fd is not None: keywords['dir_fd'] = fd
    return attempt(function, name, *arguments, **keywords)


def move(source, target, flags=0):
    (source, a), (target, b) = naming(source), naming(target)
    if flags == 0 and rng.random() < 0.5:
        return attempt(os.rename, source, target, src_dir_fd=a, dst_dir_fd=b)
    return attempt(renameat2, source, target, flags, -100 if a is None else a, -100 if b is None else b)


def directories(path):
    """The directories above a path, each made if it is missing."""
    parts = os.path.dirname(path).split('/')
    for end in range(1, len(parts) + 1):
        piece = '/'.join(parts[:end])
        if piece and not os.path.isdir(piece): at(os.mkdir, piece, 0o755)


held = []


def fill(path, text, mode=0o644, keep=None):
    """Writes a file in a random way of opening."""
    flags = rng.choice([os.O_CREAT | os.O_WRONLY | os.O_TRUNC, os.O_CREAT | os.O_RDWR | os.O_TRUNC, os.O_CREAT | os.O_EXCL | os.O_WRONLY, os.O_WRONLY | os.O_APPEND | os.O_CREAT, os.O_RDWR])
    fd = at(os.open, path, flags, mode)
    if fd is None: return False
    attempt(os.write, fd, text.encode())
    if mode & 0o111 and rng.random() < 0.5: attempt(os.fchmod, fd, mode)
    if keep is not None: held.append((fd, keep))
    else: os.close(fd)
    return True


fresh = 0


def temporary():
    global fresh
    fresh += 1
    return rng.choice(['t%s%d', 'b/t%s%d', '.t%s%d.lock']) % (ROLE, fresh)


# ---- Methods: each puts text under a name. ----

def by_writing(target, text, mode):
    fill(target, text, mode)


def by_rename(target, text, mode):
    source = temporary(); directories(source); fill(source, text, mode); move(source, target)


def by_exchange(target, text, mode):
    source = temporary(); directories(source); fill(source, text, mode)
    if rng.random() < 0.6 and not os.path.lexists(target): fill(target, rng.choice(['', 'ref: refs/heads/main\n', 'gitdir: %s/.git\n' % ROOT, '[core]\n']))
    move(source, target, EXCHANGE) if rng.random() < 0.5 else move(target, source, EXCHANGE)


def by_link(target, text, mode):
    source = temporary(); directories(source); fill(source, text, mode)
    name, fd = naming(target)
    attempt(os.unlink, target) if rng.random() < 0.3 else None
    attempt(os.link, source, name, dst_dir_fd=fd)


def by_symlink(target, text, mode):
    source = temporary(); directories(source); fill(source, text, mode)
    at_target, fd = naming(target)
    attempt(os.symlink, os.path.join(ROOT, source), at_target, dir_fd=fd)


def by_second_link(target, text, mode):
    """Harmless at first; changed through another name of the same file."""
    source = temporary(); directories(source)
    if os.path.lexists(target): attempt(os.link, target, source)
    else:
        fill(source, rng.choice(['', '[core]\n', 'gitdir: %s/.git\n' % ROOT]), mode); attempt(os.link, source, source + '2'); move(source, target); source += '2'
    fill(source, text, mode)


def by_descriptor(target, text, mode):
    """Harmless at first; changed through a descriptor that was kept."""
    source = temporary(); directories(source)
    fill(source, rng.choice(['', '[core]\n', 'gitdir: %s/.git\n' % ROOT]), mode, keep=text); move(source, target)


def by_parent(target, text, mode):
    """Under another parent, which is renamed afterwards."""
    parent, name = os.path.split(target)
    if not parent: return by_rename(target, text, mode)
    other = temporary(); directories(other); at(os.mkdir, other, 0o755); fill(other + '/' + name, text, mode)
    if os.path.lexists(parent): move(other, parent, EXCHANGE) if rng.random() < 0.5 else (move(parent, other + '-old'), move(other, parent))
    else: move(other, parent)


def by_grandparent(target, text, mode):
    parts = target.split('/')
    if len(parts) < 3: return by_parent(target, text, mode)
    other = temporary(); path = '/'.join([other] + parts[1:]); directories(path); fill(path, text, mode)
    if os.path.lexists(parts[0]): move(parts[0], other + '-old')
    move(other, parts[0])


def by_unnamed(target, text, mode):
    fd = attempt(os.open, rng.choice(['.', os.path.dirname(target) or '.']), os.O_TMPFILE | os.O_RDWR, mode)
    if fd is None: return
    attempt(os.write, fd, text.encode())
    attempt(lambda: libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, os.fsencode(target), 0x400))


def by_away_and_back(target, text, mode):
    """The directory under another name, changed, and back."""
    top = target.split('/')[0]
    away = temporary(); directories(away); move(top, away); fill(away + target[len(top):], text, mode); move(away, top)


def by_repository_away(target, text, mode):
    """While the repository that the file belongs to is elsewhere, or is none."""
    root = target.split('/')[0] if '/' in target else '.'
    git, away = os.path.join(root, '.git'), temporary(); directories(away)
    way = rng.randrange(4)
    if way == 0: move(git, away); fill(target, text, mode); move(away, git)
    elif way == 1: move(git, away, EXCHANGE) if os.path.lexists(away) else move(git, away); fill(target, text, mode); move(away, git)
    elif way == 2 and root != '.': move(root, away); directories(target); fill(target, text, mode); move(away + '/.git', git)
    else:
        # Only what git needs to recognise a repository goes.
        for name in ('HEAD', 'objects', 'refs'): move(git + '/' + name, away + '-' + name)
        fill(target, text, mode)
        for name in ('HEAD', 'objects', 'refs'): move(away + '-' + name, git + '/' + name)


def by_git(target, text, mode):
    """Git itself checks the content out."""
    import subprocess
    source = temporary(); directories(source)
    if not fill(source, text, mode): return
    out = attempt(subprocess.run, ['git', 'hash-object', '-w', source], stdout=subprocess.PIPE, stderr=-3)
    blob = out.stdout.decode().strip() if out else ''
    if not blob: return
    if rng.random() < 0.3: attempt(os.utime, '.git/objects/%s/%s' % (blob[:2], blob[2:]), (1, 1))
    attempt(subprocess.run, ['git', 'update-index', '--add', '--cacheinfo', '100%o,%s,%s' % (mode, blob, target)], stdout=-3, stderr=-3)
    attempt(subprocess.run, ['git', rng.choice(['checkout-index', 'checkout']), '-f'] + (['-a'] if rng.random() < 0.5 else ['--', target]), stdout=-3, stderr=-3)


METHODS = [by_repository_away, by_git, by_writing, by_rename, by_exchange, by_link, by_symlink, by_second_link, by_descriptor, by_parent, by_grandparent, by_unnamed, by_away_and_back]


def put(target, text, mode=0o644):
    if rng.random() < 0.8: directories(target)
    method = rng.choice(METHODS); say('put', target, method.__name__)
    method(target, text, mode)
    if mode & 0o111: at(os.chmod, target, mode)


# ---- Goals ----

def evil_repository(path):
    """What git takes for a repository, with configuration that runs the canary."""
    other = path if rng.random() < 0.5 else temporary()
    for name in ('objects', 'refs', 'hooks'): directories(other + '/' + name + '/x')
    fill(other + '/HEAD', 'ref: refs/heads/main\n'); put(other + '/config', config())
    if rng.random() < 0.5: put(other + '/hooks/' + rng.choice(HOOKS), hook(), 0o755)
    if other != path: move(other, path)


def goal_hook():
    put(rng.choice(git_directories()) + '/hooks/' + rng.choice(HOOKS), hook(), 0o755)


def goal_config():
    put(rng.choice(git_directories()) + '/' + rng.choice(['config', 'config', 'config.worktree']), config())


def goal_git_config():
    import subprocess
    key = rng.choice(['core.fsmonitor', 'core.hooksPath', 'core.editor', 'core.sshCommand', 'diff.external', 'core.pager', 'filter.x.clean'])
    value = os.path.join(ROOT, 'h') if key == 'core.hooksPath' else CANARY + '; false'
    attempt(subprocess.run, ['git', 'config', key, value], stdout=-3, stderr=-3)


def goal_redirect():
    evil_repository(rng.choice(['evil', 'evil2', 'x']))
    where = rng.choice(['s', 't', 'd/e', 'lib', 'sub', '', 'new', 'new/deep'])
    put((where + '/' if where else '') + '.git', redirect())
    if rng.random() < 0.4 and where: move(where, where.split('/')[0] + '2')


def goal_commondir():
    evil_repository('evil')
    put(rng.choice(git_directories()) + '/commondir', redirect(''))


def goal_new_repository():
    import subprocess
    path = rng.choice(['n', 's', 'lib/n', 'sub/n', 'cache2.git'])
    attempt(subprocess.run, ['git', 'init', '-q'] + (['--bare'] if path.endswith('.git') else []) + [path], stdout=-3, stderr=-3)
    git = path if path.endswith('.git') else path + '/.git'
    for _ in range(2): put(git + '/hooks/' + rng.choice(HOOKS + SERVER_HOOKS), hook(), 0o755)
    if rng.random() < 0.5: put(git + '/config', config())


def goal_remote():
    import subprocess
    run = lambda *words: attempt(subprocess.run, ['git', *words], stdout=-3, stderr=-3)
    path = rng.choice(['cache.git', 'cache2.git', 'build/cache'])
    run('init', '-q', '--bare', path); put(path + '/hooks/' + rng.choice(SERVER_HOOKS), hook(), 0o755)
    target = rng.choice([ROOT + '/' + path, './' + path])
    rng.choice([lambda: run('remote', 'set-url', 'origin', target), lambda: run('config', 'branch.main.remote', target),
                lambda: run('config', 'branch.main.pushRemote', target), lambda: run('config', 'remote.pushDefault', target), lambda: run('remote', 'add', 'origin', target)])()


def goal_shell():
    put(rng.choice(['', '', HOME + '/']) + rng.choice(SHELL_FILES), shell())


def goal_editor():
    put(rng.choice(['', '', 'lib/', 'sub/', 'wt/', 'deep/lib/']) + rng.choice(EDITOR_FILES), CANARY)


def goal_worktree():
    import subprocess
    name = rng.choice(['w1', 'w2', 'lib/w3'])
    attempt(subprocess.run, ['git', 'worktree', 'add', '-q', name], stdout=-3, stderr=-3)
    own = git_directories()[0] + '/worktrees/' + os.path.basename(name)
    text = rng.choice([config, hook, redirect, lambda: redirect('')])
    if rng.random() < 0.5: evil_repository('evil')
    put(rng.choice([own + '/config.worktree', own + '/commondir', own + '/config', own + '/hooks/post-checkout', own + '/gitdir', name + '/.git']), text(), 0o755)
    if rng.random() < 0.4: move(own, rng.choice(['x', 'evil', git_directories()[0] + '/modules/m']))


def goal_submodule():
    import subprocess
    name = rng.choice(['lib', 'm', 'sub'])
    attempt(subprocess.run, ['git', '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', './lib', name], stdout=-3, stderr=-3)
    module = git_directories()[0] + '/modules/' + name
    if rng.random() < 0.5: put(module + '/' + rng.choice(['config', 'hooks/post-checkout', 'hooks/post-commit', 'commondir']), rng.choice([config(), hook()]), 0o755)
    else:
        other = temporary(); evil_repository(other); move(other, module)
        put(name + '/.git', 'gitdir: %s\n' % os.path.join(ROOT, module))


def goal_neighbour():
    """Somebody renames, exchanges, links and locks directories all the time while others act."""
    import fcntl
    names = rng.sample(['x', 'y', 's', 'evil', 'new', 'build', '.vscode', '.claude', 'hooks', 'lib', 'deep', 'objects', '.config'], 3)
    for name in names[:2]: attempt(os.mkdir, name)
    here = ROOT if rng.random() < 0.7 else os.path.join(ROOT, rng.choice(['.git', 'lib', 'evil']))
    pid = os.fork()
    if pid: children.append(pid); return
    end = time.monotonic() + 0.4; held_locks = []
    try:
        os.chdir(here)
        for name in ('.', names[0]): held_locks.append(os.open(name, os.O_RDONLY)); fcntl.flock(held_locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError: pass
    while time.monotonic() < end:
        for function, arguments in ((os.rename, (names[0], names[2])), (os.rename, (names[2], names[0])), (renameat2, (names[0], names[1], EXCHANGE)),
                                    (os.symlink, (names[1], names[2])), (os.unlink, (names[2],))):
            try: function(*arguments)
            except OSError: pass
    os._exit(0)


def goal_race():
    """A directory gets its last entry or its name while somebody puts a file into it."""
    directory, target = temporary(), rng.choice(['n/.git', '.vscode', '.claude', 'r/.git', 'lib/.vscode', '.git/modules/m', '.git/hooks'])
    name = rng.choice(['hooks/pre-commit', 'config', 'tasks.json', 'settings.json', 'hooks/post-checkout'])
    text = config() if name == 'config' else hook() if 'hooks' in name else CANARY
    directories(directory + '/' + name); directories(target); directories(directory + '/refs/x')
    attempt(lambda: open(directory + '/HEAD', 'w').write('ref: refs/heads/main\n'))
    pid = os.fork()
    if pid == 0:
        for _ in range(60):
            for path in (directory, target):
                try:
                    fd = os.open(path + '/' + name, os.O_CREAT | os.O_WRONLY, 0o755); os.write(fd, text.encode()); os.close(fd)
                except OSError: pass
            try: os.unlink(directory + '/' + name)
            except OSError: pass
        os._exit(0)
    children.append(pid)
    for _ in range(60):
        for function, arguments in ((os.mkdir, (directory + '/objects',)), (os.rename, (directory, target)), (os.rename, (target, directory)), (os.rmdir, (directory + '/objects',))):
            try: function(*arguments)
            except OSError: pass
    attempt(os.mkdir, directory + '/objects'); attempt(os.rename, directory, target)


def goal_swap():
    """A repository of the host changes places with another directory while somebody writes to its files."""
    real, names = rng.choice([('lib', ['.vscode/settings.json', '.git/config', '.git/hooks/pre-commit']), ('cache.git', ['config', 'hooks/update', 'hooks/post-update']),
                              ('deep', ['lib/.vscode/tasks.json', 'lib/.git/config'])])
    name, other, away = rng.choice(names), temporary(), temporary()
    text = config() if name.endswith('config') else hook() if 'hooks' in name else CANARY
    directories(other + '/' + name); fill(other + '/' + name, '', 0o755)
    pid = os.fork()
    if pid == 0:
        for _ in range(80):
            for pair in ((real, away), (other, real), (real, other), (away, real)):
                try: os.rename(*pair)
                except OSError: pass
        os._exit(0)
    children.append(pid)
    for _ in range(80):
        try: os.link(real + '/' + name, away + '-link')
        except OSError: pass
        for path in (real + '/' + name, away + '-link'):
            try:
                fd = os.open(path, rng.choice([os.O_WRONLY, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_CREAT]), 0o755); os.write(fd, text.encode()); os.close(fd); os.chmod(path, 0o755)
            except OSError: pass
        try: os.unlink(away + '-link')
        except OSError: pass


children = []


def goal_targets():
    if KIND == 'rebase': return put('.git/rebase-merge/git-rebase-todo', todo())
    if KIND == 'hookspath': return put(*rng.choice([('.husky/' + rng.choice(HOOKS), hook(), 0o755), ('team.gitconfig', config(), 0o644)]))
    if KIND == 'submodule': return put('.git/modules/sub/' + rng.choice(['hooks/post-checkout', 'config']), rng.choice([hook(), config()]), 0o755)
    if KIND == 'worktree': return put(OUT + '/main/.git/' + rng.choice(['hooks/pre-commit', 'config', 'rebase-merge/git-rebase-todo', 'worktrees/p/commondir', 'worktrees/p/config.worktree']), rng.choice([hook(), config(), todo()]), 0o755)
    return goal_config()


def goal_rebase():
    """The state of a rebase, made by hand."""
    git = git_directories()[0]
    other = temporary()
    for name, text in (('git-rebase-todo', todo()), ('head-name', 'refs/heads/main\n'), ('onto', 'HEAD\n'), ('orig-head', 'HEAD\n'), ('interactive', ''), ('done', ''), ('msgnum', '1\n'), ('end', '1\n')):
        directories(other + '/' + name); fill(other + '/' + name, text)
    move(other, git + '/rebase-merge')


def goal_outside():
    put(rng.choice([OUT + '/planted', OUT + '/main/planted', OUT + '/origin.git/hooks/post-receive', '../planted', HOME + '/planted', HOME + '/.config/planted']), hook(), 0o755)


# The first of each are written most often.
WRITTEN = ['logs/HEAD', 'COMMIT_EDITMSG', 'FETCH_HEAD'] * 6 + ['logs/refs/heads/main', 'ORIG_HEAD', 'packed-refs', 'objects/info/commit-graph', 'gc.pid', 'gc.log', 'info/refs', 'refs/heads/main', 'index.lock']
WRITTEN_DIRECTORIES = ['logs', 'refs/tags', 'objects/pack'] * 4 + ['logs/refs', 'refs', 'refs/heads', 'refs/remotes', 'objects', 'objects/info', 'worktrees', 'modules', 'info']


def goal_write_through():
    """A symbolic link in a git directory, so that git on the host writes outside."""
    import subprocess
    git = rng.choice(git_directories() + ['n/.git', 'new.git'])
    if git == 'n/.git': attempt(subprocess.run, ['git', 'clone', '-q', '.', 'n'], stdout=-3, stderr=-3)
    if git == 'new.git': attempt(subprocess.run, ['git', 'init', '-q', '--bare', git], stdout=-3, stderr=-3)
    entry, target = rng.choice([(rng.choice(WRITTEN), ASIDE + '/file'), (rng.choice(WRITTEN_DIRECTORIES), ASIDE + '/directory')])
    if rng.random() < 0.3: target = os.path.relpath(target, os.path.dirname(os.path.join(ROOT, git, entry)))
    path, source, way = git + '/' + entry, temporary(), rng.randrange(8)
    directories(source); directories(path)
    say('write through', path, target, way)
    if way == 6:
        # While the repository is none, or has another name.
        away = source + '-git'; move(git, away)
        if rng.random() < 0.5: move(away + '/refs', source + '-refs')
        move(away + '/' + entry, source + '-old'); at(symlink_to, away + '/' + entry, target)
        move(source + '-refs', away + '/refs'); move(away, git); return
    if way == 7:
        parent, name = os.path.split(path); other = source + '-parent'
        at(os.mkdir, other, 0o755); at(symlink_to, other + '/' + name, target)
        if rng.random() < 0.5: return move(other, parent, EXCHANGE)
        move(parent, source + '-old'); return move(other, parent)
    if rng.random() < 0.9: at(os.unlink, path) if os.path.isfile(path) else move(path, source + '-old')
    if way in (0, 1): return at(symlink_to, path, target)
    at(symlink_to, source, target)
    if way in (2, 3): move(source, path)
    elif way == 4: attempt(os.link, source, path, follow_symlinks=False)
    else: fill(path, ''); move(source, path, EXCHANGE)


def goal_limit():
    import resource
    if not INSIDE: return
    attempt(resource.prlimit, 1, resource.RLIMIT_CPU, (1, 1)); attempt(resource.prlimit, 1, resource.RLIMIT_NOFILE, (3, 3)); attempt(os.setpriority, os.PRIO_PROCESS, 1, 19)


GOALS = [goal_write_through] * 8 + [goal_hook] * 3 + [goal_config] * 3 + [goal_git_config] + [goal_redirect] * 5 + [goal_commondir] * 2 + [goal_new_repository] * 2 + [goal_remote] * 2 + \
        [goal_shell] * 2 + [goal_editor] * 2 + [goal_targets] * 4 + [goal_rebase] + [goal_outside] + [goal_limit] + [goal_worktree] * 2 + [goal_submodule] * 2 + \
        [goal_neighbour] * 2 + [goal_race] * 2 + [goal_swap] * 2


# ---- Noise: single operations on interesting names. ----

def somewhere():
    tops = git_directories() + ['.', '.', 's', 't', 'lib', 'evil', 'sub', 'new', '.husky']
    names = PLAIN + ['.git', 'hooks', 'config', 'commondir', 'HEAD', 'objects', 'refs', 'gitdir', 'index', 'rebase-merge', '.bashrc', '.vscode', 'hooks/pre-commit', 'config.lock', 'packed-refs']
    return os.path.normpath(rng.choice(tops) + '/' + rng.choice(names))


def bind_there(path):
    s = socket.socket(socket.AF_UNIX); name, _ = naming(path); attempt(s.bind, name)


def noise():
    rng.choice([lambda: at(os.mkdir, somewhere(), 0o755), lambda: move(somewhere(), somewhere()), lambda: move(somewhere(), somewhere(), EXCHANGE),
                lambda: at(os.unlink, somewhere()), lambda: at(os.rmdir, somewhere()), lambda: at(os.chmod, somewhere(), rng.choice([0o755, 0o644, 0o000, 0o4755])),
                lambda: attempt(os.link, somewhere(), somewhere()), lambda: attempt(os.symlink, rng.choice([somewhere(), ROOT, OUT, '..']), somewhere()),
                lambda: fill(somewhere(), rng.choice([config(), redirect(), hook(), redirect(''), todo()]), rng.choice([0o644, 0o755])),
                lambda: at(os.mkfifo, somewhere()), lambda: attempt(os.mknod, somewhere(), stat.S_IFREG | 0o755), lambda: bind_there(somewhere()),
                lambda: attempt(os.truncate, somewhere(), 0), lambda: attempt(os.utime, somewhere())])()


# ---- The plan ----

def work(seed):
    """One worker: goals with noise in between."""
    global rng
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 3)):
        for _ in range(rng.choice([0, 0, 1, 3])): noise()
        rng.choice(GOALS)()
    while children: attempt(os.waitpid, children.pop(), 0)


def in_thread(seed):
    # A directory and a mask of its own, sometimes.
    if seed % 3 == 0 and libc.unshare(0x200) == 0: attempt(os.chdir, '.')
    work(seed)


def in_process(seed, dies):
    pid = os.fork()
    if pid == 0:
        try: work(seed)
        finally: os._exit(0)
    if dies:
        time.sleep(rng.random() * 0.02); attempt(os.kill, pid, signal.SIGKILL)
    return pid


def main():
    signal.alarm(20)
    shape = rng.random(); seeds = [rng.randrange(1 << 30) for _ in range(4)]
    fills = ('h', '') if rng.random() < 0.3 else ()
    if fills:
        attempt(os.mkdir, 'h')
        for name in ('pre-commit', 'post-checkout', 'post-index-change'): fill('h/' + name, hook(), 0o755)
        fill('inc', config())
    if shape < 0.55: work(seeds[0])
    elif shape < 0.75:
        # Threads share the generator: their order is not that of the seed.
        threads = [threading.Thread(target=in_thread, args=(seed,)) for seed in seeds[:3]]
        [thread.start() for thread in threads]; [thread.join() for thread in threads]
    else:
        dies = [rng.random() < 0.4 for _ in seeds]
        for pid in [in_process(seed, die) for seed, die in zip(seeds, dies)]: os.waitpid(pid, 0)
    if ROLE == 'b': time.sleep(0.03)
    for fd, text in held:
        attempt(os.ftruncate, fd, 0); attempt(os.pwrite, fd, text.encode(), 0)


main()
