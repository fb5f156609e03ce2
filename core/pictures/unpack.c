/* core/pictures/unpack.c -- what PNG files have packed beside their pixels: zlib's format (RFC 1950, 1951), and the hex
   digits of ImageMagick's raw profiles. For small data: it decodes bit by bit. */
#include "../base/platform_internal.h"

#include "metadata_internal.h"

#include <string.h>

#define GPSTI_INFLATE_RATIO 1032 /* bytes that deflate packs into one at most */
#define GPSTI_INFLATE_BITS 15    /* of a code at most */

/* Codes of a block by their lengths: how many there are of each, and what they stand for, in order. */
typedef struct gpsti_codes {
    uint16_t counts[GPSTI_INFLATE_BITS + 1];
    uint16_t symbols[288];
} gpsti_codes;

typedef struct gpsti_inflate {
    const uint8_t *at, *end;
    uint32_t bits, n_bits; /* taken from the file, and not used yet */
    uint8_t* out;
    size_t bytes, room;
    bool failed; /* the data end too early, or are wrong */
    gpsti_codes literals, distances;
} gpsti_inflate;

GPSTI_PRIVATE uint32_t gpsti_inflate_bits(gpsti_inflate* self, uint32_t n) {
    while (self->n_bits < n) {
        if (self->at == self->end) {
            self->failed = true;
            return 0;
        }
        self->bits |= (uint32_t)*self->at++ << self->n_bits;
        self->n_bits += 8;
    }
    const uint32_t value = self->bits & (((uint32_t)1 << n) - 1);
    self->bits >>= n;
    self->n_bits -= n;
    return value;
}

/* Codes of one length follow one another; those of the next begin at twice the one behind the last. */
GPSTI_PRIVATE uint32_t gpsti_inflate_symbol(gpsti_inflate* self, const gpsti_codes* codes) {
    uint32_t code = 0, first = 0, index = 0;
    for (uint32_t length = 1; length <= GPSTI_INFLATE_BITS && !self->failed; length++) {
        code |= gpsti_inflate_bits(self, 1);
        const uint32_t n = codes->counts[length];
        if (code < first + n)
            return codes->symbols[index + (code - first)];
        index += n;
        first = (first + n) << 1;
        code <<= 1;
    }
    self->failed = true;
    return 0;
}

/* False: there are more codes than fit. */
GPSTI_PRIVATE bool gpsti_inflate_make(gpsti_codes* codes, const uint8_t* lengths, uint32_t n) {
    uint16_t next[GPSTI_INFLATE_BITS + 2];
    int32_t left = 1;
    memset(codes->counts, 0, sizeof codes->counts);
    for (uint32_t i = 0; i < n; i++)
        codes->counts[lengths[i]]++;
    codes->counts[0] = 0;
    next[1] = 0;
    for (uint32_t length = 1; length <= GPSTI_INFLATE_BITS; length++) {
        left = 2 * left - codes->counts[length];
        if (left < 0)
            return false;
        next[length + 1] = (uint16_t)(next[length] + codes->counts[length]);
    }
    for (uint32_t i = 0; i < n; i++)
        if (lengths[i] > 0)
            codes->symbols[next[lengths[i]]++] = (uint16_t)i;
    return true;
}

GPSTI_PRIVATE bool gpsti_inflate_make_fixed(gpsti_inflate* self) {
    uint8_t lengths[288];
    for (uint32_t i = 0; i < 288; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    if (!gpsti_inflate_make(&self->literals, lengths, 288))
        return false;
    memset(lengths, 5, 30);
    return gpsti_inflate_make(&self->distances, lengths, 30);
}

/* The lengths of both kinds of codes, which are packed themselves. */
GPSTI_PRIVATE bool gpsti_inflate_make_dynamic(gpsti_inflate* self) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[288 + 32];
    const uint32_t n_literals = 257 + gpsti_inflate_bits(self, 5), n_distances = 1 + gpsti_inflate_bits(self, 5);
    const uint32_t n = 4 + gpsti_inflate_bits(self, 4), total = n_literals + n_distances;
    memset(lengths, 0, sizeof lengths);
    for (uint32_t i = 0; i < n; i++)
        lengths[order[i]] = (uint8_t)gpsti_inflate_bits(self, 3);
    if (self->failed || n_literals > 286 || !gpsti_inflate_make(&self->literals, lengths, 19))
        return false;
    for (uint32_t i = 0; i < total;) {
        const uint32_t symbol = gpsti_inflate_symbol(self, &self->literals);
        if (self->failed || (symbol == 16 && i == 0))
            return false;
        const uint32_t repeats = symbol < 16    ? 1
                                 : symbol == 16 ? 3 + gpsti_inflate_bits(self, 2)
                                 : symbol == 17 ? 3 + gpsti_inflate_bits(self, 3)
                                                : 11 + gpsti_inflate_bits(self, 7);
        if (repeats > total - i)
            return false;
        memset(lengths + i, symbol < 16 ? (int)symbol : symbol == 16 ? lengths[i - 1] : 0, repeats);
        i += repeats;
    }
    return gpsti_inflate_make(&self->literals, lengths, n_literals) &&
           gpsti_inflate_make(&self->distances, lengths + n_literals, n_distances);
}

