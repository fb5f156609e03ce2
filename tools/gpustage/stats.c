/* tools/gpustage/stats.c -- what a run did, as the JSON that --stats writes. Counts and times nothing itself.
 */
#include "stats.h"

#include "json.h"
#include "remarks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---------------------------------------------------------------------- */

bool counts_add_error(run_counts* self, size_t index, const char* item, const char* stage, gpst_result result,
                      const char* reason) {
    if (self->n_errors == self->error_capacity) {
        const size_t capacity = self->error_capacity ? self->error_capacity * 2 : 16;
        item_error* const errors = (item_error*)realloc(self->errors, capacity * sizeof *errors);
        if (!errors)
            return false;
        self->errors = errors;
        self->error_capacity = capacity;
    }
    item_error* const error = &self->errors[self->n_errors++];
    error->index = index;
    error->result = result;
    error->item = text_copy(item, strlen(item));
    error->stage = text_copy(stage, strlen(stage));
    error->reason = text_copy(reason, strlen(reason));
    return error->item && error->stage && error->reason;
}

bool counts_add_file(run_counts* self, size_t index, const gpst_item* item) {
    if (self->n_files == self->file_capacity) {
        const size_t capacity = self->file_capacity ? self->file_capacity * 2 : 64;
        item_file* const files = (item_file*)realloc(self->files, capacity * sizeof *files);
        if (!files)
            return false;
        self->files = files;
        self->file_capacity = capacity;
    }
    item_file* const file = &self->files[self->n_files++];
    file->index = index;
    file->item = text_copy(item->name, strlen(item->name));
    file->decoder = item->decoder;
    file->encoder = item->encoder;
    file->note = text_copy(item->note, strlen(item->note));
    return file->item && file->note;
}

void counts_free(run_counts* self) {
    for (size_t i = 0; i < self->n_files; i++) {
        free(self->files[i].item);
        free(self->files[i].note);
    }
    free(self->files);
    for (size_t i = 0; i < self->n_errors; i++) {
        free(self->errors[i].item);
        free(self->errors[i].stage);
        free(self->errors[i].reason);
    }
    free(self->errors);
    memset(self, 0, sizeof *self);
}

static int stats_compare_files(const void* a, const void* b) {
    const item_file* const first = (const item_file*)a;
    const item_file* const second = (const item_file*)b;
    return first->index < second->index ? -1 : first->index > second->index;
}

static int stats_compare_errors(const void* a, const void* b) {
    const item_error* const first = (const item_error*)a;
    const item_error* const second = (const item_error*)b;
    return first->index < second->index ? -1 : first->index > second->index;
}

/* ---- parts --------------------------------------------------------------------------- */

static double stats_seconds(int64_t ns) { return (double)ns / 1e9; }

static void stats_items(json* out, const run_counts* counts) {
    json_open(out, "items", '{');
    json_count(out, "total", counts->total);
    json_count(out, "ok", counts->ok);
    json_count(out, "failed", counts->failed);
    json_count(out, "skipped", counts->skipped);
    json_count(out, "not_done", counts->not_done);
    json_close(out, '}');
}

static void stats_bytes(json* out, const gpst_stats* stats) {
    json_open(out, "bytes", '{');
    json_count(out, "read", stats->bytes_read);
    json_count(out, "h2d", stats->bytes_h2d);
    json_count(out, "d2h", stats->bytes_d2h);
    json_count(out, "written", stats->bytes_written);
    json_close(out, '}');
}

/* A name that an earlier stage has, too, such as "upload" of a second group on the device, has its number behind it. */
static void stats_stage_name(const gpst_stats* stats, uint32_t at, char out[48]) {
    unsigned number = 1;
    for (uint32_t i = 0; i < at; i++)
        number += !strcmp(stats->stages[i].name, stats->stages[at].name);
    snprintf(out, 48, number > 1 ? "%s %u" : "%s", stats->stages[at].name, number);
}

static void stats_stages(json* out, const gpst_stats* stats) {
    char name[48];
    json_open(out, "stages", '{');
    for (uint32_t i = 0; i < stats->n_stages; i++) {
        const gpst_stage_stats* const stage = &stats->stages[i];
        stats_stage_name(stats, i, name);
        json_open(out, name, '{');
        json_string(out, "resource", gpst_resource_name(stage->resource));
        json_count(out, "count", stage->count);
        json_count(out, "timed", stage->timed);
        json_count(out, "failed", stage->failed);
        json_count(out, "bytes", stage->bytes);
        json_number(out, "busy_s", stats_seconds(stage->busy_ns));
        json_number(out, "wait_s", stats_seconds(stage->wait_ns));
        json_number(out, "cpu_s", stats_seconds(stage->cpu_ns));
        json_number(out, "p50_us", (double)stage->p50_ns / 1e3);
        json_number(out, "p90_us", (double)stage->p90_ns / 1e3);
        json_number(out, "p99_us", (double)stage->p99_ns / 1e3);
        json_number(out, "p999_us", (double)stage->p999_ns / 1e3);
        json_number(out, "max_us", (double)stage->max_ns / 1e3);
        json_number(out, "occupancy", stage->occupancy);
        json_count(out, "batches", stage->n_batches);
        json_count(out, "late", stage->n_late);
        json_count(out, "shed", stage->n_shed);
        json_close(out, '}');
    }
    json_close(out, '}');
}

