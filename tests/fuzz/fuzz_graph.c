/* tests/fuzz/fuzz_graph.c -- any bytes as sequences of calls on a stream: recorded and run by a cache, again and again,
   or made into a graph, they compute what the calls themselves do, on cpu and on sim.

   With a fuzzer (clang's), and with run_corpus.c instead of one:
   clang -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_graph.c gpustage.c
   cc tests/fuzz/fuzz_graph.c tests/fuzz/run_corpus.c gpustage.c -pthread
*/
#include "../../gpustage.h"

#include "../graph_ops.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

enum { MOST_RUNS = 64 };

#define REQUIRE(holds) ((holds) ? (void)0 : stop(#holds))

static void stop(const char* rule) {
    fprintf(stderr, "fuzz_graph: does not hold: %s (last reason: %s)\n", rule, gpst_last_reason());
    abort();
}

static gpst_result step_host(const void* args) {
    const ops_step_args* const step = (const ops_step_args*)args;
    *step->value = *step->value * 3 + step->add;
    return GPST_OK;
}

static const gpst_kernel step_kernel = {"step", step_host, NULL};

typedef struct fuzzed {
    gpst_device* device;
    gpst_stream* stream;
    gpst_graph_cache* cache;
    gpst_memory *recorded, *plain;
    ops_kit ops;
} fuzzed;

static void compare(const fuzzed* f) {
    static uint8_t seen[OPS_BYTES], wanted[OPS_BYTES];
    REQUIRE(gpst_copy(seen, gpst_memory_data(f->recorded), OPS_BYTES, f->stream) == GPST_OK);
    REQUIRE(gpst_copy(wanted, gpst_memory_data(f->plain), OPS_BYTES, f->stream) == GPST_OK);
    REQUIRE(gpst_stream_synchronize(f->stream) == GPST_OK);
    REQUIRE(memcmp(seen, wanted, OPS_BYTES) == 0);
}

/* A list, by a graph of its own where alone, else by the cache. */
static void run(const fuzzed* f, const uint8_t* list, size_t n_bytes, bool alone) {
    uint8_t* const recorded = (uint8_t*)gpst_memory_data(f->recorded);
    uint8_t* const plain = (uint8_t*)gpst_memory_data(f->plain);
    gpst_graph* graph = NULL;
    REQUIRE(gpst_graph_begin(f->stream) == GPST_OK);
    REQUIRE(ops_put(&f->ops, list, n_bytes, recorded, f->stream) == GPST_OK);
    if (alone) {
        REQUIRE(gpst_graph_end(f->stream, &graph) == GPST_OK);
        REQUIRE(gpst_graph_launch(graph, f->stream) == GPST_OK);
    } else {
        REQUIRE(gpst_graph_cache_run(f->cache, f->stream) == GPST_OK);
    }
    REQUIRE(ops_put(&f->ops, list, n_bytes, plain, f->stream) == GPST_OK);
    gpst_graph_destroy(graph);
}

static void keep_quiet(void* user_data, gpst_log_level level, uint64_t item_index, const char* message,
                       const char* file, int line) {
    (void)user_data, (void)level, (void)item_index, (void)message, (void)file, (void)line;
}

static void play(const char* name, const uint8_t* data, size_t bytes) {
    static uint8_t first[OPS_BYTES];
    fuzzed f;
    gpst_graph_cache_desc desc = GPST_ZERO;
    gpst_graph_cache_info info;
    gpst_logger logger;
    memset(&f, 0, sizeof f);
    desc.use = (gpst_graph_use)(data[0] % 4 ? GPST_GRAPHS_ALWAYS : GPST_GRAPHS_AUTO);
    desc.max_graphs = 1 + data[0] / 4 % 5;
    desc.max_bytes = (uint64_t)1 << (8 + data[0] / 32);
    memset(&logger, 0, sizeof logger);
    logger.func = keep_quiet;
    REQUIRE(gpst_device_open_versioned(GPST_VERSION, sizeof(gpst_device_info), name, NULL, &logger, &f.device) ==
            GPST_OK);
    REQUIRE(gpst_stream_create(f.device, &f.stream) == GPST_OK);
    REQUIRE(gpst_graph_cache_create(f.device, &desc, &f.cache) == GPST_OK);
    REQUIRE(gpst_memory_create(f.device, GPST_MEMORY_DEVICE, OPS_BYTES, &f.recorded) == GPST_OK);
    REQUIRE(gpst_memory_create(f.device, GPST_MEMORY_DEVICE, OPS_BYTES, &f.plain) == GPST_OK);
    REQUIRE(ops_open(&f.ops, &step_kernel) == GPST_OK);
    ops_fill(first);
    REQUIRE(gpst_copy(gpst_memory_data(f.recorded), first, OPS_BYTES, f.stream) == GPST_OK);
    REQUIRE(gpst_copy(gpst_memory_data(f.plain), first, OPS_BYTES, f.stream) == GPST_OK);
    /* A run: where its list begins, how long it is, how it is run. Lists overlap, and come again. */
    for (size_t n = 0, at = 1; n < MOST_RUNS && at + 3 <= bytes; n++, at += 3) {
        const size_t begin = data[at] % bytes, most = bytes - begin;
        const size_t length = (size_t)OPS_EACH * (data[at + 1] % 9);
        run(&f, data + begin, length < most ? length : most, data[at + 2] % 8 == 0);
        if (data[at + 2] % 4 == 1)
            compare(&f);
        if (data[at + 2] == 255)
            gpst_graph_cache_trim(f.cache);
    }
    compare(&f);
    gpst_graph_cache_query_info(f.cache, &info);
    REQUIRE(info.runs == info.hits + info.captures + info.updates + info.misses + info.refused);
    REQUIRE(info.n_graphs <= desc.max_graphs && info.device_bytes <= desc.max_bytes);
    gpst_graph_cache_destroy(f.cache);
    gpst_memory_destroy(f.recorded);
    gpst_memory_destroy(f.plain);
    ops_close(&f.ops);
    gpst_stream_destroy(f.stream);
    REQUIRE(gpst_device_close(f.device) == GPST_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    if (bytes < 4)
        return 0;
    play("cpu", data, bytes);
    play("sim:launch_us=0", data, bytes);
    return 0;
}
