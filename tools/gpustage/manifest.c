/* tools/gpustage/manifest.c -- the list, under -o, of items that are whole. Does not look whether outputs are
   there; job.c does.

     gpustage-manifest 4
     set KEY=VALUE            what the outputs depend on
     stale FILE               an output below the directory that a run with other settings made
     run TAG                  a run began
     alone TAG | beside TAG   then it looked for others; alone: all whose lines stand before "run TAG" are dead
     begin TAG STEM           it is about to make the outputs of that name
     item TAG BYTES MTIME_NS OUTPUTS TIMES STEM PATH DECODER/ENCODER     and they are whole

   OUTPUTS are their bytes, "n,n,...", and behind these size, time and path of a mask of the item's own; TIMES are when
   each was changed last, by which --clean knows it again. PATH is the input's own, absolute and with links followed;
   STEM is what its outputs are named by; FILE is "BYTES MTIME_NS NAME". In these a blank, a line feed and '%' are written
   %20, %0A and %25. An item counts when its run began it and no other run had it in hand meanwhile:
   one that began it and did not end may still be making them, unless a later run was alone. A line that was torn off,
   or that is no such line, counts as none. */
#include "manifest.h"

#include "console.h"

#include <stdlib.h>
#include <string.h>

#define MANIFEST_TITLE "gpustage-manifest 4\n"

/* ---- names ------------------------------------------------------------------------ */

static void manifest_escape(text* out, const char* name) {
    for (; *name; name++) {
        if (*name == '%' || *name == ' ' || *name == '\n' || *name == '\r')
            text_format(out, "%%%02X", (unsigned)*name);
        else
            text_append(out, name, 1);
    }
}

static int manifest_hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void manifest_unescape(char* name) {
    char* to = name;
    for (; *name; name++) {
        if (*name == '%' && manifest_hex(name[1]) >= 0 && manifest_hex(name[2]) >= 0) {
            *to++ = (char)(manifest_hex(name[1]) * 16 + manifest_hex(name[2]));
            name += 2;
        } else {
            *to++ = *name;
        }
    }
    *to = '\0';
}

/* ---- reading ------------------------------------------------------------------------ */

static bool manifest_starts(const char* line, const char* with) { return !strncmp(line, with, strlen(with)); }

/* The word at *at, cut off and unescaped; NULL: there is none. */
static char* manifest_word(char** at) {
    char* const word = *at;
    char* const end = word + strcspn(word, " ");
    *at = *end ? end + 1 : end;
    *end = '\0';
    manifest_unescape(word);
    return *word ? word : NULL;
}

/* "BYTES MTIME_NS OUTPUTS TIMES STEM PATH CODECS" at *at, cut in place. */
static bool manifest_parse_item(char* at, manifest_entry* out) {
    const char* number = at;
    uint64_t mtime_ns = 0;
    if (!text_read_count(&number, &out->bytes) || *number++ != ' ' || !text_read_count(&number, &mtime_ns) ||
        *number++ != ' ')
        return false;
    at += number - at;
    out->mtime_ns = (int64_t)mtime_ns;
    out->output_bytes = manifest_word(&at);
    out->output_times = manifest_word(&at);
    out->stem = manifest_word(&at);
    out->path = manifest_word(&at);
    return out->path && manifest_word(&at) && !*at;
}

static bool manifest_parse(char* line, manifest_entry* out) {
    const bool is_item = manifest_starts(line, "item ");
    if (!is_item && !manifest_starts(line, "begin "))
        return false;
    char* at = line + (is_item ? 5 : 6);
    out->tag = manifest_word(&at);
    out->path = NULL;
    if (!out->tag)
        return false;
    if (is_item)
        return manifest_parse_item(at, out);
    out->stem = manifest_word(&at);
    return out->stem && !*at;
}

static int manifest_compare(const void* a, const void* b) {
    const manifest_entry* const first = (const manifest_entry*)a;
    const manifest_entry* const second = (const manifest_entry*)b;
    const int order = strcmp(first->stem, second->stem);
    return order ? order : first->line < second->line ? -1 : 1;
}

#define MANIFEST_OPEN 16 /* runs that have one name in hand at once; of more it counts as not whole */

