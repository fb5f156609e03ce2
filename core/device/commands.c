/* core/device/commands.c -- command lists: made, compared, put on a stream. Knows no kernel and no graph. */
#include "../base/platform_internal.h"

#include "commands_internal.h"

#include <string.h>

typedef enum gpsti_command_kind {
    GPSTI_COMMAND_COPY = 1,
    GPSTI_COMMAND_ROWS = 2,
    GPSTI_COMMAND_FILL = 3,
    GPSTI_COMMAND_LAUNCH = 4
} gpsti_command_kind;

/* Behind a LAUNCH its arguments follow, rounded up to 8 bytes, and its lists. */
typedef struct gpsti_command {
    uint32_t kind;
    uint32_t n_bytes; /* of all of it: where the next one begins */
    gpsti_copied_rows rows; /* COPY, FILL: dst, src and row_bytes alone */
    int32_t value;          /* FILL */
    uint32_t tag;
    uint64_t kernel;        /* LAUNCH, and what follows: a gpsti_kernel */
    uint64_t exec_bytes;
    uint32_t n_threads, args_bytes;
} gpsti_command;

GPSTI_STATIC_ASSERT(sizeof(gpsti_command) % 8 == 0, "what follows a command is aligned to 8 bytes");

#define GPSTI_COMMANDS_FIRST_BYTES 4096

/* ---- the list ------------------------------------------------------------------------ */

GPSTI_INTERN void gpsti_commands_free(gpsti_commands* commands) {
    gpsti_free(commands->host, commands->data, commands->capacity);
    commands->data = NULL;
    commands->capacity = 0;
    gpsti_commands_reset(commands);
}

GPSTI_INTERN void gpsti_commands_reset(gpsti_commands* commands) {
    commands->n_bytes = 0;
    commands->n = 0;
    commands->tag = 0;
    commands->result = GPST_OK;
    commands->in_use = false;
}

GPSTI_INTERN gpst_result gpsti_commands_copy(const gpsti_commands* from, gpsti_commands* to) {
    memset(to, 0, sizeof *to);
    to->host = from->host;
    if (from->n_bytes == 0)
        return GPST_OK;
    to->data = (uint8_t*)gpsti_alloc(from->host, from->n_bytes);
    if (!to->data)
        return GPST_ERROR_MEMORY;
    memcpy(to->data, from->data, from->n_bytes);
    to->n_bytes = to->capacity = from->n_bytes;
    to->n = from->n;
    return GPST_OK;
}

GPSTI_INTERN bool gpsti_commands_are_equal(const gpsti_commands* a, const gpsti_commands* b) {
    return a->n_bytes == b->n_bytes && (a->n_bytes == 0 || memcmp(a->data, b->data, a->n_bytes) == 0);
}

