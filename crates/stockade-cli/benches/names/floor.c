// floor CMD...: the least that a mediator can do. It receives each call that changes a name, reads the path, acts
// where the caller is, and answers: no policy, no decision, no protection. What Stockade costs beyond it is its own.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, unsigned long long)
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS(number, then) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, then, 0)
#define NOTIFY BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

static void install(int report) {
    struct sock_filter code[] = {
        LOAD(nr),
        IS(SYS_open, 14), IS(SYS_openat, 15), IS(SYS_unlink, 11), IS(SYS_unlinkat, 10), IS(SYS_rmdir, 9), IS(SYS_mkdir, 8),
        IS(SYS_mkdirat, 7), IS(SYS_rename, 6), IS(SYS_renameat, 5), IS(SYS_renameat2, 4), IS(SYS_link, 3), IS(SYS_linkat, 2),
        IS(SYS_creat, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        NOTIFY,
        // open: the flags are the second argument, of openat the third.
        LOAD(args[1]), BPF_STMT(BPF_JMP | BPF_JA, 1),
        LOAD(args[2]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, WRITES, 0, 1), NOTIFY,
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    int listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (listener < 0) { perror("floor: seccomp"); exit(125); }
    write(report, &listener, sizeof listener);
}

static char path[2][4096];

static int text(int pid, unsigned long long from, char *to) {
    size_t room = 4096 - from % 4096;
    struct iovec here = {to, room}, there = {(void *)from, room};
    ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (got <= 0 || memchr(to, 0, got)) return got <= 0 ? -1 : 0;
    here = (struct iovec){to + got, 4096 - got}, there = (struct iovec){(char *)from + got, 4096 - got};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) <= 0 ? -1 : 0;
}

// Goes to where a path of the caller starts.
static int enter(int pid, int directory, const char *name) {
    static int known, pidfd = -1;
    char link[64];
    if (*name == '/') return 0;
    if (directory == AT_FDCWD) { sprintf(link, "/proc/%d/cwd", pid); return chdir(link); }
    if (known != pid) { close(pidfd); pidfd = syscall(SYS_pidfd_open, pid, 0); known = pid; }
    int fd = syscall(SYS_pidfd_getfd, pidfd, directory, 0);
    int result = fchdir(fd);
    close(fd);
    return result;
}

static long act(struct seccomp_notif *call, int *descriptor) {
    unsigned long long *a = call->data.args;
    int nr = call->data.nr, pid = call->pid;
    int from = AT_FDCWD, to = AT_FDCWD, second = -1, first = 0;
    switch (nr) {
    case SYS_openat: case SYS_unlinkat: case SYS_mkdirat: from = a[0]; first = 1; break;
    case SYS_rename: case SYS_link: second = 1; break;
    case SYS_renameat: case SYS_renameat2: case SYS_linkat: from = a[0]; to = a[2]; first = 1; second = 3; break;
    }
    if (text(pid, a[first], path[0]) || (second >= 0 && text(pid, a[second], path[1]))) return -1;
    if (enter(pid, from, path[0])) return -1;
    int start = AT_FDCWD;
    if (second >= 0 && to != from && *path[1] != '/') {
        start = open(".", O_PATH | O_CLOEXEC);
        if (enter(pid, to, path[1])) return -1;
    }
    long result;
    switch (nr) {
    case SYS_open: return *descriptor = open(path[0], a[1] | O_CLOEXEC, a[2]);
    case SYS_creat: return *descriptor = open(path[0], O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, a[1]);
    case SYS_openat: return *descriptor = open(path[0], a[2] | O_CLOEXEC, a[3]);
    case SYS_unlink: return unlink(path[0]);
    case SYS_rmdir: return rmdir(path[0]);
    case SYS_unlinkat: return unlinkat(AT_FDCWD, path[0], a[2]);
    case SYS_mkdir: return mkdir(path[0], a[1]);
    case SYS_mkdirat: return mkdir(path[0], a[2]);
    case SYS_link: case SYS_linkat: result = linkat(start, path[0], AT_FDCWD, path[1], nr == SYS_linkat ? a[4] : 0); break;
    default: result = renameat2(start, path[0], AT_FDCWD, path[1], nr == SYS_renameat2 ? a[4] : 0);
    }
    int error = errno;
    if (start != AT_FDCWD) close(start);
    errno = error;
    return result;
}

int main(int argc, char **argv) {
    int child, report[2], ready[2];
    pipe2(report, O_CLOEXEC);
    pipe2(ready, O_CLOEXEC);
    if ((child = fork()) == 0) {
        install(report[1]);
        char go;
        read(ready[0], &go, 1);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    int number;
    read(report[0], &number, sizeof number);
    int pidfd = syscall(SYS_pidfd_open, child, 0), listener = syscall(SYS_pidfd_getfd, pidfd, number, 0);
    write(ready[1], "x", 1);
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, 1ULL);
    for (;;) {
        struct seccomp_notif call = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call)) {
            struct pollfd state = {listener, POLLIN};
            if (poll(&state, 1, 0) == 1 && state.revents & POLLHUP) break;
            continue;
        }
        int descriptor = -1;
        long result = act(&call, &descriptor);
        if (descriptor >= 0) {
            struct seccomp_notif_addfd add = {.id = call.id, .flags = SECCOMP_ADDFD_FLAG_SEND, .srcfd = descriptor};
            ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
            close(descriptor);
        } else {
            struct seccomp_notif_resp answer = {.id = call.id, .val = result < 0 ? 0 : result, .error = result < 0 ? -errno : 0};
            ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
        }
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