/* The lines of one name, in order: the last one when it says that the outputs are whole; else NULL. */
static const manifest_entry* manifest_judge(const manifest_entry* lines, size_t n) {
    const char* open[MANIFEST_OPEN];
    const manifest_entry* whole = NULL;
    size_t n_open = 0, epoch = 0;
    bool mixed = false;
    for (size_t i = 0; i < n; i++) {
        const manifest_entry* const line = &lines[i];
        size_t at = 0;
        if (line->epoch != epoch)
            n_open = 0; /* who had it in hand before is dead */
        epoch = line->epoch;
        while (at < n_open && strcmp(open[at], line->tag) != 0)
            at++;
        const bool was_open = at < n_open;
        if (was_open)
            open[at] = open[--n_open];
        if (!line->path) {
            mixed = n_open > 0 || n_open == MANIFEST_OPEN;
            if (n_open < MANIFEST_OPEN)
                open[n_open++] = line->tag;
        } else {
            mixed = mixed || n_open > 0;
        }
        whole = line->path && was_open && !mixed ? line : NULL;
    }
    return whole;
}

/* Of each name's lines the one that counts, in place. */
static void manifest_keep_whole(manifest* self, size_t n) {
    if (n > 1)
        qsort(self->entries, n, sizeof *self->entries, manifest_compare);
    for (size_t first = 0, end = 0; first < n; first = end) {
        while (end < n && !strcmp(self->entries[end].stem, self->entries[first].stem))
            end++;
        const manifest_entry* const whole = manifest_judge(&self->entries[first], end - first);
        if (whole)
            self->entries[self->count++] = *whole;
    }
}

/* Of the run of that tag, in the lines behind its first; a run that was killed in between says nothing. */
static bool manifest_was_alone(const char* lines, const char* tag) {
    const size_t bytes = strlen(tag);
    for (; lines; lines = strchr(lines, '\n') ? strchr(lines, '\n') + 1 : NULL) {
        const bool alone = manifest_starts(lines, "alone "), beside = manifest_starts(lines, "beside ");
        const char* const whose = lines + (alone ? 6 : 7);
        if ((alone || beside) && !strncmp(whose, tag, bytes) && whose[bytes] == '\n')
            return alone;
    }
    return false;
}

static bool manifest_parse_items(manifest* self, char* lines) {
    size_t most = 0, n = 0, epoch = 0;
    for (const char* p = lines; *p; p++)
        most += *p == '\n';
    self->entries = (manifest_entry*)calloc(most + 1, sizeof *self->entries);
    if (!self->entries)
        return false;
    while (*lines) {
        char* const end = strchr(lines, '\n');
        manifest_entry* const entry = &self->entries[n];
        if (!end)
            break;
        *end = '\0';
        entry->line = n;
        entry->epoch = epoch;
        if (manifest_starts(lines, "run "))
            epoch += manifest_was_alone(end + 1, lines + 4) ? 1 : 0;
        else if (manifest_parse(lines, entry))
            n++;
        lines = end + 1;
    }
    manifest_keep_whole(self, n);
    return true;
}

/* ---- settings -------------------------------------------------------------------------- */

static text manifest_header(const char* settings) {
    text header = GPST_ZERO;
    text_add(&header, MANIFEST_TITLE);
    while (*settings) {
        const size_t bytes = strcspn(settings, "\n");
        text_format(&header, "set %.*s\n", (int)bytes, settings);
        settings += bytes + (settings[bytes] ? 1 : 0);
    }
    return header;
}

/* The first line that differs, as it was and as it would be. */
static int manifest_refuse(const manifest* self, const text* header, const manifest_desc* desc) {
    const char* const command = desc->command;
    const char* was = self->loaded.data;
    const char* now = header->data;
    const size_t title_bytes = strcspn(was, "\n");
    if (!manifest_starts(was, MANIFEST_TITLE))
        return console_usage(command,
                             "--resume: %s begins with \"%.*s\" instead of \"%.*s\": it is no list of this version: "
                             "leave --resume out to begin anew",
                             self->path.data, title_bytes < 40 ? (int)title_bytes : 40, was,
                             (int)strlen(MANIFEST_TITLE) - 1, MANIFEST_TITLE);
    for (;;) {
        const size_t was_bytes = strcspn(was, "\n"), now_bytes = strcspn(now, "\n");
        if (was_bytes != now_bytes || memcmp(was, now, was_bytes) || !was[was_bytes] || !now[now_bytes]) {
            const bool has_was = manifest_starts(was, "set "), has_now = manifest_starts(now, "set ");
            const bool says_why = desc->no_jpeg && manifest_starts(now, "set format=");
            return console_usage(command,
                                 "--resume: %s was made with %.*s, this run has %.*s%s%s%s: give the same "
                                 "settings, or leave --resume out",
                                 self->path.data, has_was ? (int)was_bytes - 4 : 15,
                                 has_was ? was + 4 : "other settings", has_now ? (int)now_bytes - 4 : 15,
                                 has_now ? now + 4 : "other settings", says_why ? " (" : "",
                                 says_why ? desc->no_jpeg : "", says_why ? ")" : "");
        }
        was += was_bytes + 1;
        now += now_bytes + 1;
    }
}

