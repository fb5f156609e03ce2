/* examples/01_reproject.c -- 360-degree PPM files to perspective views: read, decode, warp, encode, write,
   all at once.

   cc -std=c11 -O2 -I. examples/01_reproject.c -o reproject -pthread
   ./reproject OUTDIR N_VIEWS FILE.ppm...
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The source names one file after the other; the READ stage reads them. argv ends in NULL. */
static gpst_result next_file(void* files, uint64_t index, gpst_input* out) {
    out->path = ((char**)files)[index];
    return out->path ? GPST_OK : GPST_END;
}

/* PPM to pixels. On any worker, for several items at once. */
static gpst_result decode(void* user_data, gpst_task* task) {
    const gpst_item* item = task->item;
    char header[64] = "";
    int end = 0;
    gpst_image shape = GPST_ZERO, image;
    (void)user_data;
    memcpy(header, item->file_data, item->file_bytes < 63 ? item->file_bytes : 63);
    if (sscanf(header, "P6 %5u %5u 255%n", &shape.width, &shape.height, &end) != 2 || end == 0)
        return gpst_task_fail(task, GPST_ERROR_FORMAT, "not a P6 file without comments");
    const size_t bytes = (size_t)3 * shape.width * shape.height, start = (size_t)end + 1;
    if (start + bytes > item->file_bytes)
        return gpst_task_fail(task, GPST_ERROR_TRUNCATED, "the pixels end too early");
    shape.format = GPST_FORMAT_RGB;
    const gpst_result result = gpst_task_set_picture(task, 0, 0, &shape, &image);
    if (!GPST_FAILED(result))
        memcpy(image.data, (const char*)item->file_data + start, bytes);
    return result;
}

/* A view to PPM: once for each output. The WRITE stage writes what is emitted. */
static gpst_result encode(void* directory, gpst_task* task) {
    const gpst_image* view = &task->item->sets[1].pictures[task->picture_index];
    const char* slash = strrchr(task->item->path, '/');
    const char* stem = slash ? slash + 1 : task->item->path;
    const char* dot = strrchr(stem, '.');
    const size_t bytes = (size_t)3 * view->width * view->height;
    char path[4096];
    void* room;
    const gpst_result result = gpst_task_encoded(task, 64 + bytes, &room);
    if (GPST_FAILED(result))
        return result;
    const int header = snprintf((char*)room, 64, "P6\n%u %u\n255\n", view->width, view->height);
    memcpy((char*)room + header, view->data, bytes);
    snprintf(path, sizeof path, "%s/%.*s_v%02u.ppm", (const char*)directory,
             (int)(dot ? (size_t)(dot - stem) : strlen(stem)), stem, task->picture_index);
    return gpst_task_emit(task, path, (size_t)header + bytes);
}

static gpst_result report(void* user_data, const gpst_item* item) {
    (void)user_data;
    if (item->result != GPST_OK)
        fprintf(stderr, "%s: %s: %s\n", item->name, item->stage, item->reason);
    return GPST_OK;
}

int main(int argc, char** argv) {
    gpst_view views[64] = GPST_ZERO;
    const int n_views = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 4 || n_views < 1 || n_views > 64) {
        fprintf(stderr, "usage: %s OUTDIR N_VIEWS FILE.ppm...\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < n_views; i++)
        views[i].yaw = 360.0 * i / n_views;

    gpst_warp_desc warp_desc = GPST_ZERO;
    warp_desc.map = GPST_MAP_EQUIRECT;
    warp_desc.views = views;
    warp_desc.n_views = (uint32_t)n_views;
    warp_desc.width = 640;
    warp_desc.height = 480;
    warp_desc.format = GPST_FORMAT_RGB;

    gpst_stage_desc stages[5];
    gpst_stage_read(&stages[0]);
    gpst_stage_host(&stages[1], 0, 0, decode, NULL);
    stages[1].name = "decode";
    gpst_stage_host(&stages[3], 0, 0, encode, argv[1]);
    stages[3].name = "encode";
    stages[3].per_picture = true;
    gpst_stage_write(&stages[4]);

    gpst_context_desc context_desc = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    desc.stages = stages;
    desc.n_stages = 5;
    desc.source = next_file;
    desc.source_user_data = argv + 3;
    desc.sink = report;

    gpst_context* context = NULL;
    gpst_warp* warp = NULL;
    gpst_pipeline* pipeline = NULL;
    gpst_result result = gpst_context_create(&context_desc, &context);
    if (!GPST_FAILED(result))
        result = gpst_warp_create(&warp_desc, &warp);
    gpst_stage_warp(&stages[2], 0, 1, warp);
    if (!GPST_FAILED(result))
        result = gpst_pipeline_create(context, &desc, &pipeline);
    if (!GPST_FAILED(result))
        result = gpst_pipeline_run(pipeline);
    if (GPST_FAILED(result)) {
        fprintf(stderr, "%s\n", gpst_last_reason());
    } else {
        gpst_stats stats;
        gpst_pipeline_query_stats(pipeline, &stats);
        printf("%llu of %llu files, %d views each\n%s\n", (unsigned long long)stats.items_ok,
               (unsigned long long)stats.items_total, n_views, stats.verdict.text);
    }
    gpst_pipeline_destroy(pipeline);
    gpst_warp_destroy(warp);
    gpst_context_destroy(context);
    return result == GPST_OK ? 0 : 1;
}
