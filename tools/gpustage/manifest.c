/* tools/gpustage/manifest.c -- the list, under -o, of items that are whole. Does not look whether outputs are
   there; job.c does.

     gpustage-manifest 1
     set KEY=VALUE            what the outputs depend on
     item BYTES MTIME_NS OUTPUT_BYTES,... NAME

   Every line ends in a line feed: one that does not was not written whole. A line feed in a name is written
   %0A. */
#include "manifest.h"

#include "console.h"
#include "files.h"

#include <stdlib.h>
#include <string.h>

#define MANIFEST_TITLE "gpustage-manifest 1\n"

/* ---- names ------------------------------------------------------------------------ */

static void manifest_escape(text* out, const char* name) {
    for (; *name; name++) {
        if (*name == '%' || *name == '\n' || *name == '\r')
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

/* "item BYTES MTIME_NS SIZES NAME", cut in place. */
static bool manifest_parse(char* line, manifest_entry* out) {
    const char* at = line + 5;
    uint64_t mtime_ns = 0;
    if (!text_read_count(&at, &out->bytes) || *at++ != ' ' || !text_read_count(&at, &mtime_ns) ||
        *at++ != ' ')
        return false;
    out->mtime_ns = (int64_t)mtime_ns;
    out->output_bytes = at;
    char* const gap = strchr(line + (at - line), ' ');
    if (!gap || !gap[1])
        return false;
    *gap = '\0';
    manifest_unescape(gap + 1);
    out->name = gap + 1;
    return true;
}

static int manifest_compare(const void* a, const void* b) {
    const manifest_entry* const first = (const manifest_entry*)a;
    const manifest_entry* const second = (const manifest_entry*)b;
    const int order = strcmp(first->name, second->name);
    return order ? order : first->line < second->line ? -1 : 1;
}

static bool manifest_parse_items(manifest* self, char* lines) {
    size_t n = 0;
    for (const char* p = lines; *p; p++)
        n += *p == '\n';
    self->entries = (manifest_entry*)calloc(n + 1, sizeof *self->entries);
    if (!self->entries)
        return false;
    while (*lines) {
        char* const end = strchr(lines, '\n');
        manifest_entry* const entry = &self->entries[self->count];
        if (!end)
            break;
        *end = '\0';
        entry->line = self->count;
        if (manifest_starts(lines, "item ") && manifest_parse(lines, entry))
            self->count++;
        lines = end + 1;
    }
    if (self->count > 1)
        qsort(self->entries, self->count, sizeof *self->entries, manifest_compare);
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
static int manifest_refuse(const manifest* self, const text* header, const char* command) {
    const char* was = self->loaded.data;
    const char* now = header->data;
    for (;;) {
        const size_t was_bytes = strcspn(was, "\n"), now_bytes = strcspn(now, "\n");
        if (was_bytes != now_bytes || memcmp(was, now, was_bytes) || !was[was_bytes] || !now[now_bytes]) {
            const bool has_was = manifest_starts(was, "set "), has_now = manifest_starts(now, "set ");
            return console_usage(command,
                                 "--resume: %s was made with %.*s, this run has %.*s: give the same "
                                 "settings, or leave --resume out",
                                 self->path, has_was ? (int)was_bytes - 4 : 15,
                                 has_was ? was + 4 : "other settings", has_now ? (int)now_bytes - 4 : 15,
                                 has_now ? now + 4 : "other settings");
        }
        was += was_bytes + 1;
        now += now_bytes + 1;
    }
}

/* ---- open, find, add ---------------------------------------------------------------------- */

/* No manifest is no reason not to work: a full disk fails the items one by one, each with its reason. */
static void manifest_begin(manifest* self, const text* header) {
    const char* const problem = files_write_whole(self->path, header->data, header->bytes);
    self->writable = !problem;
    if (problem)
        console_note("note: %s: %s: --resume will not know of this run", self->path, problem);
}

static bool manifest_continue(manifest* self, const text* header) {
    const char* const last = strrchr(self->loaded.data, '\n');
    const size_t whole_bytes = (size_t)(last - self->loaded.data) + 1;
    self->writable = whole_bytes == self->loaded.bytes || !files_truncate(self->path, whole_bytes);
    self->loaded.data[whole_bytes] = '\0';
    return manifest_parse_items(self, self->loaded.data + header->bytes);
}

int manifest_open(manifest* self, const char* directory, const char* settings, bool resume,
                  const char* command) {
    text path = GPST_ZERO;
    text header = manifest_header(settings);
    int status = EXIT_DONE;
    memset(self, 0, sizeof *self);
    text_format(&path, "%s/%s", directory, MANIFEST_NAME);
    self->path = path.data;
    if (path.failed || header.failed) {
        text_free(&header);
        return console_usage(command, "out of memory");
    }
    const bool found = !files_read(self->path, &self->loaded) && self->loaded.data;
    const bool same = found && manifest_starts(self->loaded.data, header.data) &&
                      !manifest_starts(self->loaded.data + header.bytes, "set ");
    if (same && !manifest_continue(self, &header))
        status = console_usage(command, "out of memory");
    else if (!same && found && resume)
        status = manifest_refuse(self, &header, command);
    else if (!same)
        manifest_begin(self, &header);
    text_free(&header);
    return status;
}

void manifest_close(manifest* self) {
    free(self->path);
    free(self->entries);
    text_free(&self->loaded);
    memset(self, 0, sizeof *self);
}

const char* manifest_find(const manifest* self, const input* in) {
    const char* const name = files_base_name(in->path);
    size_t low = 0, high = self->count;
    while (low < high) { /* one past the last entry of this name */
        const size_t middle = low + (high - low) / 2;
        if (strcmp(self->entries[middle].name, name) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    const manifest_entry* const entry = low > 0 ? &self->entries[low - 1] : NULL;
    const bool same = entry && in->is_regular && !strcmp(entry->name, name) && entry->bytes == in->bytes &&
                      entry->mtime_ns == in->mtime_ns;
    return same ? entry->output_bytes : NULL;
}

void manifest_add(manifest* self, const input* in, const char* output_bytes) {
    text line = GPST_ZERO;
    if (!self->writable || !in->is_regular || in->mtime_ns < 0)
        return;
    text_format(&line, "item %llu %lld %s ", (unsigned long long)in->bytes, (long long)in->mtime_ns,
                output_bytes);
    manifest_escape(&line, files_base_name(in->path));
    text_add(&line, "\n");
    const char* const problem =
        line.failed ? "out of memory" : files_append(self->path, line.data, line.bytes);
    if (problem) {
        console_note("note: %s: %s: --resume will not know of what follows", self->path, problem);
        self->writable = false;
    }
    text_free(&line);
}
