/* examples/09_jpeg.c -- JPEG files to small JPEG files: READ, DECODE, WARP, ENCODE and WRITE stages, by codecs that the
   library finds when it runs.

   cc -std=c11 -O2 -I. examples/09_jpeg.c -o jpeg -pthread
   ./jpeg OUTDIR FILE...
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <stdio.h>

static gpst_result next_file(void* files, uint64_t index, gpst_input* out) {
    out->path = ((char**)files)[index]; /* argv ends in NULL */
    return out->path ? GPST_OK : GPST_END;
}

/* The picture's file is there, in memory: here it gets a name, and the WRITE stage writes it. No two may have the same. */
static gpst_result name_file(void* directory, gpst_task* task) {
    char name[256], path[4096];
    const gpst_result result = gpst_output_name(task->item->path, -1, "jpg", name, sizeof name);
    if (GPST_FAILED(result))
        return result;
    snprintf(path, sizeof path, "%s/%s", (const char*)directory, name);
    return gpst_task_emit(task, path, task->encoded_bytes);
}

static gpst_result report(void* user_data, const gpst_item* item) {
    (void)user_data;
    if (item->result != GPST_OK)
        fprintf(stderr, "%s: %s: %s\n", item->name, item->stage, item->reason);
    else
        printf("%s: decoded by %s, encoded by %s%s%s\n", item->name, item->decoder, item->encoder,
               item->note[0] ? "; " : "", item->note);
    return GPST_OK;
}

int main(int argc, char** argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s OUTDIR FILE...\n", argv[0]);
        return 2;
    }
    gpst_warp_desc warp_desc = GPST_ZERO;
    warp_desc.map = GPST_MAP_RESIZE;
    warp_desc.filter = GPST_FILTER_AREA;
    warp_desc.width = 320;
    warp_desc.height = 160;
    warp_desc.format = GPST_FORMAT_RGB;

    gpst_decode_desc decode = GPST_ZERO; /* PNM, PAM and .npy, too; for other kinds a DECODE stage takes a function */
    decode.codec = GPST_CODEC_AUTO;      /* nvJPEG, where there is one and it pays; EXACT: the same bytes everywhere */
    gpst_encode_desc encode = GPST_ZERO;
    encode.codec = GPST_CODEC_AUTO;
    encode.jpeg.quality = 85;
    encode.jpeg.chroma = GPST_FORMAT_JPEG_420;

    gpst_context* context = NULL;
    gpst_warp* warp = NULL;
    gpst_pipeline* pipeline = NULL;
    gpst_stage_desc stages[5];
    gpst_pipeline_desc desc = GPST_ZERO;
    desc.stages = stages;
    desc.n_stages = 5;
    desc.source = next_file;
    desc.source_user_data = argv + 2;
    desc.n_items_expected = (uint64_t)argc - 2; /* AUTO asks whether what is left is worth opening nvJPEG */
    desc.sink = report;
    gpst_result result = gpst_context_create(NULL, &context);
    if (!GPST_FAILED(result))
        result = gpst_warp_create(&warp_desc, &warp);
    gpst_stage_read(&stages[0]);
    gpst_stage_decode(&stages[1], 0, &decode);
    gpst_stage_warp(&stages[2], 0, 1, warp);
    gpst_stage_encode(&stages[3], 1, &encode, name_file, argv[1]);
    gpst_stage_write(&stages[4]);
    if (!GPST_FAILED(result))
        result = gpst_pipeline_create(context, &desc, &pipeline);
    if (!GPST_FAILED(result))
        result = gpst_pipeline_run(pipeline);
    if (GPST_FAILED(result))
        fprintf(stderr, "%s\n", gpst_last_reason());
    gpst_pipeline_destroy(pipeline);
    gpst_warp_destroy(warp);
    gpst_context_destroy(context);
    return result == GPST_OK ? 0 : 1;
}
