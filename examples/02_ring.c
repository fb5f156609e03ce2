/* examples/02_ring.c -- frames from a thread that makes them to a thread that uses them, through a ring of
   slots whose depth changes on the way. Nothing is copied and nothing is allocated between the two.

   cc -std=c11 -O2 -I. examples/02_ring.c -o ring -pthread
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { N_FRAMES = 2000, FRAME_BYTES = 64 * 1024 };

/* Fills slots in place; a full ring makes it wait. */
static void* produce(void* argument) {
    gpst_ring* ring = (gpst_ring*)argument;
    gpst_ring_slot slot;
    for (int i = 0; i < N_FRAMES && gpst_ring_acquire(ring, GPST_FOREVER, &slot) == GPST_OK; i++) {
        memset(slot.data, i & 255, FRAME_BYTES);
        slot.words[0] = (uint64_t)i; /* travels with the slot: a time stamp, say */
        gpst_ring_commit(ring, &slot);
    }
    gpst_ring_close(ring);
    return NULL;
}

int main(void) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_ring_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_ring* ring = NULL;
    desc.max_slots = 16;
    desc.depth = 2; /* or desc.adaptive: then the ring finds its depth by itself */
    desc.slot_bytes = FRAME_BYTES;
    desc.sharing = GPST_RING_SPSC; /* one thread on either side */
    gpst_result result = gpst_context_create(&context_desc, &context);
    if (!GPST_FAILED(result))
        result = gpst_ring_create(context, &desc, &ring);
    pthread_t producer;
    if (GPST_FAILED(result) || pthread_create(&producer, NULL, produce, ring) != 0) {
        fprintf(stderr, "%s\n", gpst_last_reason());
        gpst_ring_destroy(ring);
        gpst_context_destroy(context);
        return 1;
    }

    uint64_t n = 0, wrong = 0;
    gpst_ring_slot slot;
    while (gpst_ring_take(ring, GPST_FOREVER, &slot) == GPST_OK) { /* GPST_END once it is closed and empty */
        const unsigned char* bytes = (const unsigned char*)slot.data;
        wrong += slot.words[0] != n || bytes[0] != (n & 255) || bytes[FRAME_BYTES - 1] != (n & 255);
        gpst_ring_release(ring, &slot);
        if (++n == N_FRAMES / 2)
            gpst_ring_set_depth(ring, 12); /* any thread, any time */
    }
    pthread_join(producer, NULL);

    gpst_ring_info info;
    gpst_ring_query_info(ring, &info);
    printf("%llu frames taken in order, %llu wrong, depth %u, %.1f waiting on average\n",
           (unsigned long long)n, (unsigned long long)wrong, info.depth, info.mean_occupancy);
    gpst_ring_destroy(ring);
    gpst_context_destroy(context);
    return n == N_FRAMES && wrong == 0 ? 0 : 1;
}
