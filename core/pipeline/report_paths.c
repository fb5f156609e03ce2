/* core/pipeline/report_paths.c -- the path the bytes took, and why no faster one, for statistics. Reads; changes
   nothing. */
#include "../base/platform_internal.h"

#include "../steps/engines_internal.h"
#include "engine_internal.h"

#include <string.h>

GPSTI_INTERN bool gpsti_report_has(const gpst_pipeline* pipeline, gpst_resource resource) {
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++)
        if (pipeline->plan.steps[s].kind->resource == resource)
            return true;
    return false;
}

GPSTI_PRIVATE gpst_path* gpsti_report_add_path(gpst_stats* out, const char* what, const char* taken,
                                               const char* why_not) {
    gpst_path* const path = &out->paths[out->n_paths++];
    gpsti_copy_text(path->what, sizeof path->what, what);
    gpsti_copy_text(path->taken, sizeof path->taken, taken);
    gpsti_copy_text(path->why_not, sizeof path->why_not, why_not);
    return path;
}

GPSTI_PRIVATE void gpsti_report_memory_path(const gpst_pipeline* pipeline, gpst_stats* out) {
    gpst_pool_info pool;
    gpst_pool_query_info(pipeline->plan.pool, &pool);
    char taken[32];
    gpsti_format(taken, sizeof taken, "%s, %s", pool.pinned_bytes > 0 ? "pinned" : "pageable",
                 pool.hugetlb_bytes > 0 ? "hugetlb"
                 : pool.thp_bytes > 0   ? "thp"
                                        : "small pages");
    const unsigned long long n_restarted = (unsigned long long)pipeline->memory.n_restarted;
    gpst_path* const path = gpsti_report_add_path(out, "host_memory", taken, pool.pages_reason);
    if (n_restarted > 0)
        gpsti_append(path->why_not, sizeof path->why_not, "%smemory was short: items began anew %llu times",
                     path->why_not[0] ? "; " : "", n_restarted);
}

GPSTI_PRIVATE void gpsti_report_threads_path(const gpst_pipeline* pipeline, gpst_stats* out) {
    const gpsti_pin* const pin = &pipeline->context->pin;
    const char* const why_not = strcmp(pin->text, "none") == 0 ? "pinned: not asked for" : "pinned: not on this system";
    (void)gpsti_report_add_path(out, "threads", pin->on ? pin->text : "not pinned", pin->on ? "" : why_not);
}

GPSTI_PRIVATE void gpsti_report_write_path(const gpst_pipeline* pipeline, gpst_stats* out) {
    if (!gpsti_report_has(pipeline, GPST_RESOURCE_DISK_OUT))
        return;
    if (pipeline->plan.desc.fsync == GPST_FSYNC_FILE)
        (void)gpsti_report_add_path(out, "write", "buffered, fsync",
                                    "buffered alone: desc.fsync wants a file whole on the disk before it has its name");
    else
        (void)gpsti_report_add_path(out, "write", "buffered", "");
}

GPSTI_PRIVATE void gpsti_report_copies_path(const gpst_pipeline* pipeline, gpst_stats* out) {
    const unsigned long long n_in_place = (unsigned long long)pipeline->counts.n_in_place;
    const bool plain = gpsti_is_plain(pipeline), on_host = pipeline->plan.device_on_host;
    if (!gpsti_report_has(pipeline, GPST_RESOURCE_GPU))
        return;
    if (on_host || (n_in_place > 0 && pipeline->counts.n_copied == 0)) {
        (void)gpsti_report_add_path(out, "copies", on_host ? "none: computed in place" : "none: small, over the link",
                                    "");
        return;
    }
    gpst_path* const path =
        gpsti_report_add_path(out, "copies", plain ? "up and down, one stream" : "up and down, a stream a slot",
                              "in place: the device has memory of its own");
    if (plain)
        gpsti_append(path->why_not, sizeof path->why_not, "; overlapped: a plain loop waits for each item");
    if (n_in_place > 0)
        gpsti_append(path->why_not, sizeof path->why_not, ", but %llu items were small enough", n_in_place);
}

