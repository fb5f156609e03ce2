/* tools/gpustage/interrupt.c -- Ctrl-C, SIGTERM and SIGHUP: the first drains the pipeline, the second cancels it, a
   third ends the process. The library itself installs no handler. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "interrupt.h"

#include "console.h"

#include <errno.h>
#if !defined(_WIN32)
#include <poll.h>
#endif
#include <signal.h>
#include <string.h>
#include <unistd.h>

static gpst_pipeline* volatile interrupt_pipeline;
static volatile sig_atomic_t interrupt_count;
static volatile sig_atomic_t interrupt_says; /* not quiet */
static volatile sig_atomic_t interrupt_works; /* something has been made that is to be ended well */

/* Who does not read what is said must not hold the run. */
static void interrupt_say(const char* said, size_t bytes) {
#if !defined(_WIN32)
    struct pollfd out;
    out.fd = 2;
    out.events = POLLOUT;
    out.revents = 0;
    if (poll(&out, 1, 0) <= 0 || !(out.revents & POLLOUT))
        return;
#endif
    const ssize_t ignored = write(2, said, (unsigned)bytes);
    (void)ignored;
}

static void interrupt_handle(int number) {
    static const char said[] = "\ngpustage: finishing what is in flight; once more to drop it\n";
    const int saved_errno = errno;
    const int count = (int)interrupt_count + 1;
    gpst_pipeline* const pipeline = interrupt_pipeline;
    interrupt_count = count;
    /* Without a pipeline, what is left may have no end of its own, as a FIFO that nobody reads. */
    if (count >= 3 || (!pipeline && (!interrupt_works || count >= 2)))
        _exit(EXIT_INTERRUPTED);
    gpst_pipeline_stop(pipeline);
    if (count == 1 && interrupt_says)
        interrupt_say(said, sizeof said - 1);
    if (count >= 2)
        gpst_pipeline_cancel(pipeline);
#if defined(_WIN32)
    signal(number, interrupt_handle); /* there, a handler serves once */
#else
    (void)number;
#endif
    errno = saved_errno;
}

#if !defined(_WIN32)
/* What nohup, or a shell without job control, told the process to ignore stays ignored. */
static void interrupt_take(int number, const struct sigaction* action) {
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN)
        return;
    sigaction(number, action, NULL);
}
#endif

void interrupt_open(bool works) {
    interrupt_works = works || interrupt_works;
    interrupt_says = !console_is_quiet();
#if defined(_WIN32)
    signal(SIGINT, interrupt_handle);
    signal(SIGTERM, interrupt_handle);
#else
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupt_handle;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaddset(&action.sa_mask, SIGHUP);
    interrupt_take(SIGINT, &action);
    interrupt_take(SIGTERM, &action);
    interrupt_take(SIGHUP, &action);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file may not become so large: an error of its item */
#endif
}

/* An interrupt may have come before there was anything to stop. */
void interrupt_watch(gpst_pipeline* pipeline) {
    interrupt_pipeline = pipeline;
    interrupt_works = 1;
    if (pipeline && interrupt_count > 0)
        gpst_pipeline_stop(pipeline);
}

bool interrupt_happened(void) { return interrupt_count > 0; }
