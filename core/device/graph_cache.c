/* core/device/graph_cache.c -- graphs kept by what they do: found, made, given new addresses, given up. Whether a graph
   pays is core/device/graph_gate.c's to say. */
#include "../base/platform_internal.h"

#include "context_internal.h"
#include "graph_internal.h"

#include <string.h>

#define GPSTI_GRAPH_CACHE_CREATE "gpst_graph_cache_create"
#define GPSTI_GRAPHS_DEFAULT 64
#define GPSTI_GRAPHS_MOST 4096
#define GPSTI_GRAPH_DEFAULT_BYTES ((uint64_t)64 << 20)
#define GPSTI_GRAPH_FAMILIES 32
#define GPSTI_GRAPH_SEEN 256 /* runs that are remembered until they come a second time */

typedef struct gpsti_cached_graph {
    uint64_t hash, topology;
    gpsti_commands commands;
    gpsti_graph* graph;
    uint64_t used_at;
} gpsti_cached_graph;

struct gpst_graph_cache {
    gpst_device* device;
    gpst_graph_use use;
    uint64_t max_bytes;
    uint32_t max_graphs;
    const char* off_reason; /* NULL: graphs may be used */
    gpsti_mutex mutex;      /* over all below; held while a graph is made or launched */
    uint64_t clock;         /* counts runs */
    gpsti_cached_graph* graphs; /* [max_graphs], the first info.n_graphs are there */
    gpsti_graph_family families[GPSTI_GRAPH_FAMILIES];
    uint64_t seen[GPSTI_GRAPH_SEEN];
    uint32_t seen_at;
    uint64_t n_allocations;
    gpst_graph_cache_info info;
};

/* A run: what is recorded, and where it stands in the cache. */
typedef struct gpsti_graph_run {
    gpst_graph_cache* cache;
    gpst_stream* stream;
    const gpsti_commands* commands;
    uint64_t hash, topology;
    gpsti_graph_family* family;
    gpsti_cached_graph* found; /* NULL: none is there */
    bool failed;
    char reason[160];
    bool moves;                /* a graph is to take its addresses, though they come for the first time */
    int64_t begin_ns;
    uint64_t* counter;         /* where a run by the graph counts, once it is launched */
} gpsti_graph_run;

/* ---- tables; the mutex is held ----------------------------------------------------- */

GPSTI_PRIVATE gpsti_cached_graph* gpsti_graph_find(gpst_graph_cache* cache, const gpsti_graph_run* run) {
    for (uint32_t i = 0; i < cache->info.n_graphs; i++)
        if (cache->graphs[i].hash == run->hash && gpsti_commands_are_equal(&cache->graphs[i].commands, run->commands))
            return &cache->graphs[i];
    return NULL;
}

/* NULL: not seen, or forgotten. */
GPSTI_PRIVATE gpsti_graph_family* gpsti_graph_family_find(gpst_graph_cache* cache, uint64_t topology) {
    for (uint32_t i = 0; i < GPSTI_GRAPH_FAMILIES; i++)
        if (cache->families[i].n_runs > 0 && cache->families[i].topology == topology)
            return &cache->families[i];
    return NULL;
}

/* The family of a topology, or the one used longest ago, begun anew. */
GPSTI_PRIVATE gpsti_graph_family* gpsti_graph_family_of(gpst_graph_cache* cache, uint64_t topology) {
    gpsti_graph_family* const family = gpsti_graph_family_find(cache, topology);
    gpsti_graph_family* oldest = &cache->families[0];
    if (family)
        return family;
    for (uint32_t i = 1; i < GPSTI_GRAPH_FAMILIES; i++)
        if (cache->families[i].used_at < oldest->used_at)
            oldest = &cache->families[i];
    memset(oldest, 0, sizeof *oldest);
    oldest->topology = topology;
    return oldest;
}

/* Where it is remembered that it has come before; NULL: it has not, and is remembered from now on. */
GPSTI_PRIVATE uint64_t* gpsti_graph_see(gpst_graph_cache* cache, uint64_t hash) {
    for (uint32_t i = 0; i < GPSTI_GRAPH_SEEN; i++)
        if (cache->seen[i] == hash)
            return &cache->seen[i];
    cache->seen[cache->seen_at++ % GPSTI_GRAPH_SEEN] = hash;
    return NULL;
}

