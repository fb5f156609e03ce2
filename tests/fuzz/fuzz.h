/* tests/fuzz/fuzz.h -- what all fuzzers share: random numbers, and what is printed when something goes wrong: what was
   played, and a line that plays the same again. A fault is an abort, a signal, or what a sanitizer finds; a hang is a
   play of more than --limit seconds (60, times GPST_TIME_FACTOR). */
#ifndef GPST_FUZZ_H
#define GPST_FUZZ_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1 /* mkdtemp, nanosleep */
#endif

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* The bytes first; when they are used up, and without any, numbers made of the seed. */
typedef struct draw {
    const uint8_t* bytes;
    size_t n;
    uint64_t state;
} draw;

static uint64_t next_number(uint64_t* state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0 .. n - 1 */
static uint32_t pick(draw* from, uint32_t n) {
    if (from->n == 0)
        return (uint32_t)(next_number(&from->state) % n);
    from->n--;
    return *from->bytes++ % n;
}

static bool one_in(draw* from, uint32_t n) { return pick(from, n) == 0; }

static uint64_t random_seed(void) { return ((uint64_t)time(NULL) << 20 ^ (uint64_t)getpid() << 40) >> 4; }

/* ---- what is said of a fault ------------------------------------------------------------------------------------- */

static struct {
    const char* program;
    char drawn[4096]; /* by say() */
    size_t n;
    char replay[400];
    unsigned limit_s;
} fuzz = {"fuzz", "", 0, "", 60};

__attribute__((format(printf, 1, 2))) static inline void say(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(fuzz.drawn + fuzz.n, sizeof fuzz.drawn - fuzz.n, format, arguments);
    va_end(arguments);
    fuzz.n = n > 0 && fuzz.n + (size_t)n < sizeof fuzz.drawn ? fuzz.n + (size_t)n : sizeof fuzz.drawn - 1;
}

/* Before each play. */
__attribute__((format(printf, 1, 2))) static void begin_play(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fuzz.replay, sizeof fuzz.replay, format, arguments);
    va_end(arguments);
    fuzz.n = 0;
    fuzz.drawn[0] = '\0';
    (void)alarm(fuzz.limit_s);
}

static void print_replay(void) {
    const char* const parts[] = {"\n", fuzz.drawn, "play it again: ", fuzz.program, " ", fuzz.replay, "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
            break;
}

static void on_signal(int number) {
    const char* const what = number == SIGALRM ? "it hangs" : number == SIGABRT ? "it aborts" : "it crashes";
    (void)!write(STDERR_FILENO, what, strlen(what));
    print_replay();
    _exit(number == SIGALRM ? 99 : 98);
}

/* Of the sanitizers, where there is one. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void watch(const char* program) {
    const char* const factor = getenv("GPST_TIME_FACTOR");
    fuzz.program = program;
    fuzz.limit_s = (unsigned)(fuzz.limit_s * (factor ? atof(factor) : 1));
    (void)signal(SIGALRM, on_signal);
    (void)signal(SIGABRT, on_signal);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(print_replay);
    else
        (void)signal(SIGSEGV, on_signal);
}

#endif