/* "2.7 items together", and why not more. */
GPSTI_PRIVATE void gpsti_report_batch_path(const gpst_pipeline* pipeline, gpst_stats* out) {
    const uint64_t n = pipeline->counts.n_submissions;
    const uint32_t wanted =
        pipeline->tune->on ? pipeline->tune->tuner.now.value[GPST_KNOB_BATCH] : pipeline->plan.desc.batch;
    char taken[32];
    if (n == 0 || (pipeline->plan.batch_most < 2 && wanted < 2))
        return;
    const uint64_t tenths = (pipeline->counts.n_submitted * 10 + n / 2) / n;
    gpsti_format(taken, sizeof taken, "%u.%u items together", (unsigned)(tenths / 10), (unsigned)(tenths % 10));
    gpst_path* const path = gpsti_report_add_path(out, "batch", tenths == 10 ? "each by itself" : taken, "");
    if (pipeline->plan.batch_most < 2)
        gpsti_format(path->why_not, sizeof path->why_not, "together: %s",
                     pipeline->plan.device_on_host ? "computed in place" : "DEVICE stages are called for each item");
    else if (pipeline->counts.n_taken_apart > 0)
        gpsti_format(path->why_not, sizeof path->why_not, "together: %llu batches failed and were taken apart: %.150s",
                     (unsigned long long)pipeline->counts.n_taken_apart, pipeline->counts.apart_reason);
    else if (wanted < 2)
        gpsti_copy_text(path->why_not, sizeof path->why_not, "together: batch=1");
    else if (tenths < 10 * (uint64_t)wanted)
        gpsti_format(path->why_not, sizeof path->why_not, "%u together: so many were not ready when the device was",
                     wanted);
}

/* A plain loop has no reader: it reads through the page cache. */
GPSTI_PRIVATE void gpsti_report_read_path(const gpst_pipeline* pipeline, gpst_stats* out) {
    gpst_reader_info info;
    gpst_reader_query_info(pipeline->files.reader, &info);
    const bool plain = gpsti_is_plain(pipeline);
    gpst_path* const path = gpsti_report_add_path(out, "read",
                                                  plain             ? "pread, buffered"
                                                  : info.reads == 0 ? "pread, from the page cache"
                                                                    : info.path,
                                                  plain ? "direct, io_uring: not in a plain loop" : info.why_not);
    gpsti_append(path->why_not, sizeof path->why_not, "%sgds: not in this version", path->why_not[0] ? "; " : "");
}

GPSTI_PRIVATE void gpsti_report_read_ahead(const gpst_pipeline* pipeline, gpst_stats* out) {
    gpst_read_ahead* const ahead = &out->read_ahead;
    const gpst_pipeline_desc* const desc = &pipeline->plan.desc;
    char taken[32] = "none";
    ahead->advised = pipeline->files.advised;
    const gpst_read any = GPST_ZERO;
    gpsti_copy_text(ahead->state, sizeof ahead->state,
                    desc->no_prefetch                                           ? "off: switched off"
                    : desc->n_paths == 0                                        ? "off: no list of files"
                    : !desc->source                                             ? "off: inputs are pushed, in any order"
                    : gpsti_is_plain(pipeline)                                  ? "off: not in a plain loop"
                    : pipeline->files.advised > 0                               ? "on"
                    : !gpsti_reader_goes_by_cache(pipeline->files.reader, &any) ? "off: reads go past the page cache"
                                                                                : "off: no read had to wait");
    if (!gpsti_report_has(pipeline, GPST_RESOURCE_DISK_IN))
        return;
    if (ahead->advised > 0)
        gpsti_format(taken, sizeof taken, "%llu files advised", (unsigned long long)ahead->advised);
    gpst_path* const path = gpsti_report_add_path(out, "prefetch", taken, "");
    if (ahead->advised == 0)
        gpsti_format(path->why_not, sizeof path->why_not, "ahead: %s", ahead->state + 5);
}

