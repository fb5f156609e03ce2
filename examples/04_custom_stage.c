/* examples/04_custom_stage.c -- stages of your own: one that runs for many frames at once, and one that
   runs for one frame at a time in input order, because it remembers the frame before.

   cc -std=c11 -O2 -I. examples/04_custom_stage.c -o custom_stage -pthread
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 320, HEIGHT = 200, N_FRAMES = 200 };

typedef struct camera {
    unsigned char pixels[WIDTH * HEIGHT];
} camera;

/* A bright bar that moves one column a frame. The pixels are copied before the next call. */
static gpst_result next_frame(void* user_data, uint64_t index, gpst_input* out) {
    camera* self = (camera*)user_data;
    if (index == N_FRAMES)
        return GPST_END;
    memset(self->pixels, 20, sizeof self->pixels);
    for (int y = 0; y < HEIGHT; y++)
        self->pixels[y * WIDTH + (int)index] = 220;
    out->frame.data = self->pixels;
    out->frame.width = WIDTH;
    out->frame.height = HEIGHT;
    out->frame.format = GPST_FORMAT_GRAY;
    return GPST_OK;
}

/* Any number of frames at once: so it keeps nothing. Makes the item's output from its input. */
static gpst_result threshold(void* user_data, gpst_task* task) {
    const gpst_image* input = &task->item->sets[0].pictures[0];
    gpst_image output;
    (void)user_data;
    const gpst_result result = gpst_task_set_picture(task, 1, 0, input, &output);
    for (size_t i = 0; i < (size_t)WIDTH * HEIGHT && !GPST_FAILED(result); i++)
        ((unsigned char*)output.data)[i] = ((const unsigned char*)input->data)[i] > 128 ? 255 : 0;
    return result;
}

typedef struct motion {
    unsigned char before[WIDTH * HEIGHT];
    uint64_t next_index, out_of_order, changed;
} motion;

/* Ordered, so one frame at a time: it needs no lock. */
static gpst_result count_motion(void* user_data, gpst_task* task) {
    motion* self = (motion*)user_data;
    const unsigned char* now = (const unsigned char*)task->item->sets[1].pictures[0].data;
    self->out_of_order += task->item->index != self->next_index++;
    for (size_t i = 0; i < sizeof self->before; i++)
        self->changed += now[i] != self->before[i];
    memcpy(self->before, now, sizeof self->before);
    return GPST_OK;
}

int main(void) {
    static camera eye;
    static motion memory;
    gpst_stage_desc stages[2] = GPST_ZERO;
    stages[0].kind = GPST_STAGE_HOST;
    stages[0].name = "threshold";
    stages[0].func = threshold;
    stages[1].kind = GPST_STAGE_HOST;
    stages[1].name = "motion";
    stages[1].func = count_motion;
    stages[1].user_data = &memory;
    stages[1].ordered = true;

    gpst_context_desc context_desc = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_pipeline* pipeline = NULL;
    desc.stages = stages;
    desc.n_stages = 2;
    desc.source = next_frame;
    desc.source_user_data = &eye;
    gpst_result result = gpst_context_create(&context_desc, &context);
    if (!GPST_FAILED(result))
        result = gpst_pipeline_create(context, &desc, &pipeline);
    if (!GPST_FAILED(result))
        result = gpst_pipeline_run(pipeline);
    if (GPST_FAILED(result))
        fprintf(stderr, "%s\n", gpst_last_reason());
    gpst_pipeline_destroy(pipeline);
    gpst_context_destroy(context);

    /* The bar appears once, then goes from one column to the next. */
    const uint64_t expected = (uint64_t)HEIGHT * (1 + 2 * (N_FRAMES - 1));
    printf("%llu frames, %llu out of order, %llu pixels changed, %llu expected\n",
           (unsigned long long)memory.next_index, (unsigned long long)memory.out_of_order,
           (unsigned long long)memory.changed, (unsigned long long)expected);
    return result == GPST_OK && memory.out_of_order == 0 && memory.changed == expected ? 0 : 1;
}