GPSTI_PRIVATE gpst_result gpsti_commands_grow(gpsti_commands* commands, size_t n_bytes) {
    size_t capacity = commands->capacity ? commands->capacity : GPSTI_COMMANDS_FIRST_BYTES;
    while (capacity < n_bytes)
        capacity *= 2;
    uint8_t* const data = (uint8_t*)gpsti_alloc(commands->host, capacity);
    if (!data)
        return GPST_ERROR_MEMORY;
    if (commands->n_bytes)
        memcpy(data, commands->data, commands->n_bytes);
    gpsti_free(commands->host, commands->data, commands->capacity);
    commands->data = data;
    commands->capacity = capacity;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_commands_reserve(gpsti_commands* commands, size_t n_bytes) {
    return commands->capacity >= n_bytes ? GPST_OK : gpsti_commands_grow(commands, n_bytes);
}

/* Room for one more with more_bytes behind it, zeroed but for those; NULL: no memory. */
GPSTI_PRIVATE gpsti_command* gpsti_commands_add(gpsti_commands* commands, gpsti_command_kind kind, size_t more_bytes) {
    const size_t at = commands->n_bytes, bytes = sizeof(gpsti_command) + more_bytes;
    if (!GPST_FAILED(commands->result) && bytes > UINT32_MAX)
        commands->result = gpsti_fail(GPST_ERROR_OVERFLOW, "a command of %zu bytes: must fit into 32 bits", bytes);
    if (!GPST_FAILED(commands->result))
        commands->result = gpsti_commands_reserve(commands, at + bytes);
    if (GPST_FAILED(commands->result))
        return NULL;
    gpsti_command* const command = (gpsti_command*)(void*)(commands->data + at);
    memset(command, 0, sizeof *command);
    command->kind = (uint32_t)kind;
    command->n_bytes = (uint32_t)bytes;
    command->tag = commands->tag;
    commands->n_bytes += bytes;
    commands->n++;
    return command;
}

/* ---- one more ------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_commands_add_copy(gpsti_commands* commands, void* dst, const void* src, size_t bytes) {
    gpsti_command* const command = gpsti_commands_add(commands, GPSTI_COMMAND_COPY, 0);
    if (!command)
        return commands->result;
    command->rows.dst = dst;
    command->rows.src = src;
    command->rows.row_bytes = bytes;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_commands_add_rows(gpsti_commands* commands, const gpsti_copied_rows* rows) {
    gpsti_command* const command = gpsti_commands_add(commands, GPSTI_COMMAND_ROWS, 0);
    if (command)
        command->rows = *rows;
    return commands->result;
}

GPSTI_INTERN gpst_result gpsti_commands_add_fill(gpsti_commands* commands, void* dst, int value, size_t bytes) {
    gpsti_command* const command = gpsti_commands_add(commands, GPSTI_COMMAND_FILL, 0);
    if (!command)
        return commands->result;
    command->rows.dst = dst;
    command->rows.row_bytes = bytes;
    command->value = value;
    return GPST_OK;
}

GPSTI_PRIVATE size_t gpsti_commands_round(size_t bytes) { return (bytes + 7) & ~(size_t)7; }

GPSTI_INTERN gpst_result gpsti_commands_add_launch(gpsti_commands* commands, const gpsti_kernel* kernel,
                                                   const void* args, size_t args_bytes, const gpsti_exec* exec) {
    GPSTI_ALIGNAS(16) unsigned char own[GPSTI_ARGS_BYTES];
    gpsti_lists lists = {NULL, 0, false};
    const size_t room = gpsti_commands_round(args_bytes);
    if (args_bytes > sizeof own)
        commands->result = gpsti_fail(GPST_ERROR_ARGUMENT, "args_bytes=%zu: must be at most %d", args_bytes,
                                      GPSTI_ARGS_BYTES);
    if (GPST_FAILED(commands->result))
        return commands->result;
    memset(own, 0, sizeof own);
    if (args_bytes)
        memcpy(own, args, args_bytes);
    if (kernel->lists)
        kernel->lists(own, &lists);
    gpsti_command* const command = gpsti_commands_add(commands, GPSTI_COMMAND_LAUNCH, room + lists.n_bytes);
    if (!command)
        return commands->result;
    uint8_t* const behind = (uint8_t*)(command + 1);
    lists.room = behind + room;
    lists.n_bytes = 0;
    if (kernel->lists)
        kernel->lists(own, &lists);
    if (room)
        memcpy(behind, own, room);
    command->kernel = (uint64_t)(uintptr_t)kernel;
    command->args_bytes = (uint32_t)args_bytes;
    command->n_threads = exec ? exec->n_threads : 1;
    command->exec_bytes = exec ? exec->bytes : 0;
    return GPST_OK;
}

/* ---- put on a stream -------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_commands_put_launch(const gpsti_command* command, gpsti_stream* stream) {
    GPSTI_ALIGNAS(16) unsigned char args[GPSTI_ARGS_BYTES];
    const gpsti_kernel* const kernel = (const gpsti_kernel*)(uintptr_t)command->kernel;
    const uint8_t* const behind = (const uint8_t*)(command + 1);
    gpsti_lists lists = {NULL, 0, true};
    gpsti_exec exec;
    lists.room = (uint8_t*)(uintptr_t)behind + gpsti_commands_round(command->args_bytes);
    memcpy(args, behind, command->args_bytes);
    if (kernel->lists)
        kernel->lists(args, &lists);
    exec.n_threads = command->n_threads;
    exec.bytes = command->exec_bytes;
    return stream->device->i->launch(stream, kernel, args, command->args_bytes, &exec);
}

GPSTI_PRIVATE gpst_result gpsti_commands_put_one(const gpsti_command* command, gpsti_stream* stream) {
    const gpsti_backend_i* const i = stream->device->i;
    const gpsti_copied_rows* const rows = &command->rows;
    switch ((gpsti_command_kind)command->kind) {
    case GPSTI_COMMAND_COPY:
        return i->copy(stream, GPSTI_COPY_ANY, rows->dst, rows->src, rows->row_bytes);
    case GPSTI_COMMAND_ROWS:
        return i->copy_rows(stream, rows->dst, rows->dst_pitch_bytes, rows->src, rows->src_pitch_bytes,
                            rows->row_bytes, rows->n_rows);
    case GPSTI_COMMAND_FILL:
        return i->memory_set(stream, rows->dst, command->value, rows->row_bytes);
    case GPSTI_COMMAND_LAUNCH:
        break;
    }
    return gpsti_commands_put_launch(command, stream);
}

GPSTI_INTERN gpst_result gpsti_commands_put(const gpsti_commands* commands, gpsti_stream* stream,
                                            uint32_t* failed_tag) {
    for (size_t at = 0; at < commands->n_bytes;) {
        const gpsti_command* const command = (const gpsti_command*)(const void*)(commands->data + at);
        const gpst_result result = gpsti_commands_put_one(command, stream);
        if (GPST_FAILED(result) && failed_tag)
            *failed_tag = command->tag;
        GPSTI_TRY(result);
        at += command->n_bytes;
    }
    return GPST_OK;
}

/* ---- hashes ------------------------------------------------------------------------------ */

/* Eight bytes at a time: it is computed for each run. */
GPSTI_PRIVATE uint64_t gpsti_commands_mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

GPSTI_INTERN void gpsti_commands_hash(const gpsti_commands* commands, uint64_t* all, uint64_t* topology) {
    *all = *topology = GPSTI_HASH_START;
    for (size_t at = 0; at < commands->n_bytes; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, commands->data + at, sizeof word);
        *all = gpsti_commands_mix(*all, word);
    }
    for (size_t at = 0; at < commands->n_bytes;) {
        const gpsti_command* const command = (const gpsti_command*)(const void*)(commands->data + at);
        *topology = gpsti_commands_mix(*topology, (uint64_t)command->n_bytes << 32 | command->kind);
        *topology = gpsti_commands_mix(*topology, command->kernel);
        at += command->n_bytes;
    }
}