GPSTI_PRIVATE void gpsti_graph_count(gpst_graph_cache* cache, const gpsti_cached_graph* graph, bool add) {
    const uint64_t host_bytes = graph->commands.capacity, device_bytes = graph->graph->device_bytes;
    cache->info.host_bytes += add ? host_bytes : (uint64_t)0 - host_bytes;
    cache->info.device_bytes += add ? device_bytes : (uint64_t)0 - device_bytes;
    cache->info.n_graphs += add ? 1 : UINT32_MAX;
}

/* It is the caller's then; the last one takes its place. */
GPSTI_PRIVATE gpsti_cached_graph gpsti_graph_take_out(gpst_graph_cache* cache, gpsti_cached_graph* graph) {
    const gpsti_cached_graph taken = *graph;
    gpsti_graph_count(cache, graph, false);
    if (cache->device->context)
        (void)gpsti_a64_add(&cache->device->context->device_bytes, (uint64_t)0 - taken.graph->device_bytes);
    *graph = cache->graphs[cache->info.n_graphs];
    return taken;
}

/* A device that computes on the host may still read the lists until its graph is gone. */
GPSTI_PRIVATE void gpsti_graph_drop(gpst_graph_cache* cache, gpsti_cached_graph* graph) {
    gpsti_cached_graph taken = gpsti_graph_take_out(cache, graph);
    cache->device->device->i->graph_destroy(taken.graph);
    gpsti_commands_free(&taken.commands);
}

/* Of a topology, or NULL: of all; NULL: there is none. */
GPSTI_PRIVATE gpsti_cached_graph* gpsti_graph_oldest(gpst_graph_cache* cache, const uint64_t* topology) {
    gpsti_cached_graph* oldest = NULL;
    for (uint32_t i = 0; i < cache->info.n_graphs; i++)
        if ((!topology || cache->graphs[i].topology == *topology) &&
            (!oldest || cache->graphs[i].used_at < oldest->used_at))
            oldest = &cache->graphs[i];
    return oldest;
}

GPSTI_PRIVATE void gpsti_graph_refuse(gpst_graph_cache* cache, const char* reason) {
    cache->info.refused++;
    gpsti_copy_text(cache->info.reason, sizeof cache->info.reason, reason);
}

/* ---- making one -------------------------------------------------------------------- */

/* Of a full cache the graph used longest ago goes: into *old, where it can take the run's addresses. So does, where
   addresses do not come again, one that is of no use any more, however many there may be. */
GPSTI_PRIVATE void gpsti_graph_make_room(gpsti_graph_run* run, gpsti_cached_graph* old) {
    gpst_graph_cache* const cache = run->cache;
    gpsti_cached_graph* const alike = run->moves ? gpsti_graph_oldest(cache, &run->topology) : NULL;
    if (!alike && cache->info.n_graphs < cache->max_graphs)
        return;
    gpsti_cached_graph* const oldest = alike ? alike : gpsti_graph_oldest(cache, NULL);
    cache->info.evictions += cache->info.n_graphs < cache->max_graphs ? 0 : 1;
    if (oldest->topology == run->topology)
        *old = gpsti_graph_take_out(cache, oldest);
    else
        gpsti_graph_drop(cache, oldest);
}

/* With all else that the context has on the device. */
GPSTI_PRIVATE gpst_result gpsti_graph_charge(gpst_graph_cache* cache, uint64_t bytes) {
    gpst_context* const context = cache->device->context;
    if (!context || gpsti_a64_add_within(&context->device_bytes, bytes, context->info.max_device_bytes))
        return GPST_OK;
    return gpsti_fail(GPST_ERROR_BUDGET, "the graph takes %llu bytes of the device: max_device_bytes=%llu has no room "
                      "for them", (unsigned long long)bytes, (unsigned long long)context->info.max_device_bytes);
}

/* The newest stays, whatever it takes, unless it alone is too large. */
GPSTI_PRIVATE gpst_result gpsti_graph_limit_bytes(gpst_graph_cache* cache) {
    while (cache->info.device_bytes > cache->max_bytes && cache->info.n_graphs > 1) {
        gpsti_graph_drop(cache, gpsti_graph_oldest(cache, NULL));
        cache->info.evictions++;
    }
    if (cache->info.device_bytes <= cache->max_bytes)
        return GPST_OK;
    const uint64_t bytes = cache->info.device_bytes;
    gpsti_graph_drop(cache, gpsti_graph_oldest(cache, NULL));
    return gpsti_fail(GPST_ERROR_BUDGET, "the graph takes %llu bytes of the device: max_bytes=%llu",
                      (unsigned long long)bytes, (unsigned long long)cache->max_bytes);
}

