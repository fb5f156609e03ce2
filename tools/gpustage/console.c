/* tools/gpustage/console.c -- what the user sees on stderr: error lines, notes, the progress bar. Decides
   nothing. */
#include "console.h"

#include "files.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONSOLE_BYTES (4096 + 1024) /* a path and a reason */
#define CONSOLE_BAR 24
#define CONSOLE_BAR_EVERY_NS 100000000

typedef struct console {
    bool quiet, terminal, colours;
    bool bar; /* a bar stands on the last line */
    int64_t bar_ns;
} console;

static console console_state;
static pthread_mutex_t console_mutex = PTHREAD_MUTEX_INITIALIZER; /* the library logs from any thread */

void console_open(bool quiet) {
    const char* const kind = getenv("TERM");
    const char* const no_color = getenv("NO_COLOR");
    console_state.quiet = quiet;
    console_state.terminal = files_is_terminal(2);
    console_state.colours =
        console_state.terminal && !(no_color && no_color[0]) && !(kind && !strcmp(kind, "dumb"));
}

bool console_is_quiet(void) { return console_state.quiet; }

static void console_line(const char* colour, const char* format, va_list arguments) {
    char shown[CONSOLE_BYTES];
    vsnprintf(shown, sizeof shown, format, arguments);
    text_printable(shown, sizeof shown, shown);
    const bool coloured = console_state.colours && colour[0];
    pthread_mutex_lock(&console_mutex);
    fprintf(stderr, "%s%sgpustage:%s %s\n", console_state.bar ? "\r\033[K" : "", coloured ? colour : "",
            coloured ? "\033[0m" : "", shown);
    console_state.bar = false;
    pthread_mutex_unlock(&console_mutex);
}

void console_error(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    console_line("\033[1;31m", format, arguments);
    va_end(arguments);
}

void console_note(const char* format, ...) {
    va_list arguments;
    if (console_state.quiet)
        return;
    va_start(arguments, format);
    console_line("", format, arguments);
    va_end(arguments);
}

static int console_see_help(const char* command) {
    fprintf(stderr, "see gpustage%s%s --help\n", command ? " " : "", command ? command : "");
    return EXIT_USAGE;
}

int console_usage(const char* command, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    console_line("\033[1;31m", format, arguments);
    va_end(arguments);
    return console_see_help(command);
}

int console_refuse(const char* command, const char* problem, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    console_line("\033[1;31m", format, arguments);
    va_end(arguments);
    return problem == text_out_of_memory ? EXIT_MACHINE : console_see_help(command);
}

int console_memory(void) {
    console_error("%s", text_out_of_memory);
    return EXIT_MACHINE;
}

/* ---- the bar ------------------------------------------------------------------ */

static void console_format_time(char* out, size_t out_bytes, double seconds) {
    const unsigned long s = (unsigned long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, out_bytes, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, out_bytes, "%lu:%02lu", s / 60, s % 60);
}

void console_progress(uint64_t done, uint64_t total, uint64_t failed, int64_t elapsed_ns) {
    char bar[CONSOLE_BAR + 1], eta[32], failures[48] = "";
    const int64_t now_ns = files_clock_ns();
    if (console_state.quiet || !console_state.terminal || total == 0 || elapsed_ns <= 0 ||
        (now_ns - console_state.bar_ns < CONSOLE_BAR_EVERY_NS && done < total))
        return;
    console_state.bar_ns = now_ns;
    const size_t filled = (size_t)(done * CONSOLE_BAR / total);
    memset(bar, '-', CONSOLE_BAR);
    memset(bar, '#', filled);
    bar[CONSOLE_BAR] = '\0';
    const double rate = (double)done * 1e9 / (double)elapsed_ns;
    console_format_time(eta, sizeof eta, rate > 0.0 ? (double)(total - done) / rate : 0.0);
    if (failed > 0)
        snprintf(failures, sizeof failures, "  %llu failed", (unsigned long long)failed);
    pthread_mutex_lock(&console_mutex);
    fprintf(stderr, "\r[%s] %llu/%llu  %.1f items/s  ETA %s%s\033[K", bar, (unsigned long long)done,
            (unsigned long long)total, rate, eta, failures);
    fflush(stderr);
    console_state.bar = true;
    pthread_mutex_unlock(&console_mutex);
}

void console_progress_end(void) {
    pthread_mutex_lock(&console_mutex);
    if (console_state.bar)
        fputs("\r\033[K", stderr);
    console_state.bar = false;
    pthread_mutex_unlock(&console_mutex);
}

void console_log(void* user_data, gpst_log_level level, uint64_t item_index, const char* message,
                 const char* file, int line) {
    (void)user_data;
    (void)item_index;
    (void)file;
    (void)line;
    if (level == GPST_LOG_ERROR)
        console_error("%s", message);
    else
        console_note("note: %s", message);
}
