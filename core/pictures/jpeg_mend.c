/* core/pictures/jpeg_mend.c -- a copy of a JPEG file without the faults that do no harm, so that the strictest decoder
   takes it. Whether the rest is sound is for that decoder to say. */
#include "../base/platform_internal.h"

#include "jpeg_internal.h"

#include <string.h>

/* Some writers fill their files up. More zeros than that, or other bytes, may be the rest of data that lost their step:
   those were left over by a decoder that took too few. They are all that tells of 29 in 100 changes of one byte of a
   sequential file's data; anything else tells of less than 1, and of 70 nothing does (docs/conventions.md). */
#define GPSTI_JPEG_MAX_PADDING 16

typedef struct gpsti_jpeg_copy {
    uint8_t* out;
    size_t bytes;
} gpsti_jpeg_copy;

GPSTI_PRIVATE void gpsti_jpeg_put(gpsti_jpeg_copy* copy, const uint8_t* data, size_t bytes) {
    memcpy(copy->out + copy->bytes, data, bytes);
    copy->bytes += bytes;
}

/* The segment that was put last, at `segment` of the copy. */
GPSTI_PRIVATE uint32_t gpsti_jpeg_mend_segment(uint8_t* segment, uint32_t length, bool sequential) {
    const uint32_t fault = gpsti_jpeg_segment_fault(segment, length, sequential);
    uint8_t* const parameters = segment + 2 + length - 3;
    if (fault == GPSTI_JPEG_FAULT_VERSION)
        segment[9] = 1;
    if (fault == GPSTI_JPEG_FAULT_SCAN)
        parameters[0] = 0, parameters[1] = 63, parameters[2] = 0;
    return fault;
}

/* A zero behind 0xff is part of the data. */
GPSTI_PRIVATE uint32_t gpsti_jpeg_drop_padding(gpsti_jpeg_copy* copy, size_t data_bytes) {
    size_t n = 0;
    while (n < data_bytes && n <= GPSTI_JPEG_MAX_PADDING && copy->out[copy->bytes - 1 - n] == 0)
        n++;
    if (n > GPSTI_JPEG_MAX_PADDING)
        return 0;
    if (n > 0 && n < data_bytes && copy->out[copy->bytes - 1 - n] == 0xff)
        n--;
    copy->bytes -= n;
    return n > 0 ? GPSTI_JPEG_FAULT_PADDING : 0;
}

GPSTI_INTERN gpsti_jpeg_mended gpsti_jpeg_mend(const uint8_t* data, size_t bytes, bool sequential, uint8_t* out) {
    static const uint8_t end[2] = {0xff, 0xd9};
    gpsti_jpeg_mended mended = GPST_ZERO;
    gpsti_jpeg_walk walk = gpsti_jpeg_walk_of(data, bytes);
    gpsti_jpeg_copy copy = {out, 0};
    gpsti_jpeg_put(&copy, data, 2);
    for (;;) {
        const bool in_data = walk.in_data;
        const bool found = gpsti_jpeg_next(&walk);
        const size_t data_bytes = in_data ? walk.begin - walk.from : 0;
        if (walk.cut) { /* a marker of a file that ends early, or none: data that lost their step look like some */
            mended.faults = 0;
            mended.ended = memcmp(data + bytes - 2, end, 2) == 0;
            return mended;
        }
        gpsti_jpeg_put(&copy, data + walk.from, data_bytes);
        mended.faults |= walk.n_stray > 0 ? GPSTI_JPEG_FAULT_STRAY : 0;
        mended.ended = found && walk.marker == 0xd9;
        if (mended.ended)
            mended.faults |= gpsti_jpeg_drop_padding(&copy, data_bytes);
        if (!found || mended.ended)
            break;
        gpsti_jpeg_put(&copy, data + walk.begin, 2 + (size_t)walk.length);
        if (walk.length > 0)
            mended.faults |= gpsti_jpeg_mend_segment(copy.out + copy.bytes - 2 - walk.length, walk.length, sequential);
    }
    mended.faults |= mended.ended ? 0 : GPSTI_JPEG_FAULT_NO_END;
    gpsti_jpeg_put(&copy, end, 2);
    mended.bytes = copy.bytes;
    return mended;
}

GPSTI_INTERN void gpsti_jpeg_note_mended(uint32_t faults, gpst_jpeg_note* note) {
    static const char* const names[] = {"SOS parameters", "stray bytes", "JFIF version", "bytes before the end",
                                        "missing end"};
    size_t used = 0;
    note->mended = faults != 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!(faults & 1u << i))
            continue;
        gpsti_format(note->text + used, sizeof note->text - used, "%s%s", used ? "; " : "mended: ", names[i]);
        used = strlen(note->text);
    }
}
