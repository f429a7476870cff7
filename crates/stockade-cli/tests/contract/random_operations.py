"""Random operations on names and files, each with what came of it, then what is there in the end.

The same seed does the same everywhere, so two runs in the same directory must print the same.
"""
import errno, fcntl, os, random, stat, sys

tree, first, last, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
NAMES = ['a', 'b', 'c', 'd']
FLAGS = [os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_NOFOLLOW, os.O_DIRECTORY, os.O_CLOEXEC]
MODES = [0o666, 0o777, 0o755, 0o700, 0o600, 0o444]
# What the kernel adds (O_LARGEFILE), and O_NOFOLLOW, which is not always handed on.
HIDDEN = 0o500000
chance = random.Random()
drawn = []
descriptors = []


def draw(value):
    drawn.append(value)
    return value


def path():
    parts = [chance.choice(NAMES) for _ in range(chance.choice([1, 1, 1, 2, 2, 3]))]
    kind = chance.random()
    if kind < .08: parts.insert(chance.randrange(1, len(parts) + 1), chance.choice(['.', '..']))
    text = '/'.join(parts)
    if .08 < kind < .2: text = f'{top}/{text}'
    if .2 < kind < .24: text = text.replace('/', '//')
    if .24 < kind < .26: text = f'/proc/self/cwd/{text}'
    if kind > .93: text += '/'
    if kind > .995: text = ''
    return draw(text)


def base():
    return draw(chance.choice(descriptors) if descriptors and chance.random() < .3 else None)


def follow():
    return chance.random() < .5


def open_file():
    flags = chance.choice([os.O_RDONLY, os.O_WRONLY, os.O_WRONLY, os.O_RDWR]) | os.O_NONBLOCK
    for flag in FLAGS:
        if chance.random() < (.5 if flag == os.O_CREAT else .2): flags |= flag
    draw(oct(flags))
    fd = os.open(path(), flags, chance.choice([*MODES, 0o100644]), dir_fd=base())
    try:
        info = os.fstat(fd)
        said = [oct(info.st_mode), info.st_nlink, fcntl.fcntl(fd, fcntl.F_GETFL) & ~HIDDEN, fcntl.fcntl(fd, fcntl.F_GETFD)]
        if stat.S_ISREG(info.st_mode):
            said.append(info.st_size)
            if flags & os.O_ACCMODE: said.append(os.write(fd, b'x' * chance.randrange(5)))
        return said
    finally:
        os.close(fd)


def open_nameless():
    fd = os.open(path(), os.O_TMPFILE | os.O_RDWR, 0o646, dir_fd=base())
    try:
        os.write(fd, b'tmp')
        if chance.random() < .7: os.link(f'/proc/self/fd/{fd}', path(), follow_symlinks=True)
        return oct(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


def hold_directory():
    descriptors.append(os.open(path(), chance.choice([os.O_RDONLY, os.O_PATH]) | os.O_DIRECTORY, dir_fd=base()))
    if len(descriptors) > 4: os.close(descriptors.pop(0))


def look():
    info = os.stat(path(), dir_fd=base(), follow_symlinks=follow())
    return oct(info.st_mode), stat.S_ISDIR(info.st_mode) or (info.st_nlink, info.st_size)


OPERATIONS = [
    (20, open_file), (3, open_nameless), (4, hold_directory), (6, look),
    (8, lambda: os.mkdir(path(), chance.choice(MODES[1:4]), dir_fd=base())),
    (6, lambda: os.rmdir(path(), dir_fd=base())),
    (8, lambda: os.unlink(path(), dir_fd=base())),
    (10, lambda: os.rename(path(), path(), src_dir_fd=base(), dst_dir_fd=base())),
    (6, lambda: os.symlink(path().rstrip('/'), path(), dir_fd=base())),
    (5, lambda: os.link(path(), path(), src_dir_fd=base(), dst_dir_fd=base(), follow_symlinks=follow())),
    (3, lambda: os.mkfifo(path(), 0o644, dir_fd=base())),
    (4, lambda: os.chmod(path(), chance.choice(MODES), dir_fd=base())),
    (3, lambda: os.truncate(path(), chance.randrange(9))),
    (3, lambda: os.utime(path(), (1, 2), dir_fd=base(), follow_symlinks=follow())),
    (2, lambda: os.setxattr(path(), 'user.k', b'v')),
    (1, lambda: os.chown(path(), os.getuid(), os.getgid(), dir_fd=base(), follow_symlinks=follow())),
    (5, lambda: os.chdir(path())), (2, lambda: os.chdir(top)),
    (1, lambda: os.fchdir(chance.choice(descriptors)) if descriptors else None),
    (1, lambda: os.umask(chance.choice([0, 0o022, 0o077]))),
]


def outcome(action):
    try: return action()
    except OSError as error: return errno.errorcode[error.errno]


def describe(name):
    info = os.lstat(name)
    target = os.readlink(name) if stat.S_ISLNK(info.st_mode) else ''
    return oct(info.st_mode), stat.S_ISDIR(info.st_mode) or (info.st_nlink, info.st_size), target


start = os.getcwd()
for seed in range(first, last + 1):
    # Deep, because a link and `..` may lead out of it.
    top = os.path.join(start, tree, str(seed), *'123456')
    os.makedirs(top)
    os.chdir(top)
    os.umask(0o022)
    for number in range(count):
        # Anew for each: what one draws must not depend on how the one before ended.
        chance.seed(f'{seed} {number}')
        [(_, operation)] = chance.choices(OPERATIONS, [weight for weight, _ in OPERATIONS])
        drawn.clear()
        said = outcome(operation)
        print(seed, number, OPERATIONS.index((_, operation)), drawn, said)
    print(outcome(lambda: os.chdir(top)))
    for root, directories, files in os.walk('.'):
        directories.sort()
        for name in sorted(directories + files):
            name = os.path.join(root, name)
            print(name, outcome(lambda: describe(name)))
    for fd in descriptors: os.close(fd)
    descriptors.clear()
    os.chdir(start)