static void stats_copies(json* out, const gpst_stats* stats) {
    json_open(out, "copies", '[');
    for (uint32_t i = 0; i < stats->n_copies; i++) {
        const gpst_copy_stats* const copy = &stats->copies[i];
        json_open(out, NULL, '{');
        json_count(out, "set", copy->set);
        json_string(out, "to", copy->up ? "device" : "host");
        json_string(out, "wanted", copy->wanted);
        json_count(out, "count", copy->count);
        json_count(out, "bytes", copy->bytes);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void stats_resources(json* out, const char* key, const double* values) {
    json_open(out, key, '{');
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++)
        json_number(out, gpst_resource_name((gpst_resource)r), values[r]);
    json_close(out, '}');
}

static void stats_verdict(json* out, const gpst_verdict* verdict) {
    json_open(out, "verdict", '{');
    json_string(out, "bound", gpst_resource_name(verdict->bound));
    json_number(out, "efficiency", verdict->efficiency);
    json_number(out, "bound_s", verdict->bound_s);
    stats_resources(out, "share", verdict->share);
    json_number(out, "others", verdict->others);
    stats_resources(out, "cap", verdict->cap);
    json_string(out, "text", verdict->text);
    json_close(out, '}');
}

static const char* stats_find_within(const char* from, size_t bytes, const char* what) {
    const char* const found = strstr(from, what);
    return found && (size_t)(found - from) < bytes ? found : NULL;
}

/* Length of the first "name: reason" of a list of them; a piece without a name belongs to the one before it.
 */
static size_t stats_piece_bytes(const char* pieces) {
    const char* at = pieces;
    for (;;) {
        const char* const end = strstr(at, "; ");
        if (!end)
            return strlen(pieces);
        const char* const next_end = strstr(end + 2, "; ");
        const size_t next_bytes = next_end ? (size_t)(next_end - end - 2) : strlen(end + 2);
        if (stats_find_within(end + 2, next_bytes, ": "))
            return (size_t)(end - pieces);
        at = end + 2;
    }
}

/* "name: reason; name: reason" */
static void stats_why_not(json* out, const char* pieces) {
    json_open(out, "why_not", '{');
    while (*pieces) {
        const size_t bytes = stats_piece_bytes(pieces);
        const char* const colon = stats_find_within(pieces, bytes, ": ");
        const char* const from = colon ? colon + 2 : pieces;
        char* const name = colon ? text_copy(pieces, (size_t)(colon - pieces)) : text_copy("reason", 6);
        char* const reason = text_copy(from, bytes - (size_t)(from - pieces));
        if (name && reason)
            json_string(out, name, reason);
        free(name);
        free(reason);
        pieces += bytes + (pieces[bytes] ? 2 : 0);
    }
    json_close(out, '}');
}

/* By which codecs each file went, and what had to be mended or kept of it. */
static void stats_files(json* out, const run_counts* counts) {
    if (counts->n_files > 0)
        qsort(counts->files, counts->n_files, sizeof *counts->files, stats_compare_files);
    json_open(out, "files", '[');
    for (size_t i = 0; i < counts->n_files; i++) {
        const item_file* const file = &counts->files[i];
        json_open(out, NULL, '{');
        json_string(out, "item", file->item ? file->item : "");
        json_string(out, "decoder", file->decoder);
        json_string(out, "encoder", file->encoder);
        if (file->note && file->note[0])
            json_string(out, "note", file->note);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void stats_path(json* out, const gpst_stats* stats) {
    json_open(out, "path", '{');
    for (uint32_t i = 0; i < stats->n_paths; i++) {
        const gpst_path* const path = &stats->paths[i];
        json_open(out, path->what, '{');
        json_string(out, "taken", path->taken);
        stats_why_not(out, path->why_not);
        json_close(out, '}');
    }
    json_close(out, '}');
}

static void stats_prefetch(json* out, const gpst_read_ahead* ahead) {
    json_open(out, "prefetch", '{');
    json_string(out, "state", ahead->state);
    json_count(out, "advised", ahead->advised);
    json_close(out, '}');
}

static void stats_engine(json* out, const gpst_stats* stats) {
    json_open(out, "engine", '{');
    json_number(out, "cpu_s", stats_seconds(stats->cpu_ns));
    json_count(out, "slots", stats->slots);
    json_count(out, "slots_used", stats->slots_used);
    json_count(out, "growths", stats->growths);
    json_count(out, "growths_after_freeze", stats->growths_after_freeze);
    json_count(out, "device_fallbacks", stats->device_fallbacks);
    json_number(out, "latency_p50_us", (double)stats->latency_p50_ns / 1e3);
    json_number(out, "latency_p99_us", (double)stats->latency_p99_ns / 1e3);
    json_number(out, "latency_max_us", (double)stats->latency_max_ns / 1e3);
    json_close(out, '}');
}

static void stats_decision(json* out, const gpst_tuner_decision* decision) {
    json_open(out, NULL, '{');
    json_count(out, "item", decision->item);
    json_string(out, "knob", gpst_knob_name(decision->knob));
    json_count(out, "before", decision->before);
    json_count(out, "after", decision->after);
    json_number(out, "items_per_s_before", decision->items_per_s_before);
    json_number(out, "items_per_s_after", decision->items_per_s_after);
    json_string(out, "reason", decision->reason);
    json_close(out, '}');
}

static void stats_guard(json* out, const gpst_guard_report* guard) {
    json_open(out, "guard", '{');
    json_string(out, "text", guard->text);
    json_count(out, "measured", guard->measured);
    json_number(out, "engine_us", guard->engine_ns / 1e3);
    json_number(out, "plain_us", guard->plain_ns / 1e3);
    json_count(out, "plain_items", guard->plain_items);
    json_close(out, '}');
}

void stats_json_tuner(json* out, const gpst_stats* stats, const gpst_tuner_report* tuner) {
    const uint32_t n = tuner->n_decisions < GPST_MAX_DECISIONS ? tuner->n_decisions : GPST_MAX_DECISIONS;
    json_open(out, "tuner", '{');
    json_string(out, "settings", stats->settings);
    json_count(out, "on", tuner->on);
    json_count(out, "frozen", tuner->frozen);
    json_open(out, "most", '{');
    for (int k = (int)GPST_KNOB_WORKERS; k < (int)GPST_KNOB_COUNT; k++)
        json_count(out, gpst_knob_name((gpst_knob)k), tuner->most.value[k]);
    json_close(out, '}');
    json_count(out, "n_decisions", tuner->n_decisions);
    json_open(out, "decisions", '[');
    for (uint32_t i = 0; i < n; i++)
        stats_decision(out, &tuner->decisions[i]);
    json_close(out, ']');
    stats_guard(out, &tuner->guard);
    json_close(out, '}');
}

static void stats_errors(json* out, const run_counts* counts) {
    if (counts->n_errors > 1)
        qsort(counts->errors, counts->n_errors, sizeof *counts->errors, stats_compare_errors);
    json_open(out, "errors", '[');
    for (size_t i = 0; i < counts->n_errors; i++) {
        const item_error* const error = &counts->errors[i];
        json_open(out, NULL, '{');
        json_string(out, "item", error->item ? error->item : "");
        json_string(out, "stage", error->stage ? error->stage : "");
        json_string(out, "result", gpst_result_name(error->result));
        json_string(out, "reason", error->reason ? error->reason : "");
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* ---- all of it ------------------------------------------------------------------------- */

text stats_make_json(const run_counts* counts, const gpst_stats* stats, const gpst_tuner_report* tuner,
                     const gpst_context_info* context) {
    json out = GPST_ZERO;
    const double wall_s = stats_seconds(stats->wall_ns);
    json_open(&out, NULL, '{');
    json_string(&out, "version", GPST_VERSION_TEXT);
    json_string(&out, "backend", context->backend);
    json_string(&out, "device", context->device_name);
    stats_items(&out, counts);
    json_number(&out, "wall_s", wall_s);
    json_number(&out, "start_s", stats_seconds(stats->start_ns));
    json_number(&out, "sync_s", stats_seconds(stats->sync_ns));
    json_number(&out, "items_per_s", wall_s > 0.0 ? (double)counts->ok / wall_s : 0.0);
    stats_bytes(&out, stats);
    stats_stages(&out, stats);
    stats_copies(&out, stats);
    stats_verdict(&out, &stats->verdict);
    stats_path(&out, stats);
    stats_prefetch(&out, &stats->read_ahead);
    stats_json_tuner(&out, stats, tuner);
    json_count(&out, "allocations_after_freeze", stats->allocations_after_freeze);
    stats_engine(&out, stats);
    stats_files(&out, counts);
    stats_errors(&out, counts);
    remarks_json(&out);
    json_close(&out, '}');
    return out.out;
}
