/* tools/gpustage/main.c -- the command's entry: which command, its help, its exit status. Does no work
   itself. */
#include "commands.h"
#include "console.h"
#include "files.h"

#include <stdio.h>
#include <string.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if !defined(_WIN32)
#include <pthread.h>
#include <sys/resource.h>

#define MAIN_STACK_BYTES ((size_t)1 << 20)
#endif

typedef struct command_entry {
    const char* name;
    command_id id;
    int (*run)(const options* asked);
} command_entry;

static const command_entry commands[] = {{"probe", COMMAND_PROBE, command_probe},
                                         {"reproject", COMMAND_REPROJECT, command_reproject},
                                         {"preprocess", COMMAND_PREPROCESS, command_preprocess},
                                         {"bench", COMMAND_BENCH, command_bench}};

static const command_entry* main_find(const char* name) {
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

static int main_run_command(const command_entry* entry, int argc, char** argv) {
    const int64_t begun_ns = gpst_now_ns();
    options asked;
    int status = options_read(&asked, entry->id, argc, argv);
    asked.begun_ns = begun_ns;
    console_open(asked.quiet);
    if (status == EXIT_DONE && asked.help)
        options_print_help(entry->id);
    else if (status == EXIT_DONE)
        status = entry->run(&asked);
    options_free(&asked);
    return status;
}

static int main_run(int argc, char** argv) {
    if (argc < 2)
        return console_usage(NULL, "a command is required: probe, reproject, preprocess or bench");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        options_print_help(COMMAND_NONE);
        return EXIT_DONE;
    }
    const command_entry* const entry = main_find(argv[1]);
    if (!strcmp(argv[1], "--version") || (entry && argc == 3 && !strcmp(argv[2], "--version"))) {
        printf("gpustage " GPST_VERSION_TEXT "\n%s\n", gpst_build_info());
        return EXIT_DONE;
    }
    if (!entry)
        return console_usage(NULL, "%s: no such command: probe, reproject, preprocess or bench", argv[1]);
    return main_run_command(entry, argc - 2, argv + 2);
}

/* Decoders allocate tens of MB and free them. What a thread frees would stay with it, beside what others take, and the
   memory that items may take does not know of that: so large pieces go back to the system. */
static void main_set_memory(void) {
#if defined(__GLIBC__)
    struct rlimit space;
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    /* Each arena takes 64 MiB of address space: at most a sixteenth of a limited one, or one arena. */
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur < (rlim_t)1 << 40)
        (void)mallopt(M_ARENA_MAX, (int)(space.rlim_cur >> 30) + 1);
#endif
}

/* setlocale is never called: points stay points. What was printed and did not arrive is a failure whatever was asked:
   a part of it may have been refused long before the end. */
static int main_start(int argc, char** argv) {
    main_set_memory();
    files_open_standard();
    console_open(false);
    const int status = main_run(argc, argv);
    if ((ferror(stdout) | fflush(stdout)) == 0 || status != EXIT_DONE)
        return status;
    console_error("standard output cannot be written");
    return EXIT_FAILED_ITEMS;
}

#if defined(_WIN32)
int wmain(int argc, wchar_t** wide);

int wmain(int argc, wchar_t** wide) {
    char** const argv = files_arguments(argc, wide);
    return argv ? main_start(argc, argv) : console_memory();
}
#else
typedef struct main_call {
    int argc;
    char** argv;
    int status;
} main_call;

static void* main_call_start(void* argument) {
    main_call* const call = (main_call*)argument;
    call->status = main_start(call->argc, call->argv);
    return NULL;
}

/* Decoders run on the first thread, too, with what they take of its stack. Where that may not grow so far the command
   has a thread of its own. */
int main(int argc, char** argv) {
    main_call call = {argc, argv, EXIT_MACHINE};
    struct rlimit stack;
    pthread_attr_t attributes;
    pthread_t thread;
    const bool is_small = getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < MAIN_STACK_BYTES;
    if (!is_small || pthread_attr_init(&attributes) != 0)
        return main_start(argc, argv);
    (void)pthread_attr_setstacksize(&attributes, MAIN_STACK_BYTES);
    const bool started = pthread_create(&thread, &attributes, main_call_start, &call) == 0;
    (void)pthread_attr_destroy(&attributes);
    if (!started)
        return main_start(argc, argv);
    (void)pthread_join(thread, NULL);
    return call.status;
}
#endif