/* A length and a distance: bytes once more that came before. */
GPSTI_PRIVATE bool gpsti_inflate_copy(gpsti_inflate* self, uint32_t symbol) {
    static const uint16_t lengths[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                         31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    if (symbol > 285)
        return false;
    const uint32_t more = symbol < 265 || symbol == 285 ? 0 : (symbol - 261) / 4;
    const size_t length = lengths[symbol - 257] + (size_t)gpsti_inflate_bits(self, more);
    const uint32_t away = gpsti_inflate_symbol(self, &self->distances);
    if (away > 29)
        return false;
    const uint32_t away_more = away < 4 ? 0 : away / 2 - 1;
    const size_t base = away < 4 ? away : (size_t)(2 + away % 2) << away_more;
    const size_t distance = 1 + base + gpsti_inflate_bits(self, away_more);
    if (self->failed || distance > self->bytes || length > self->room - self->bytes)
        return false;
    uint8_t* const to = self->out + self->bytes;
    const uint8_t* const from = to - distance;
    for (size_t i = 0; i < length; i++) /* they may overlap: the first ones are then copied again */
        to[i] = from[i];
    self->bytes += length;
    return true;
}

GPSTI_PRIVATE bool gpsti_inflate_coded(gpsti_inflate* self) {
    for (;;) {
        const uint32_t symbol = gpsti_inflate_symbol(self, &self->literals);
        if (self->failed)
            return false;
        if (symbol == 256)
            return true;
        if (symbol > 256) {
            if (!gpsti_inflate_copy(self, symbol))
                return false;
        } else if (self->bytes == self->room) {
            return false;
        } else {
            self->out[self->bytes++] = (uint8_t)symbol;
        }
    }
}

/* From the next byte on: how many, and that number inverted. */
GPSTI_PRIVATE bool gpsti_inflate_stored(gpsti_inflate* self) {
    self->bits = self->n_bits = 0;
    const uint32_t bytes = gpsti_inflate_bits(self, 16), inverted = gpsti_inflate_bits(self, 16);
    if (self->failed || (bytes ^ inverted) != 0xffff || bytes > (size_t)(self->end - self->at) ||
        bytes > self->room - self->bytes)
        return false;
    memcpy(self->out + self->bytes, self->at, bytes);
    self->at += bytes;
    self->bytes += bytes;
    return true;
}

GPSTI_PRIVATE bool gpsti_inflate_blocks(gpsti_inflate* self) {
    for (bool last = false; !last;) {
        last = gpsti_inflate_bits(self, 1) != 0;
        const uint32_t kind = gpsti_inflate_bits(self, 2);
        if (self->failed || kind == 3)
            return false;
        if (kind == 0 ? !gpsti_inflate_stored(self)
                      : !(kind == 1 ? gpsti_inflate_make_fixed(self) : gpsti_inflate_make_dynamic(self)) ||
                            !gpsti_inflate_coded(self))
            return false;
    }
    return true;
}

/* Adler's sum of what came out stands behind it. */
GPSTI_PRIVATE bool gpsti_inflate_is_whole(const gpsti_inflate* self) {
    uint32_t low = 1, high = 0;
    for (size_t i = 0; i < self->bytes;) {
        const size_t end = self->bytes - i < 5552 ? self->bytes : i + 5552; /* more would not fit into high */
        for (; i < end; i++) {
            low += self->out[i];
            high += low;
        }
        low %= 65521;
        high %= 65521;
    }
    return self->end - self->at >= 4 && (uint32_t)(self->at[0] << 8 | self->at[1]) == high &&
           (uint32_t)(self->at[2] << 8 | self->at[3]) == low;
}

/* Into room for that many bytes; 0: damaged, or there are more. */
GPSTI_PRIVATE size_t gpsti_inflate_run(gpsti_segment packed, void* out, size_t room) {
    gpsti_inflate self;
    if (packed.bytes < 6 || (packed.data[0] & 15) != 8 || (packed.data[1] & 32) ||
        (packed.data[0] << 8 | packed.data[1]) % 31 != 0)
        return 0;
    memset(&self, 0, sizeof self);
    self.at = packed.data + 2;
    self.end = packed.data + packed.bytes;
    self.out = (uint8_t*)out;
    self.room = room;
    return gpsti_inflate_blocks(&self) && gpsti_inflate_is_whole(&self) ? self.bytes : 0;
}

/* ---- raw profiles ------------------------------------------------------------------------------------------------ */

GPSTI_PRIVATE int gpsti_hex_digit(uint8_t c) {
    const int letter = c | 0x20;
    return c >= '0' && c <= '9' ? c - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* A line break, a name, a line break, how many bytes there are, and their digits, in lines. out may be where text is;
   0: damaged. */
GPSTI_PRIVATE size_t gpsti_hex_run(gpsti_segment text, uint8_t* out) {
    const uint8_t *at = text.data, *const end = text.data + text.bytes;
    size_t said = 0, n_digits = 0;
    uint32_t value = 0;
    for (int i = 0; i < 2; i++) {
        const void* const line = memchr(at, '\n', (size_t)(end - at));
        at = line ? (const uint8_t*)line + 1 : end;
    }
    while (at < end && *at == ' ')
        at++;
    for (; at < end && *at >= '0' && *at <= '9' && said < text.bytes; at++)
        said = said * 10 + (size_t)(*at - '0');
    for (; at < end && n_digits < 2 * said; at++) {
        const int digit = gpsti_hex_digit(*at);
        if (digit < 0 && *at != '\n' && *at != '\r' && *at != ' ')
            return 0;
        if (digit < 0)
            continue;
        value = value << 4 | (uint32_t)digit;
        if (++n_digits % 2 == 0)
            out[n_digits / 2 - 1] = (uint8_t)value;
    }
    return n_digits == 2 * said ? said : 0;
}

GPSTI_INTERN void gpsti_unpack(gpsti_segment packed, uint32_t packing, size_t most_bytes, gpsti_unpacked* out) {
    const size_t least = packing & GPSTI_PACKED_ZLIB ? (most_bytes + GPSTI_INFLATE_RATIO - 1) / GPSTI_INFLATE_RATIO : 0;
    gpsti_host host;
    memset(out, 0, sizeof *out);
    if (!packing) {
        if (packed.bytes <= most_bytes)
            out->segment = packed;
        return;
    }
    if (most_bytes == 0 || (!(packing & GPSTI_PACKED_ZLIB) && packed.bytes > most_bytes))
        return;
    out->memory_bytes = !least ? packed.bytes : packed.bytes < least ? packed.bytes * GPSTI_INFLATE_RATIO : most_bytes;
    gpsti_host_init(&host, NULL, NULL);
    out->memory = gpsti_alloc(&host, out->memory_bytes);
    if (!out->memory)
        return;
    if (packing & GPSTI_PACKED_ZLIB) {
        packed.bytes = gpsti_inflate_run(packed, out->memory, out->memory_bytes);
        packed.data = (const uint8_t*)out->memory;
    }
    out->segment.data = (const uint8_t*)out->memory;
    out->segment.bytes = packing & GPSTI_PACKED_HEX ? gpsti_hex_run(packed, (uint8_t*)out->memory) : packed.bytes;
}

GPSTI_INTERN void gpsti_unpack_free(gpsti_unpacked* self) {
    gpsti_host host;
    gpsti_host_init(&host, NULL, NULL);
    if (self->memory)
        gpsti_free(&host, self->memory, self->memory_bytes);
    memset(self, 0, sizeof *self);
}