GPSTI_PRIVATE gpst_result gpsti_graph_add(gpsti_graph_run* run) {
    gpst_graph_cache* const cache = run->cache;
    gpsti_cached_graph made, old;
    memset(&made, 0, sizeof made);
    memset(&old, 0, sizeof old);
    made.hash = run->hash;
    made.topology = run->topology;
    made.used_at = cache->clock;
    GPSTI_TRY(gpsti_commands_copy(run->commands, &made.commands));
    gpsti_graph_make_room(run, &old);
    made.graph = old.graph;
    cache->n_allocations += old.graph ? 1 : 2; /* the list, and what the backend keeps */
    gpst_result result = gpsti_graph_capture(run->stream, &made.commands, &made.graph);
    if (old.graph)
        gpsti_commands_free(&old.commands);
    if (!GPST_FAILED(result))
        result = gpsti_graph_charge(cache, made.graph->device_bytes);
    if (GPST_FAILED(result)) {
        cache->device->device->i->graph_destroy(made.graph);
        gpsti_commands_free(&made.commands);
        return result;
    }
    cache->graphs[cache->info.n_graphs] = made;
    gpsti_graph_count(cache, &made, true);
    GPSTI_TRY(gpsti_graph_limit_bytes(cache));
    run->counter = old.graph ? &cache->info.updates : &cache->info.captures;
    run->found = gpsti_graph_find(cache, run);
    return GPST_OK;
}

/* Once for each topology: it stays piece by piece from now on. */
GPSTI_PRIVATE void gpsti_graph_fail(gpsti_graph_run* run) {
    run->failed = run->family->failed = true;
    gpsti_copy_text(run->reason, sizeof run->reason, gpst_last_reason());
    gpsti_graph_refuse(run->cache, run->reason);
}

/* ---- a run ------------------------------------------------------------------------- */

/* The mutex is held. True: run->found is the graph to launch. */
GPSTI_PRIVATE bool gpsti_graph_choose(gpsti_graph_run* run) {
    gpst_graph_cache* const cache = run->cache;
    gpsti_graph_family* const family = run->family;
    const bool always = cache->use == GPST_GRAPHS_ALWAYS;
    if (family->failed) {
        cache->info.refused++;
        return false;
    }
    run->found = gpsti_graph_find(cache, run);
    uint64_t* const seen = run->found ? NULL : gpsti_graph_see(cache, run->hash);
    const bool is_new = !run->found && !seen;
    run->moves = gpsti_graph_family_moves(family, is_new);
    const bool pays = always || (run->moves ? gpsti_graph_family_move_pays(family, run->commands->n)
                                            : gpsti_graph_family_pays(family, run->commands->n));
    const bool measures = !always && (run->found || run->moves) && gpsti_graph_family_measures(family);
    if ((is_new && !run->moves) || measures) {
        cache->info.misses++;
        return false;
    }
    if (!pays) {
        gpsti_graph_refuse(cache, "a graph would save less than 2 % of the period");
        return false;
    }
    run->counter = &cache->info.hits;
    if (seen)
        *seen = 0;
    if (!run->found && GPST_FAILED(gpsti_graph_add(run))) {
        gpsti_graph_fail(run);
        return false;
    }
    run->found->used_at = cache->clock;
    return true;
}

/* The mutex is held. False: the device does not launch the graph, which is gone, and the run is piece by piece. A
   device that computes at once has begun the work: what it says is a kernel's. */
