/* 64 threads that create, rename, link and remove for some seconds; prints how many calls succeeded.
 *
 * usage: stress SECONDS
 *
 * Each thread works in a directory of its own and, now and then, in one that all share. A call that
 * fails there where nobody interferes ends the program with 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 64 };
static atomic_int stop, failed;
static atomic_long calls;

static void check(int result, const char *what) {
    atomic_fetch_add(&calls, 1);
    if (result < 0 && !atomic_exchange(&failed, 1)) fprintf(stderr, "%s: %m\n", what);
}

static void *work(void *argument) {
    long number = (long)argument;
    unsigned seed = number * 7919 + 1;
    char a[64], b[64], d[64];
    while (!stop && !failed) {
        int k = rand_r(&seed) % 16;
        snprintf(a, sizeof a, "t%ld/f%d", number, k);
        snprintf(b, sizeof b, "t%ld/g%d", number, k);
        snprintf(d, sizeof d, "t%ld/d%d", number, k);
        int fd = open(a, O_CREAT | O_RDWR | O_TRUNC, 0644);
        check(fd, "open");
        if (fd >= 0) {
            if (write(fd, &number, sizeof number) != sizeof number) failed = 1;
            close(fd);
        }
        check(rename(a, b), "rename");
        check(link(b, a), "link");
        check(unlink(a), "unlink");
        check(unlink(b), "unlink");
        check(mkdir(d, 0755), "mkdir");
        check(rmdir(d), "rmdir");
        check(symlink("x", d), "symlink");
        check(unlink(d), "unlink");
        snprintf(a, sizeof a, "shared/%d", k);
        snprintf(b, sizeof b, "shared/%d", (k + 1) % 16);
        fd = open(a, O_CREAT | O_RDWR, 0644);
        if (fd >= 0) close(fd);
        rename(a, b);
        atomic_fetch_add(&calls, 2);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t threads[THREADS];
    mkdir("shared", 0755);
    for (long i = 0; i < THREADS; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%ld", i);
        mkdir(name, 0755);
    }
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    sleep(seconds);
    stop = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%ld\n", calls / seconds);
    return failed;
}