/* ---- open ---------------------------------------------------------------------- */

static const char* manifest_say(const open_file* file, const text* line) {
    return line->failed ? text_out_of_memory : files_list_add(file, line->data, line->bytes);
}

static const char* manifest_say_run(const manifest* self, const char* what) {
    text line = GPST_ZERO;
    text_format(&line, "%s %s\n", what, self->tag);
    const char* const problem = manifest_say(&self->file, &line);
    text_free(&line);
    return problem;
}

/* What was there goes first: from the first output on it would say what is not so. */
static const char* manifest_begin(const manifest* self, const text_list* stale, bool sync) {
    text lines = GPST_ZERO;
    text_add(&lines, self->header.data);
    for (size_t i = 0; i < stale->count; i++) {
        text_add(&lines, "stale ");
        manifest_escape(&lines, stale->items[i]);
        text_add(&lines, "\n");
    }
    const char* problem = lines.failed ? text_out_of_memory : files_list_clear(&self->file);
    if (!problem)
        problem = files_list_add(&self->file, lines.data, lines.bytes);
    text_free(&lines);
    return problem || !sync ? problem : files_list_sync(&self->file);
}

/* A line that was torn off gets its end: cut off, it might be the one that another run is just writing. */
static const char* manifest_continue(manifest* self) {
    const bool torn = self->loaded.data[self->loaded.bytes - 1] != '\n';
    if (!manifest_parse_items(self, self->loaded.data + self->header.bytes))
        return text_out_of_memory;
    return torn ? files_list_add(&self->file, "\n", 1) : NULL;
}

static int manifest_end(const manifest* self, const char* problem) {
    if (!problem)
        return EXIT_DONE;
    console_error("%s: %s: the list of what is whole cannot be kept", self->path.data, problem);
    return EXIT_MACHINE;
}

int manifest_start(manifest* self, const manifest_desc* desc, const text_list* stale) {
    const char* problem = self->same ? manifest_continue(self) : manifest_begin(self, stale, desc->sync);
    if (!problem)
        problem = manifest_say_run(self, "run");
    return manifest_end(self, problem);
}

int manifest_say_others(manifest* self, bool alone) {
    const char* const problem = manifest_say_run(self, alone ? "alone" : "beside");
    self->writable = !problem;
    return manifest_end(self, problem);
}

int manifest_open(manifest* self, const manifest_desc* desc) {
    int status = EXIT_DONE;
    memset(self, 0, sizeof *self);
    self->header = manifest_header(desc->settings);
    self->file.descriptor = -1;
    self->tag = desc->tag;
    text_format(&self->path, "%s/%s", desc->directory, OUTPUTS_MANIFEST);
    if (self->path.failed || self->header.failed)
        return console_memory();
    const char* const problem = files_open_list(self->path.data, &self->file, &self->loaded);
    if (problem) {
        console_error("%s: %s: the list of what is whole cannot be kept", self->path.data, problem);
        return EXIT_MACHINE;
    }
    self->same = self->loaded.data && manifest_starts(self->loaded.data, self->header.data) &&
                 !manifest_starts(self->loaded.data + self->header.bytes, "set ");
    if (!self->same && self->loaded.data && desc->resume)
        status = manifest_refuse(self, &self->header, desc);
    return status;
}

void manifest_close(manifest* self) {
    if (self->path.data)
        files_close(&self->file);
    text_free(&self->path);
    free(self->entries);
    text_free(&self->header);
    text_free(&self->loaded);
    memset(self, 0, sizeof *self);
}

/* ---- what the list says of earlier runs ------------------------------------------------------ */