GPSTI_PRIVATE bool gpsti_graph_start(gpsti_graph_run* run, gpst_result* result) {
    gpst_graph_cache* const cache = run->cache;
    const int64_t begin_ns = gpsti_now_ns();
    *result = cache->device->device->i->graph_launch(run->found->graph, run->stream->stream);
    if (GPST_FAILED(*result) && *result != GPST_ERROR_DEVICE_LOST && cache->device->info.asynchronous) {
        gpsti_graph_fail(run);
        gpsti_graph_drop(cache, run->found);
        return false;
    }
    *run->counter += 1;
    const int64_t end_ns = gpsti_now_ns();
    if (!GPST_FAILED(*result))
        gpsti_graph_family_end(run->family, true, end_ns - begin_ns);
    if (!GPST_FAILED(*result) && run->moves && run->counter == &cache->info.updates)
        gpsti_graph_family_moved(run->family, end_ns - run->begin_ns);
    return true;
}

GPSTI_PRIVATE gpst_result gpsti_graph_run_pieces(gpsti_graph_run* run) {
    const int64_t begin_ns = gpsti_now_ns();
    const gpst_result result = gpsti_graph_put(run->stream);
    const int64_t took_ns = gpsti_now_ns() - begin_ns;
    if (GPST_FAILED(result))
        return result;
    gpsti_mutex_lock(&run->cache->mutex);
    gpsti_graph_family* const family = gpsti_graph_family_find(run->cache, run->topology); /* may be forgotten by now */
    if (family)
        gpsti_graph_family_end(family, false, took_ns);
    gpsti_mutex_unlock(&run->cache->mutex);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_graph_run_without(gpst_graph_cache* cache, gpst_stream* stream) {
    gpsti_mutex_lock(&cache->mutex);
    cache->info.runs++;
    cache->info.refused++;
    gpsti_mutex_unlock(&cache->mutex);
    return gpsti_graph_put(stream);
}

GPSTI_INTERN gpst_result gpsti_graph_cache_run(gpst_graph_cache* cache, gpst_stream* stream) {
    gpsti_graph_run run;
    gpst_result result = GPST_OK;
    if (stream->commands.n == 0)
        return GPST_OK;
    if (cache->off_reason)
        return gpsti_graph_run_without(cache, stream);
    memset(&run, 0, sizeof run);
    run.cache = cache;
    run.stream = stream;
    run.commands = &stream->commands;
    gpsti_commands_hash(run.commands, &run.hash, &run.topology);
    gpsti_mutex_lock(&cache->mutex);
    cache->clock++;
    cache->info.runs++;
    run.family = gpsti_graph_family_of(cache, run.topology);
    run.family->used_at = cache->clock;
    run.begin_ns = gpsti_now_ns();
    gpsti_graph_family_begin(run.family, run.begin_ns);
    const bool launched = gpsti_graph_choose(&run) && gpsti_graph_start(&run, &result);
    gpsti_mutex_unlock(&cache->mutex);
    if (run.failed)
        GPSTI_LOG(cache->device->host, GPST_LOG_WARNING, GPSTI_NO_ITEM,
                  "no graph of %u commands, they run piece by piece: %s", run.commands->n, run.reason);
    return launched ? result : gpsti_graph_run_pieces(&run);
}

GPST_API gpst_result gpst_graph_cache_run(gpst_graph_cache* cache, gpst_stream* stream) {
    const char* function = "gpst_graph_cache_run";
    GPSTI_TRY(gpsti_graph_stop(stream, function));
    GPSTI_FAIL_IF(!cache, GPST_ERROR_ARGUMENT, "%s: cache=NULL: must be a cache", function);
    GPSTI_FAIL_IF(cache->device != stream->device, GPST_ERROR_ARGUMENT, "%s: stream: must be of the cache's device",
                  function);
    return gpsti_device_result(gpsti_graph_cache_run(cache, stream), function);
}

/* ---- create, destroy, query ---------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_graph_cache_check(const gpst_graph_cache_desc* desc) {
    const char* function = GPSTI_GRAPH_CACHE_CREATE;
    GPSTI_TRY(gpsti_check_canaries(function, desc->start_canary, desc->end_canary));
    GPSTI_FAIL_IF((int)desc->use < 0 || desc->use > GPST_GRAPHS_ALWAYS, GPST_ERROR_ARGUMENT,
                  "%s: desc.use=%d: must be 0..%d", function, (int)desc->use, (int)GPST_GRAPHS_ALWAYS);
    GPSTI_FAIL_IF(desc->max_graphs > GPSTI_GRAPHS_MOST, GPST_ERROR_ARGUMENT,
                  "%s: desc.max_graphs=%u: must be at most %d", function, desc->max_graphs, GPSTI_GRAPHS_MOST);
    return GPST_OK;
}

GPSTI_PRIVATE const char* gpsti_graph_off_reason(const gpst_device* device, gpst_graph_use use) {
    if (use == GPST_GRAPHS_OFF)
        return "graphs are switched off";
    if (use == GPST_GRAPHS_ALWAYS)
        return NULL;
    if (!device->device->i->stream_native)
        return "this backend runs a graph piece by piece";
    return strcmp(device->device->i->name, "hip") == 0 ? "hip: graphs are used where they are asked for" : NULL;
}

GPSTI_PRIVATE gpst_result gpsti_graph_cache_build(gpst_graph_cache* cache, const gpst_graph_cache_desc* desc) {
    cache->use = desc->use;
    cache->max_graphs = desc->max_graphs ? desc->max_graphs : GPSTI_GRAPHS_DEFAULT;
    cache->max_bytes = desc->max_bytes ? desc->max_bytes : GPSTI_GRAPH_DEFAULT_BYTES;
    cache->off_reason = gpsti_graph_off_reason(cache->device, desc->use);
    gpsti_copy_text(cache->info.reason, sizeof cache->info.reason, cache->off_reason ? cache->off_reason : "");
    cache->graphs = (gpsti_cached_graph*)gpsti_alloc(cache->device->host, cache->max_graphs * sizeof *cache->graphs);
    return cache->graphs ? gpsti_mutex_init(&cache->mutex) : GPST_ERROR_MEMORY;
}

GPSTI_PRIVATE void gpsti_graph_cache_free(gpst_graph_cache* cache) {
    gpsti_free(cache->device->host, cache->graphs, cache->max_graphs * sizeof *cache->graphs);
    gpsti_device_drop_object(cache->device, cache, sizeof *cache);
}

GPST_API gpst_result gpst_graph_cache_create_versioned(uint32_t version, size_t desc_bytes, gpst_device* device,
                                                       const gpst_graph_cache_desc* desc, gpst_graph_cache** out) {
    const char* function = GPSTI_GRAPH_CACHE_CREATE;
    gpst_graph_cache_desc defaults = GPST_ZERO;
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version(function, version, desc_bytes, sizeof *desc));
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "%s: out=NULL: must point to a gpst_graph_cache*", function);
    GPSTI_TRY(gpsti_device_check(device, function));
    if (!desc)
        desc = &defaults;
    GPSTI_TRY(gpsti_graph_cache_check(desc));
    gpst_graph_cache* const cache = (gpst_graph_cache*)gpsti_device_add_object(device, sizeof *cache);
    if (!cache)
        return gpsti_fail_in(GPST_ERROR_MEMORY, function);
    cache->device = device;
    const gpst_result result = gpsti_graph_cache_build(cache, desc);
    if (GPST_FAILED(result)) {
        gpsti_graph_cache_free(cache);
        return gpsti_fail_in(result, function);
    }
    *out = cache;
    return GPST_OK;
}

GPST_API void gpst_graph_cache_trim(gpst_graph_cache* cache) {
    if (!cache || gpsti_device_forked(cache->device))
        return;
    gpsti_mutex_lock(&cache->mutex);
    while (cache->info.n_graphs > 0)
        gpsti_graph_drop(cache, &cache->graphs[cache->info.n_graphs - 1]);
    gpsti_mutex_unlock(&cache->mutex);
}

GPST_API void gpst_graph_cache_destroy(gpst_graph_cache* cache) {
    if (!cache || gpsti_device_forked(cache->device))
        return;
    gpst_graph_cache_trim(cache);
    gpsti_mutex_term(&cache->mutex);
    gpsti_graph_cache_free(cache);
}

GPSTI_INTERN uint64_t gpsti_graph_cache_n_allocations(gpst_graph_cache* cache) {
    if (!cache)
        return 0;
    gpsti_mutex_lock(&cache->mutex);
    const uint64_t n = cache->n_allocations;
    gpsti_mutex_unlock(&cache->mutex);
    return n;
}

GPST_API void gpst_graph_cache_query_info(gpst_graph_cache* cache, gpst_graph_cache_info* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!cache)
        return;
    gpsti_mutex_lock(&cache->mutex);
    *out = cache->info;
    gpsti_mutex_unlock(&cache->mutex);
}
