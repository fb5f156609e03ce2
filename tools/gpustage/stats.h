/* tools/gpustage/stats.h -- what a run did, as the JSON that --stats writes. Its keys are stable; "stages" and "path"
   have one for each stage and path of the report, by its name. */
#ifndef GPST_TOOL_STATS_H
#define GPST_TOOL_STATS_H

#include "json.h"
#include "text.h"

typedef struct item_error {
    size_t index; /* of the input: the order in which they are listed */
    char* item;
    char* stage;
    char* reason;
    gpst_result result;
} item_error;

/* An input that was done, and with what. */
typedef struct item_file {
    size_t index;
    char* item;
    const char *decoder, *encoder; /* the library's constants */
    char* note;
} item_file;

/* What the engine cannot know: inputs that never entered it. */
typedef struct run_counts {
    uint64_t total, ok, failed, skipped;
    uint64_t damaged; /* of those that are ok: kept with --on-damage keep */
    uint64_t not_done; /* never begun, or dropped: after an interrupt or with --on-error stop */
    item_error* errors;
    size_t n_errors, error_capacity;
    item_file* files;
    size_t n_files, file_capacity;
} run_counts;

bool counts_add_error(run_counts* self, size_t index, const char* item, const char* stage, gpst_result result,
                      const char* reason);
bool counts_add_file(run_counts* self, size_t index, const gpst_item* item);
void counts_free(run_counts* self);

/* The object "tuner" of it: settings, decisions, what the guard found. */
void stats_json_tuner(json* out, const gpst_stats* stats, const gpst_tuner_report* tuner);

text stats_make_json(const run_counts* counts, const gpst_stats* stats, const gpst_tuner_report* tuner,
                     const gpst_context_info* context);

#endif
