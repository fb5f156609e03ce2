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

static void run_lock_describe(text* out, const char* settings) {
    text_add(out, RUN_LOCK_TITLE);
    text_format(out, "settings %016llx\n", (unsigned long long)text_hash(settings, strlen(settings)));
}

/* ---- the dead --------------------------------------------------------------------- */

#define RUN_LOCK_DEPTH 64 /* of folders below */

/* The library's files of the run whose lock this was, here and in the folders below, also where a link stands for one that
   was moved; listed now, when no more can come. False: not all of them. */
static bool run_lock_remove_files(const char* directory, const char* lock_name, int depth, folder_set* entered) {
    const size_t tag_bytes = strlen(lock_name) - strlen(RUN_LOCK_END);
    text_list names = GPST_ZERO;
    file_info info;
    if (!files_enter(entered, directory))
        return !entered->failed;
    bool all = !files_list(directory, &names) || depth > 0; /* what cannot be listed below was no place for a run */
    for (size_t i = 0; i < names.count; i++) {
        const char* const name = names.items[i];
        const bool is_temporary =
            !strncmp(name, lock_name, tag_bytes) && name[tag_bytes] == '-' && run_lock_ends(name, ".tmp");
        text path = run_lock_path(directory, name);
        all = all && path.data;
        if (path.data && is_temporary)
            files_remove(path.data);
        else if (path.data && depth < RUN_LOCK_DEPTH && !files_query(path.data, &info) && info.is_directory)
            all = run_lock_remove_files(path.data, lock_name, depth + 1, entered) && all;
        text_free(&path);
    }
    text_list_free(&names);
    return all;
}

/* True: nobody has it, and what it stood for is gone. */
static bool run_lock_bury(const char* directory, const char* name, const char* path) {
    folder_set entered = GPST_ZERO;
    open_file file;
    if (!files_take_abandoned(path, &file))
        return false;
    if (run_lock_ends(name, RUN_LOCK_END) && !run_lock_remove_files(directory, name, 0, &entered))
        files_close(&file); /* the next run tries again */
    else
        files_discard(&file, path);
    free(entered.items);
    return true;
}

/* ---- the living ---------------------------------------------------------------------- */

/* A lock that is still empty belongs to a run that has yet to look for this one's, and finds it. */
static bool run_lock_differs(const char* path, const char* mine) {
    text theirs = GPST_ZERO;
    const bool known = !files_read_regular(path, 4096, &theirs) && theirs.data &&
                       run_lock_begins(theirs.data, RUN_LOCK_TITLE);
    const bool differs = known && strcmp(theirs.data, mine) != 0;
    text_free(&theirs);
    return differs;
}

typedef struct run_lock_found {
    bool others;   /* a run is at work there */
    bool conflict; /* with other settings */
} run_lock_found;

/* own: the name of this run's lock, and mine what is in it; both NULL: nobody is asked. NULL, or why the directory cannot
   be listed. */
static const char* run_lock_look_round(const char* directory, const char* own, const char* mine, run_lock_found* out) {
    text_list names = GPST_ZERO;
    const char* problem = files_list(directory, &names);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; !problem && i < names.count; i++) {
        const char* const name = names.items[i];
        const bool is_lock = run_lock_ends(name, RUN_LOCK_END);
        if (!run_lock_begins(name, RUN_LOCK_BEGIN) || !(is_lock || run_lock_ends(name, FILES_TEMPORARY)) ||
            (own && !strcmp(name, own)))
            continue;
        text path = run_lock_path(directory, name);
        if (!path.data)
            problem = text_out_of_memory;
        else if (!run_lock_bury(directory, name, path.data) && is_lock && mine) {
            out->others = true;
            out->conflict = out->conflict || run_lock_differs(path.data, mine);
        }
        text_free(&path);
    }
    text_list_free(&names);
    return problem;
}

#define RUN_LOCK_TRIES 10
#define RUN_LOCK_WAIT_NS 20000000

/* A lock that is just being removed, by its run or by one that cleans up, is somebody's for a moment. */
static const char* run_lock_meet(const char* directory, const char* own, const char* mine, run_lock_found* out) {
    const char* problem = run_lock_look_round(directory, own, mine, out);
    for (int i = 1; i < RUN_LOCK_TRIES && !problem && out->conflict; i++) {
        files_sleep_ns(RUN_LOCK_WAIT_NS);
        problem = run_lock_look_round(directory, own, mine, out);
    }
    return problem;
}

void run_lock_clean(const char* directory) {
    run_lock_found found;
    (void)run_lock_look_round(directory, NULL, NULL, &found);
}

bool run_lock_is_alone(const run_lock* self, const char* directory) {
    run_lock_found found = {false, false};
    return !self->file.locked ||
           (!run_lock_look_round(directory, files_base_name(self->path.data), "", &found) && !found.others);
}

bool run_lock_holds(const run_lock* self) {
    file_info there;
    return !files_query(self->path.data, &there) && files_is_open(&self->file, &there);
}

int run_lock_open(run_lock* self, const char* directory, const char* tag, const char* settings) {
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
    run_lock_found found = {false, false};
    const char* problem = files_create_locked(self->path.data, &self->file);
    if (!problem)
        problem = files_list_add(&self->file, mine.data, mine.bytes);
    if (!problem && self->file.locked)
        problem = run_lock_meet(directory, files_base_name(self->path.data), mine.data, &found);
    self->alone = !found.others;
    if (problem) {
        console_error("-o=%s: %s", directory, problem);
        status = EXIT_MACHINE;
    } else if (found.conflict) {
        console_error("-o=%s: another run, with other settings, is at work there: let it end, or give another directory",
                      directory);
        status = EXIT_USAGE;
    }
    text_free(&mine);
    return status;
}

static void run_lock_remove_own(const run_lock* self) {
    folder_set entered = GPST_ZERO;
    text directory = files_parent(self->path.data);
    if (directory.data)
        (void)run_lock_remove_files(directory.data, files_base_name(self->path.data), 0, &entered);
    free(entered.items);
    text_free(&directory);
}

void run_lock_close(run_lock* self, bool failed) {
    if (self->path.data && self->file.descriptor >= 0) {
        if (failed)
            run_lock_remove_own(self);
        files_discard(&self->file, self->path.data);
    }
    text_free(&self->path);
}