GPSTI_PRIVATE void gpsti_report_jpeg_path(const gpst_pipeline* pipeline, gpst_stats* out) {
    const gpsti_engines* const jpeg = pipeline->engines;
    bool has_codec = false;
    for (uint32_t s = 0; s < pipeline->plan.desc.n_stages; s++)
        has_codec = has_codec || pipeline->plan.stages[s].desc.kind == GPST_STAGE_DECODE ||
                    pipeline->plan.stages[s].desc.kind == GPST_STAGE_ENCODE;
    if (!has_codec)
        return;
    gpst_path* const path = gpsti_report_add_path(out, "jpeg", jpeg->begun ? "nvJPEG and cores" : "cores", "");
    const bool named = !strncmp(jpeg->reason, "nvJPEG: ", 8);
    if (jpeg->begun && jpeg->decodes && !jpeg->has_engines) /* then pixels are not quite the cores' */
        gpsti_format(path->why_not, sizeof path->why_not, "engines: %.110s", jpeg->nvjpeg->no_hardware_reason);
    if (!jpeg->asked)
        gpsti_copy_text(path->why_not, sizeof path->why_not, "nvJPEG: codec=EXACT");
    else if (jpeg->reason[0])
        gpsti_append(path->why_not, sizeof path->why_not, "%s%s%.120s", path->why_not[0] ? "; " : "",
                     named ? "" : "nvJPEG: ", jpeg->reason);
    else if (!jpeg->begun)
        gpsti_copy_text(path->why_not, sizeof path->why_not,
                        "nvJPEG: opening it takes longer than the cores need for the rest");
}

/* What was done for want of device memory, as often as it was. */
GPSTI_PRIVATE void gpsti_report_shortage_path(const gpst_pipeline* pipeline, gpst_stats* out) {
    const gpsti_shares* const shares = &pipeline->memory;
    const struct {
        const char* text;
        uint64_t n;
    } done[] = {{"refused", shares->n_refused},
                {"gave unused memory back", shares->n_trimmed},
                {"held items back", shares->n_waited},
                {"left items to the cpu", shares->n_denied}};
    gpst_path* path = NULL;
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) {
        if (done[i].n == 0)
            continue;
        if (!path)
            path = gpsti_report_add_path(out, "device_memory", "short", "");
        gpsti_append(path->why_not, sizeof path->why_not, "%s%s %llu time%s",
                     path->why_not[0] ? ", " : "device_memory: ", done[i].text, (unsigned long long)done[i].n,
                     done[i].n == 1 ? "" : "s");
    }
    if (path && shares->reason[0])
        gpsti_append(path->why_not, sizeof path->why_not, ": %s", shares->reason);
}

GPSTI_PRIVATE void gpsti_report_graph_path(const gpst_pipeline* pipeline, gpst_stats* out) {
    gpst_graph_cache_info info;
    gpst_graph_cache_query_info(pipeline->plan.graphs, &info);
    const uint64_t n_graphs = info.hits + info.captures + info.updates;
    gpst_path* const path = gpsti_report_add_path(out, "graph", n_graphs > 0 ? "graphs" : "launches", "");
    if (!pipeline->plan.graphs)
        gpsti_format(path->why_not, sizeof path->why_not, "graph: %s",
                     pipeline->plan.desc.graphs == GPST_GRAPHS_OFF ? "graphs are switched off"
                     : pipeline->plan.device_on_host
                         ? "the host computes: there are no launches to save"
                         : "no device step has several launches, or a DEVICE stage in it is not capturable");
    else if (info.runs == 0)
        gpsti_copy_text(path->why_not, sizeof path->why_not,
                        "graph: no submission was recorded: each was timed by events between its launches, or computed "
                        "on the CPU");
    else if (n_graphs < info.runs)
        gpsti_format(path->why_not, sizeof path->why_not, "graph: %llu of %llu submissions piece by piece: %s",
                     (unsigned long long)(info.runs - n_graphs), (unsigned long long)info.runs,
                     info.reason[0] ? info.reason : "each the first of its kind in its slot");
}

GPSTI_INTERN void gpsti_report_paths(const gpst_pipeline* pipeline, gpst_stats* out) {
    const gpst_context_info* const info = &pipeline->context->info;
    if (gpsti_report_has(pipeline, GPST_RESOURCE_DISK_IN))
        gpsti_report_read_path(pipeline, out);
    gpsti_report_memory_path(pipeline, out);
    (void)gpsti_report_add_path(out, "device", pipeline->signals.device_lost ? "cpu" : info->backend,
                                pipeline->counts.fallback_reason[0] ? pipeline->counts.fallback_reason
                                                                    : info->backend_reason);
    gpsti_report_shortage_path(pipeline, out);
    gpsti_report_jpeg_path(pipeline, out);
    gpsti_report_write_path(pipeline, out);
    gpsti_report_copies_path(pipeline, out);
    gpsti_report_batch_path(pipeline, out);
    gpsti_report_graph_path(pipeline, out);
    gpsti_report_threads_path(pipeline, out);
    gpsti_report_read_ahead(pipeline, out);
}