/* The next line at *at that begins so, behind that; *bytes: without its end. NULL: there is none. */
static const char* manifest_next(const char** at, const char* with, size_t* bytes) {
    while (*at && **at) {
        const char* const line = *at;
        const size_t length = strcspn(line, "\n");
        *at = line[length] ? line + length + 1 : line + length;
        if (manifest_starts(line, with) && line[length]) {
            *bytes = length - strlen(with);
            return line + strlen(with);
        }
    }
    return NULL;
}

bool manifest_list_stale(const manifest* self, text_list* out) {
    const char* at = self->loaded.data;
    size_t bytes = 0;
    bool added = true;
    for (const char* word = NULL; added && (word = manifest_next(&at, "stale ", &bytes)) != NULL;) {
        char* const file = text_copy(word, bytes);
        if (file)
            manifest_unescape(file);
        added = file && text_list_add(out, file);
        free(file);
    }
    return added;
}

bool manifest_each_item(const manifest* self, manifest_item_func func, void* user_data) {
    const char* at = self->loaded.data;
    size_t bytes = 0;
    bool goes_on = true;
    for (const char* rest = NULL; goes_on && (rest = manifest_next(&at, "item ", &bytes)) != NULL;) {
        char* const line = text_copy(rest - strlen("item "), strlen("item ") + bytes);
        manifest_entry item;
        goes_on = line != NULL;
        if (line && manifest_parse(line, &item))
            goes_on = func(user_data, &item);
        free(line);
    }
    return goes_on;
}

text manifest_find_setting(const manifest* self, const char* key) {
    const char* at = self->loaded.data;
    text value = GPST_ZERO;
    size_t bytes = 0;
    for (const char* line = NULL; !value.data && (line = manifest_next(&at, "set ", &bytes)) != NULL;)
        if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == '=')
            text_append(&value, line + strlen(key) + 1, bytes - strlen(key) - 1);
    return value;
}

/* ---- items ------------------------------------------------------------------------------------ */

const char* manifest_find(const manifest* self, const input* in) {
    size_t low = 0, high = self->count;
    while (low < high) { /* one past the entry of this stem */
        const size_t middle = low + (high - low) / 2;
        if (strcmp(self->entries[middle].stem, in->stem) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    const manifest_entry* const entry = low > 0 ? &self->entries[low - 1] : NULL;
    const bool same = entry && in->identity && !strcmp(entry->stem, in->stem) &&
                      !strcmp(entry->path, in->identity) && entry->bytes == in->bytes &&
                      entry->mtime_ns == in->mtime_ns;
    return same ? entry->output_bytes : NULL;
}

static const char* manifest_say_begin(const open_file* file, const char* tag, const char* stem) {
    text line = GPST_ZERO;
    text_format(&line, "begin %s ", tag);
    manifest_escape(&line, stem);
    text_add(&line, "\n");
    const char* const problem = manifest_say(file, &line);
    text_free(&line);
    return problem;
}

const char* manifest_begin_item(manifest* self, const char* stem) {
    return manifest_say_begin(&self->file, self->tag, stem);
}

void manifest_add(manifest* self, const input* in, const char* output_bytes, const char* output_times,
                  const char* decoder, const char* encoder) {
    text line = GPST_ZERO;
    if (!self->writable || !in->identity || in->mtime_ns < 0)
        return;
    text_format(&line, "item %s %llu %lld ", self->tag, (unsigned long long)in->bytes, (long long)in->mtime_ns);
    manifest_escape(&line, output_bytes);
    text_format(&line, " %s ", output_times);
    manifest_escape(&line, in->stem);
    text_add(&line, " ");
    manifest_escape(&line, in->identity);
    text_format(&line, " %s/%s\n", decoder[0] ? decoder : "own", encoder[0] ? encoder : "own");
    const char* const problem = manifest_say(&self->file, &line);
    if (problem) {
        console_note("note: %s: %s: --resume will not know of what follows", self->path.data, problem);
        self->writable = false;
    }
    text_free(&line);
}

const char* manifest_withdraw(const char* directory, const char* tag, const char* stem) {
    text path = GPST_ZERO, found = GPST_ZERO;
    file_info info;
    open_file file;
    text_format(&path, "%s/%s", directory, OUTPUTS_MANIFEST);
    const char* problem = path.failed ? text_out_of_memory : NULL;
    if (!problem && !files_query(path.data, &info)) {
        problem = files_open_list(path.data, &file, &found);
        if (!problem) {
            problem = manifest_say_begin(&file, tag, stem);
            files_close(&file);
        }
    }
    text_free(&found);
    text_free(&path);
    return problem;
}
