/* Holds one call in the kernel for as long as it can, and says "blocked" when it is held.
 *
 * usage: block connect|lease|fifo wait|work SECONDS
 *
 * A supervisor that performs the call with its only thread is stopped by it. A child makes the call;
 * the parent then waits SECONDS and prints "finished", or does ordinary work on names and prints
 * "went-on" if the child is still held when the work is done.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Shared with the child: how many calls it has made. */
static volatile long *calls;
/* Whether the call has returned. */
static volatile long *ended;
static volatile sig_atomic_t lease_broken;
static volatile int current = -1;

static void on_break(int signal) { (void)signal; lease_broken = 1; }

/* The flags of a socket belong to everybody who has it: this takes O_NONBLOCK away from whoever set
 * it on behalf of the caller. */
static void *clear_flags(void *unused) {
    (void)unused;
    for (;;) {
        int fd = current;
        if (fd >= 0) fcntl(fd, F_SETFL, 0);
    }
    return NULL;
}

static void connect_forever(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "full.sock"};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (void *)&name, sizeof name) || listen(listener, 0)) { perror("listen"); _exit(1); }
    for (int i = 0; i < 8; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(fd, (void *)&name, sizeof name)) break;
    }
    pthread_t thread;
    pthread_create(&thread, NULL, clear_flags, NULL);
    for (;;) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        current = fd;
        ++*calls;
        connect(fd, (void *)&name, sizeof name);
        current = -1;
        close(fd);
    }
}

static char state_of(pid_t pid) {
    char path[64], line[512], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return '?';
    if (fgets(line, sizeof line, file)) {
        char *end = strrchr(line, ')');
        if (end && end[1] == ' ') state = end[2];
    }
    fclose(file);
    return state;
}

/* Until the child makes no more calls, or sleeps in the kernel each time that one looks. */
static void await_block(const char *way, pid_t child) {
    if (!strcmp(way, "lease")) { while (!lease_broken) usleep(10000); return; }
    long last = -1;
    for (int still = 0; still < 20;) {
        usleep(100000);
        int asleep = !strcmp(way, "connect") ? *calls == last : state_of(child) != 'R';
        still = asleep && *calls > 0 ? still + 1 : 0;
        last = *calls;
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const char *way = argv[1];
    calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ended = calls + 1;
    if (!strcmp(way, "fifo")) mkfifo("fifo", 0644);
    if (!strcmp(way, "lease")) {
        signal(SIGIO, on_break);
        int fd = open("leased", O_CREAT | O_RDWR, 0644);
        if (fcntl(fd, F_SETLEASE, F_WRLCK)) { perror("lease"); return 1; }
    }
    pid_t child = fork();
    if (child == 0) {
        signal(SIGIO, SIG_IGN);
        setsid();
        /* A terminal ends when its last process lets go of it. */
        for (int fd = 0; fd < 3; fd++) close(fd);
        if (!strcmp(way, "connect")) connect_forever();
        ++*calls;
        open(!strcmp(way, "fifo") ? "fifo" : "leased", O_WRONLY);
        /* Held or not, it stays until it is killed. */
        *ended = 1;
        for (;;) pause();
    }
    await_block(way, child);
    printf("blocked\n");
    fflush(stdout);
    if (!strcmp(argv[2], "work")) {
        int fd = open("made", O_CREAT | O_WRONLY, 0644);
        int ok = fd >= 0 && !mkdir("directory", 0755) && !rename("made", "directory/moved") && !symlink("x", "link");
        printf(ok && !*ended ? "went-on\n" : "late or refused: %m\n");
        kill(child, SIGKILL);
        return 0;
    }
    for (int left = atoi(argv[3]); left > 0; left--) sleep(1);
    printf("finished\n");
    return 0;
}
