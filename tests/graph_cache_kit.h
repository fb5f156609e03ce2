/* tests/graph_cache_kit.h -- what the tests of the cache of graphs share: its counters, and twins: a block that
   recorded calls compute in, and one for the calls themselves. */
#ifndef GPST_TEST_GRAPH_CACHE_KIT_H
#define GPST_TEST_GRAPH_CACHE_KIT_H

#include "graph_kit.h"

#include "graph_ops.h"

static inline gpst_graph_cache* cache_of(gpst_device* device, gpst_graph_use use, uint32_t max_graphs,
                                         uint64_t max_bytes) {
    gpst_graph_cache_desc desc = GPST_ZERO;
    gpst_graph_cache* cache = NULL;
    desc.use = use;
    desc.max_graphs = max_graphs;
    desc.max_bytes = max_bytes;
    if (gpst_graph_cache_create(device, &desc, &cache) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    return cache;
}

/* With the sum that always holds. */
static inline gpst_graph_cache_info info_of(gpst_graph_cache* cache) {
    gpst_graph_cache_info info;
    memset(&info, 0xA5, sizeof info);
    gpst_graph_cache_query_info(cache, &info);
    assert_int_equal(info.runs, info.hits + info.captures + info.updates + info.misses + info.refused);
    return info;
}

static inline void expect_info(gpst_graph_cache* cache, uint64_t hits, uint64_t captures, uint64_t updates,
                               uint64_t misses, uint64_t refused_runs) {
    const gpst_graph_cache_info info = info_of(cache);
    assert_int_equal(info.hits, hits);
    assert_int_equal(info.captures, captures);
    assert_int_equal(info.updates, updates);
    assert_int_equal(info.misses, misses);
    assert_int_equal(info.refused, refused_runs);
}

/* ---- a block for ops: what is recorded against what is called ------------------------------------ */

typedef struct twins {
    gpst_stream* stream;
    gpst_memory *recorded, *plain;
    ops_kit ops;
    uint8_t seen[OPS_BYTES], wanted[OPS_BYTES];
} twins;

static inline void twins_begin(twins* t, gpst_device* device, gpst_stream* stream) {
    memset(t, 0, sizeof *t);
    t->stream = stream;
    t->recorded = memory_of(device, GPST_MEMORY_DEVICE, OPS_BYTES);
    t->plain = memory_of(device, GPST_MEMORY_DEVICE, OPS_BYTES);
    assert_int_equal(ops_open(&t->ops, &graph_step), GPST_OK);
    ops_fill(t->wanted);
    assert_int_equal(gpst_copy(gpst_memory_data(t->recorded), t->wanted, OPS_BYTES, stream), GPST_OK);
    assert_int_equal(gpst_copy(gpst_memory_data(t->plain), t->wanted, OPS_BYTES, stream), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(stream), GPST_OK);
}

static inline void twins_end(twins* t) {
    (void)gpst_stream_synchronize(t->stream);
    ops_close(&t->ops);
    gpst_memory_destroy(t->recorded);
    gpst_memory_destroy(t->plain);
}

static inline gpst_result twins_record(twins* t, const uint8_t* bytes, size_t n_bytes) {
    GPSTI_TRY(gpst_graph_begin(t->stream));
    return ops_put(&t->ops, bytes, n_bytes, (uint8_t*)gpst_memory_data(t->recorded), t->stream);
}

static inline void twins_call(twins* t, const uint8_t* bytes, size_t n_bytes) {
    assert_int_equal(ops_put(&t->ops, bytes, n_bytes, (uint8_t*)gpst_memory_data(t->plain), t->stream), GPST_OK);
}

static inline void twins_compare(twins* t) {
    assert_int_equal(gpst_copy(t->seen, gpst_memory_data(t->recorded), OPS_BYTES, t->stream), GPST_OK);
    assert_int_equal(gpst_copy(t->wanted, gpst_memory_data(t->plain), OPS_BYTES, t->stream), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(t->stream), GPST_OK);
    assert_memory_equal(t->seen, t->wanted, OPS_BYTES);
}

static inline void twins_run(twins* t, gpst_graph_cache* cache, const uint8_t* bytes, size_t n_bytes) {
    assert_int_equal(twins_record(t, bytes, n_bytes), GPST_OK);
    if (gpst_graph_cache_run(cache, t->stream) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    twins_call(t, bytes, n_bytes);
}

/* Two calls of the user's kernel, which add so much. */
static inline void twins_add(twins* t, gpst_graph_cache* cache, uint8_t add) {
    const uint8_t bytes[] = {3, 0, 1, 5, 3, 0, 2, add};
    twins_run(t, cache, bytes, sizeof bytes);
}

#endif
