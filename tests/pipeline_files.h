/* tests/pipeline_files.h -- items of the kit with files, in runs that choose by themselves how to bring them. */
#ifndef GPST_PIPELINE_FILES_H
#define GPST_PIPELINE_FILES_H

#include "pipeline_kit.h"

enum { N_FILES = 80 };

/* The kit's five stages: read, decode, compute, encode each output, write. Most of an item is waiting in decode. */
static inline gpst_pipeline_desc files_desc(kit* self, bool has_sink) {
    gpst_pipeline_desc desc = kit_standard(self, N_FILES);
    desc.mode = GPST_RUN_DEFAULT;
    desc.n_items_expected = N_FILES;
    desc.sink = has_sink ? kit_sink : NULL;
    self->decode_ns = 4000000; /* of which the files take little, on any machine */
    return desc;
}

/* Of items that should be well every file is there and right; of the others there is none. */
static inline void files_check(kit* self, const gpst_stats* stats) {
    uint32_t n_files = 0;
    uint64_t n_ok = 0;
    for (uint64_t n = 0; n < N_FILES; n++) {
        if (self->fail_place != KIT_NOWHERE && kit_fails(self, self->fail_place, n))
            continue;
        for (uint32_t o = 0; o < self->n_outputs; o++)
            if (!kit_output_is_right(self, n, o))
                fail_msg("output %u of item %u is missing or wrong", o, (unsigned)n);
        n_files += self->n_outputs;
        n_ok++;
    }
    assert_int_equal(kit_count_files(self, "out_"), n_files);
    assert_int_equal(stats->items_ok, n_ok);
    assert_int_equal(stats->items_failed, N_FILES - n_ok);
}

#endif
