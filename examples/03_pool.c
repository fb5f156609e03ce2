/* examples/03_pool.c -- big buffers allocated once and used again, under a cap that says no instead of
   growing.

   cc -std=c11 -O2 -I. examples/03_pool.c -o pool -pthread
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <stdio.h>
#include <string.h>

enum { FRAME_BYTES = 4 * 1024 * 1024, N_FRAMES = 4 };

int main(void) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_pool_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_pool* pool = NULL;
    desc.max_bytes = (uint64_t)N_FRAMES * FRAME_BYTES;
    gpst_result result = gpst_context_create(&context_desc, &context);
    if (!GPST_FAILED(result))
        result = gpst_pool_create(context, &desc, &pool);

    gpst_buffer frames[N_FRAMES], one_more;
    for (int round = 0; round < 100 && !GPST_FAILED(result); round++) {
        int n = 0;
        while (n < N_FRAMES && !GPST_FAILED(result)) {
            result = gpst_pool_acquire(pool, FRAME_BYTES, GPST_FOREVER, &frames[n]);
            if (!GPST_FAILED(result))
                memset(frames[n++].data, round, FRAME_BYTES);
        }
        /* The cap is reached: without waiting, the answer is no. */
        if (round == 0 && !GPST_FAILED(result))
            printf("a fifth one: %s\n", gpst_result_name(gpst_pool_acquire(pool, FRAME_BYTES, 0, &one_more)));
        while (n > 0)
            gpst_pool_release(pool, &frames[--n]);
    }
    if (GPST_FAILED(result)) {
        fprintf(stderr, "%s\n", gpst_last_reason());
    } else {
        gpst_pool_info info;
        gpst_pool_query_info(pool, &info);
        printf("%llu buffers lent, %llu allocated; pages: %llu MiB huge, %llu MiB small%s%s\n",
               (unsigned long long)info.acquires, (unsigned long long)info.allocations,
               (unsigned long long)(info.hugetlb_bytes + info.thp_bytes) >> 20,
               (unsigned long long)info.small_bytes >> 20, info.pages_reason[0] ? ": " : "",
               info.pages_reason);
    }
    gpst_pool_destroy(pool);
    gpst_context_destroy(context);
    return GPST_FAILED(result) ? 1 : 0;
}
