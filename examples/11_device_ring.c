/* examples/11_device_ring.c -- a ring of frames in device memory: a thread uploads them on its stream, two readers see
   every frame and shrink it on streams of their own. The streams wait for each other; the host waits only to check.
   The same program on a CPU.

   cc -std=c11 -O2 -I. examples/11_device_ring.c -o device_ring -pthread -lm
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 320, SIDE = 64, N_FRAMES = 60, N_SLOTS = 4, N_READERS = 2 };
#define FRAME_BYTES ((size_t)WIDTH * HEIGHT * 3)
#define SMALL_BYTES (SIDE * SIDE * 3)

static gpst_device* device;
static gpst_ring* ring;
static gpst_warp* warp;

typedef struct reader {
    gpst_ring_reader* cursor;
    int n_frames, n_wrong;
} reader;

static bool ok(gpst_result result) {
    if (GPST_FAILED(result))
        fprintf(stderr, "%s\n", gpst_last_reason()); /* this thread's */
    return !GPST_FAILED(result);
}

static void* produce(void* unused) {
    gpst_memory* frame = NULL;
    gpst_stream* stream = NULL;
    gpst_event* uploaded = NULL;
    gpst_ring_slot slot = GPST_ZERO;
    bool good = ok(gpst_memory_create(device, GPST_MEMORY_PINNED, FRAME_BYTES, &frame)) &&
                ok(gpst_stream_create(device, &stream)) && ok(gpst_event_create(device, &uploaded));
    for (int i = 0; i < N_FRAMES && good; i++) {
        good = ok(gpst_event_wait(uploaded, GPST_FOREVER)); /* the frame before: it is drawn over */
        memset(gpst_memory_data(frame), i, FRAME_BYTES);
        /* The host waits for a slot, the stream until the readers' streams are done with it. */
        good = good && ok(gpst_ring_acquire_on(ring, GPST_FOREVER, stream, &slot));
        slot.words[0] = (uint64_t)i;
        good = good && ok(gpst_copy(slot.data, gpst_memory_data(frame), FRAME_BYTES, stream)) &&
               ok(gpst_event_record(uploaded, stream)) && ok(gpst_ring_commit_on(ring, &slot, stream));
    }
    if (slot.id) /* something failed: the readers must not wait for it */
        gpst_ring_abandon(ring, &slot);
    gpst_ring_close(ring);
    gpst_stream_destroy(stream); /* when the last upload is done */
    gpst_event_destroy(uploaded);
    gpst_memory_destroy(frame);
    return unused;
}

/* A frame of one grey is that grey when it is small, too. */
static void* consume(void* argument) {
    reader* const r = (reader*)argument;
    unsigned char pixels[SMALL_BYTES];
    gpst_memory* on_device = NULL;
    gpst_stream* stream = NULL;
    gpst_image frame = GPST_ZERO, small;
    gpst_ring_slot slot;
    bool good = ok(gpst_memory_create(device, GPST_MEMORY_DEVICE, SMALL_BYTES, &on_device)) &&
                ok(gpst_stream_create(device, &stream));
    frame.width = WIDTH;
    frame.height = HEIGHT;
    frame.format = GPST_FORMAT_RGB;
    gpst_warp_query_output(warp, &small);
    small.data = gpst_memory_data(on_device);
    while (good && gpst_ring_reader_take(r->cursor, GPST_FOREVER, stream, &slot) == GPST_OK) {
        const int grey = (int)slot.words[0];
        frame.data = slot.data;
        good = ok(gpst_warp_enqueue(warp, &frame, &small, 1, stream)); /* behind the upload */
        /* The next upload into this slot will wait for the warp, not for the copy below. */
        good = ok(gpst_ring_reader_release(r->cursor, &slot, stream)) && good;
        good = good && ok(gpst_copy(pixels, small.data, SMALL_BYTES, stream)) && ok(gpst_stream_synchronize(stream));
        for (size_t i = 0; i < SMALL_BYTES && good; i++)
            r->n_wrong += pixels[i] != grey;
        r->n_wrong += grey != r->n_frames++; /* every frame, in order */
    }
    gpst_ring_reader_destroy(r->cursor); /* nobody waits for this reader any more */
    gpst_stream_destroy(stream);
    gpst_memory_destroy(on_device);
    return NULL;
}

int main(int argc, char** argv) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_ring_desc desc = GPST_ZERO;
    gpst_warp_desc warp_desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_context_info info;
    pthread_t threads[1 + N_READERS];
    reader readers[N_READERS] = GPST_ZERO;
    context_desc.backend = argc > 1 ? argv[1] : NULL;
    warp_desc.map = GPST_MAP_RESIZE;
    warp_desc.width = warp_desc.height = SIDE;
    warp_desc.format = GPST_FORMAT_RGB;
    desc.max_slots = N_SLOTS;
    desc.slot_bytes = FRAME_BYTES;
    desc.memory = GPST_MEMORY_DEVICE;
    desc.max_readers = N_READERS; /* each sees every frame; with 0 the consumers share them: gpst_ring_take_on */
    bool good = ok(gpst_context_create(&context_desc, &context)) && ok(gpst_warp_create(&warp_desc, &warp)) &&
                ok(gpst_ring_create(context, &desc, &ring));
    device = gpst_context_device(context);
    for (int k = 0; k < N_READERS; k++) /* before the first frame: they miss none */
        good = good && ok(gpst_ring_reader_create(ring, &readers[k].cursor));
    int n = 0, n_wrong = 0;
    while (good && n <= N_READERS &&
           pthread_create(&threads[n], NULL, n ? consume : produce, &readers[n ? n - 1 : 0]) == 0)
        n++;
    if (n <= N_READERS)
        gpst_ring_close(ring);
    while (n > 0)
        pthread_join(threads[--n], NULL);
    for (int k = 0; k < N_READERS; k++)
        n_wrong += readers[k].n_wrong + (readers[k].n_frames != N_FRAMES);
    gpst_context_query_info(context, &info);
    printf("%d frames for each of %d readers, %d wrong, on %s\n", N_FRAMES, N_READERS, n_wrong,
           good ? info.backend : "-");
    gpst_ring_destroy(ring);
    gpst_warp_destroy(warp);
    gpst_context_destroy(context);
    return n_wrong > 0 ? 1 : 0;
}
