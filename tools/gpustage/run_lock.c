/* tools/gpustage/run_lock.c -- which runs are at work in a directory, and what runs that were killed left there. Knows
   no manifest. */
#include "run_lock.h"

#include "console.h"

#include <stdlib.h>
#include <string.h>

#define RUN_LOCK_BEGIN ".gpustage-"
#define RUN_LOCK_END ".lock"
#define RUN_LOCK_TITLE "gpustage-lock 1\n"

static bool run_lock_begins(const char* string, const char* with) { return !strncmp(string, with, strlen(with)); }

static bool run_lock_ends(const char* string, const char* with) {
    const size_t bytes = strlen(string), end = strlen(with);
    return bytes >= end && !strcmp(string + bytes - end, with);
}

static text run_lock_path(const char* directory, const char* name) {
    text path = GPST_ZERO;
    text_format(&path, "%s/%s", directory, name);
    return path;
}

/* FNV-1a: two runs compare their settings by it. */
static uint64_t run_lock_hash(const char* settings) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *settings; settings++)
        hash = (hash ^ (unsigned char)*settings) * 0x100000001b3u;
    return hash;
}

static void run_lock_describe(text* out, const char* settings) {
    text_add(out, RUN_LOCK_TITLE);
    text_format(out, "settings %016llx\n", (unsigned long long)run_lock_hash(settings));
}

/* ---- the dead --------------------------------------------------------------------- */

/* The library's files of the run whose lock this was; listed now, when no more can come. */
static void run_lock_remove_files(const char* directory, const char* lock_name) {
    const size_t tag_bytes = strlen(lock_name) - strlen(RUN_LOCK_END);
    text_list names = GPST_ZERO;
    (void)files_list(directory, &names);
    for (size_t i = 0; i < names.count; i++) {
        const char* const name = names.items[i];
        if (strncmp(name, lock_name, tag_bytes) != 0 || name[tag_bytes] != '-' || !run_lock_ends(name, ".tmp"))
            continue;
        text path = run_lock_path(directory, name);
        if (!path.failed)
            files_remove(path.data);
        text_free(&path);
    }
    text_list_free(&names);
}

static bool run_lock_bury(const char* directory, const char* name, const char* path) {
    open_file file;
    if (!files_take_abandoned(path, &file))
        return false;
    if (run_lock_ends(name, RUN_LOCK_END))
        run_lock_remove_files(directory, name);
    files_discard(&file, path);
    return true;
}

/* ---- the living ---------------------------------------------------------------------- */

/* A lock that is still empty belongs to a run that has yet to look for this one's, and finds it. */
static bool run_lock_differs(const char* path, const char* mine) {
    text theirs = GPST_ZERO;
    const bool known = !files_read_at_most(path, 4096, &theirs) && theirs.data &&
                       run_lock_begins(theirs.data, RUN_LOCK_TITLE);
    const bool differs = known && strcmp(theirs.data, mine) != 0;
    text_free(&theirs);
    return differs;
}

/* own: the name of this run's lock, and mine what is in it; both NULL: nobody is asked. True: a living run has other
   settings. */
static bool run_lock_look_round(const char* directory, const char* own, const char* mine) {
    text_list names = GPST_ZERO;
    bool conflict = false;
    (void)files_list(directory, &names);
    for (size_t i = 0; i < names.count; i++) {
        const char* const name = names.items[i];
        const bool is_lock = run_lock_ends(name, RUN_LOCK_END);
        if (!run_lock_begins(name, RUN_LOCK_BEGIN) || !(is_lock || run_lock_ends(name, FILES_TEMPORARY)) ||
            (own && !strcmp(name, own)))
            continue;
        text path = run_lock_path(directory, name);
        if (!path.failed && !run_lock_bury(directory, name, path.data) && is_lock && mine)
            conflict = conflict || run_lock_differs(path.data, mine);
        text_free(&path);
    }
    text_list_free(&names);
    return conflict;
}

void run_lock_clean(const char* directory) { (void)run_lock_look_round(directory, NULL, NULL); }

int run_lock_open(run_lock* self, const char* directory, const char* tag, const char* settings, const char* command) {
    text mine = GPST_ZERO;
    int status = EXIT_DONE;
    memset(self, 0, sizeof *self);
    self->file.descriptor = -1;
    run_lock_describe(&mine, settings);
    text_format(&self->path, "%s/" RUN_LOCK_BEGIN "%s" RUN_LOCK_END, directory, tag);
    if (self->path.failed || mine.failed) {
        text_free(&mine);
        return console_memory();
    }
    const char* problem = files_create_locked(self->path.data, &self->file);
    if (!problem)
        problem = files_list_add(&self->file, mine.data, mine.bytes);
    if (problem) {
        console_error("-o=%s: %s: %s", directory, files_base_name(self->path.data), problem);
        status = EXIT_MACHINE;
    } else if (run_lock_look_round(directory, files_base_name(self->path.data), mine.data)) {
        status = console_usage(command,
                               "-o=%s: another run, with other settings, is at work there: let it end, or give another "
                               "directory",
                               directory);
    }
    text_free(&mine);
    return status;
}

void run_lock_close(run_lock* self) {
    if (self->path.data && self->file.descriptor >= 0)
        files_discard(&self->file, self->path.data);
    text_free(&self->path);
}
