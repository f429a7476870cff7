# Prelude of every Python attack. Raw system calls by name, one line of outcome for each attempt.
import ctypes, errno, os, platform, signal, socket, stat, struct, sys, time

_X86 = platform.machine() == 'x86_64'
# name: (x86_64, aarch64); numbers from 424 on are the same everywhere.
_NR = {
    'ptrace': (101, 117), 'mount': (165, 40), 'umount2': (166, 39), 'pivot_root': (155, 41),
    'chroot': (161, 51), 'unshare': (272, 97), 'setns': (308, 268), 'clone': (56, 220),
    'clone3': (435, 435), 'open_tree': (428, 428), 'move_mount': (429, 429), 'fsopen': (430, 430),
    'fspick': (433, 433), 'fsmount': (432, 432), 'fsconfig': (431, 431), 'mount_setattr': (442, 442),
    'io_uring_setup': (425, 425), 'io_uring_enter': (426, 426), 'io_uring_register': (427, 427),
    'bpf': (321, 280), 'perf_event_open': (298, 241), 'userfaultfd': (323, 282),
    'keyctl': (250, 219), 'add_key': (248, 217), 'request_key': (249, 218),
    'kexec_load': (246, 104), 'init_module': (175, 105), 'finit_module': (313, 273),
    'delete_module': (176, 106), 'name_to_handle_at': (303, 264), 'open_by_handle_at': (304, 265),
    'process_vm_readv': (310, 270), 'process_vm_writev': (311, 271), 'pidfd_open': (434, 434),
    'pidfd_getfd': (438, 438), 'openat2': (437, 437), 'renameat2': (316, 276),
    'quotactl': (179, 60), 'acct': (163, 89), 'swapon': (167, 224), 'reboot': (169, 142),
    'settimeofday': (164, 170), 'sethostname': (170, 161), 'setdomainname': (171, 162),
    'iopl': (172, -1), 'ioperm': (173, -1), 'syslog': (103, 116), 'personality': (135, 92),
    'fanotify_init': (300, 262), 'shmget': (29, 194), 'socket': (41, 198), 'ioctl': (16, 29),
    'memfd_secret': (447, 447), 'getpid': (39, 172), 'kcmp': (312, 272), 'lookup_dcookie': (212, 18),
    'vhangup': (153, 58), 'nfsservctl': (180, 42), 'mknodat': (259, 33), 'fchmodat': (268, 53),
    'setxattr': (188, 5), 'linkat': (265, 37),
}
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def call(name, *args):
    """The raw result, or minus errno. Bytes are passed as C strings, buffers by address."""
    number = name if isinstance(name, int) else _NR[name][0 if _X86 else 1]
    words = []
    for arg in args:
        if isinstance(arg, int):
            words.append(ctypes.c_ulong(arg & 0xFFFFFFFFFFFFFFFF))
        else:
            words.append(arg)
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(number), *words)
    return result if result >= 0 else -ctypes.get_errno()


def tell(name, result):
    """One line: name=OK or name=EPERM."""
    word = 'OK' if result >= 0 else errno.errorcode.get(-result, str(-result))
    print(f'{name}={word}', flush=True)
    return result


def attempt(name, *args):
    return tell(name, call(name, *args))


def trying(name, function):
    """Runs a function and tells OK or the error it raised."""
    try:
        function()
        tell(name, 0)
        return True
    except OSError as error:
        tell(name, -(error.errno or errno.EIO))
    except Exception as error:
        print(f'{name}={type(error).__name__}', flush=True)
    return False


CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x10000000, 0x20000000, 0x40000000
MS_REC, MS_PRIVATE, MS_BIND, MNT_DETACH = 0x4000, 0x40000, 0x1000, 2
AT_FDCWD = -100
