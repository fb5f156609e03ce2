/* core/memory/blocks.c -- the table of a context's pieces of memory: entries taken, put back, and set aside for those
   who will not allocate. */
#include "../base/platform_internal.h"

#include "memory_internal.h"

#include <string.h>

GPSTI_INTERN void gpsti_blocks_put(gpsti_memory* memory, uint32_t index) {
    memset(&memory->blocks[index], 0, sizeof memory->blocks[index]);
    memory->blocks[index].next = memory->unused;
    memory->unused = index;
}

GPSTI_PRIVATE gpst_result gpsti_blocks_grow(gpsti_memory* memory, uint32_t n) {
    gpsti_host* const host = &memory->context->host;
    gpsti_memory_block* const blocks = (gpsti_memory_block*)gpsti_alloc(host, n * sizeof *blocks);
    if (!blocks)
        return GPST_ERROR_MEMORY;
    if (memory->n_blocks)
        memcpy(blocks, memory->blocks, memory->n_blocks * sizeof *blocks);
    gpsti_free(host, memory->blocks, memory->max_blocks * sizeof *blocks);
    memory->blocks = blocks;
    memory->max_blocks = n;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_blocks_take(gpsti_memory* memory, uint32_t* index) {
    if (memory->unused == GPSTI_MEMORY_NONE && memory->n_blocks == memory->max_blocks)
        GPSTI_TRY(gpsti_blocks_grow(memory, memory->max_blocks ? memory->max_blocks * 2 : 8));
    if (memory->unused == GPSTI_MEMORY_NONE)
        gpsti_blocks_put(memory, memory->n_blocks++);
    *index = memory->unused;
    memory->unused = memory->blocks[*index].next;
    memory->blocks[*index].state = GPSTI_MEMORY_MAKING;
    return GPST_OK;
}

GPSTI_PRIVATE uint32_t gpsti_blocks_n_used(const gpsti_memory* memory) {
    uint32_t n = memory->n_blocks;
    for (uint32_t i = memory->unused; i != GPSTI_MEMORY_NONE; i = memory->blocks[i].next)
        n--;
    return n;
}

/* Beside what is in use now, whoever's that is. */
GPSTI_INTERN gpst_result gpsti_blocks_set_aside(gpsti_memory* memory, uint32_t n) {
    gpst_result result = GPST_OK;
    gpsti_mutex_lock(&memory->mutex);
    const uint32_t wanted = gpsti_blocks_n_used(memory) + memory->n_set_aside + n;
    if (wanted > memory->max_blocks)
        result = gpsti_blocks_grow(memory, wanted);
    memory->n_set_aside += GPST_FAILED(result) ? 0 : n;
    gpsti_mutex_unlock(&memory->mutex);
    return result;
}

GPSTI_INTERN void gpsti_blocks_let_go(gpsti_memory* memory, uint32_t n) {
    gpsti_mutex_lock(&memory->mutex);
    memory->n_set_aside -= n;
    gpsti_mutex_unlock(&memory->mutex);
}

GPSTI_INTERN void gpsti_blocks_free(gpsti_memory* memory) {
    gpsti_free(&memory->context->host, memory->blocks, memory->max_blocks * sizeof *memory->blocks);
    memory->blocks = NULL;
    memory->n_blocks = memory->max_blocks = 0;
    memory->unused = GPSTI_MEMORY_NONE;
}

GPSTI_INTERN void gpsti_blocks_trim(gpsti_memory* memory) {
    if (gpsti_blocks_n_used(memory) == 0 && memory->n_set_aside == 0)
        gpsti_blocks_free(memory);
}
