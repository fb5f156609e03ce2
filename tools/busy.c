/* tools/busy.c -- takes the cores away for a while, again and again, until it or who started it ends: so that tests
   meet what other programs, or other guests of the same host, do to them.

   busy PERCENT MS: so much of each core's time, in stretches of up to MS milliseconds, most of them much shorter.
   Linux; its threads have real-time priority, which takes root or a limit on rtprio. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double share, most_ns;

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void rest(double ns) {
    struct timespec time;
    time.tv_sec = (time_t)(ns / 1e9);
    time.tv_nsec = (long)(ns - (double)time.tv_sec * 1e9);
    nanosleep(&time, NULL);
}

/* Four of five stretches are shorter than half of the longest; the rest after each is what the share asks for, or up to
   half as much more or less. */
static void* take(void* argument) {
    unsigned seed = 1 + *(const unsigned*)argument;
    for (;;) {
        const double part = (double)rand_r(&seed) / RAND_MAX;
        const double busy_ns = most_ns * part * part * part;
        const double end_ns = now_ns() + busy_ns;
        while (now_ns() < end_ns)
            continue;
        rest(20000 + busy_ns * (1 - share) / share * (0.5 + (double)rand_r(&seed) / RAND_MAX));
    }
    return NULL;
}

static int take_core(unsigned* core) {
    pthread_t thread;
    cpu_set_t its_own;
    struct sched_param priority;
    memset(&priority, 0, sizeof priority);
    priority.sched_priority = 50;
    CPU_ZERO(&its_own);
    CPU_SET(*core, &its_own);
    int error = pthread_create(&thread, NULL, take, core);
    if (error == 0)
        error = pthread_setaffinity_np(thread, sizeof its_own, &its_own);
    return error == 0 ? pthread_setschedparam(thread, SCHED_FIFO, &priority) : error;
}

int main(int n_arguments, char** arguments) {
    static unsigned cores[CPU_SETSIZE];
    cpu_set_t allowed;
    share = n_arguments == 3 ? atof(arguments[1]) / 100 : 0;
    most_ns = n_arguments == 3 ? atof(arguments[2]) * 1e6 : 0;
    if (!(share > 0 && share <= 0.9) || !(most_ns > 0 && most_ns <= 1e9)) {
        fprintf(stderr, "usage: busy PERCENT MS: up to 90 percent of each core, at most MS (up to 1000) at a time\n");
        return 2;
    }
    CPU_ZERO(&allowed);
    (void)sched_getaffinity(0, sizeof allowed, &allowed);
    for (unsigned core = 0; core < CPU_SETSIZE; core++) {
        cores[core] = core;
        const int error = CPU_ISSET(core, &allowed) ? take_core(&cores[core]) : 0;
        if (error != 0) {
            fprintf(stderr, "busy: core %u: %s\n", core, strerror(error));
            return 1;
        }
    }
    const pid_t parent = getppid();
    while (getppid() == parent) /* nobody is to be left alone with it */
        sleep(1);
    return 0;
}
