/* kernels/warp/warp_hot_internal.h -- the shapes of work that the CPU is asked for most, in vector instructions: three
   channels by bilinear samples from packed bytes, as interleaved bytes (views) and as planes of floats (tensors),
   and from NV12 as planes of floats. A template: warp_cpu.c includes it once for each level that has such
   instructions. Gives the bits of warp_pixel_internal.h; obeys exact_internal.h. */
/* amalgamate: template */
/* Set by the includer beside what warp_rows_internal.h needs, unset at the end:
   GPSTI_HOT_SIGNS(v)                non-zero when an integer of v is negative
   GPSTI_HOT_JOIN(row, at)           hot_pair at at, at + 4, ...: a lane each
   GPSTI_HOT_WINDOWS(row, at)        16 bytes from row + at[0], row + at[1], ...: a lane each
   GPSTI_HOT_GATHER(p, at)           32 bits from each p + at
   GPSTI_HOT_WIDEN(p)                a step of bytes as integers
   GPSTI_HOT_SPREAD(v)               16 bytes in every lane
   and GPSTI_ROWS(hot_close)(v, out), which puts the first 12 bytes of every lane, one after the other, to out */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(sqrt)(float* values) {
    for (int k = 0; k < GPSTI_BLOCK; k += GPSTI_HOT_STEP)
        GPSTI_SIMD_OP(storeu_ps)(values + k, GPSTI_SIMD_OP(sqrt_ps)(GPSTI_SIMD_OP(loadu_ps)(values + k)));
}

/* A block's floats as bytes, or as signed ones, `shift` bits up in packed. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(round)(const float* values, bool is_signed, uint32_t shift, uint32_t* packed) {
    const GPSTI_SIMD_FLOATS most = GPSTI_SIMD_OP(set1_ps)(is_signed ? 127.0f : 255.0f);
    const GPSTI_SIMD_FLOATS least = GPSTI_SIMD_OP(set1_ps)(is_signed ? -128.0f : 0.0f);
    const __m128i up = _mm_cvtsi32_si128((int)shift);
    for (int k = 0; k < GPSTI_BLOCK; k += GPSTI_HOT_STEP) {
        const GPSTI_SIMD_FLOATS high = GPSTI_SIMD_OP(min_ps)(GPSTI_SIMD_OP(loadu_ps)(values + k), most);
        const GPSTI_SIMD_FLOATS rounded =
            GPSTI_SIMD_OP(add_ps)(GPSTI_SIMD_OP(max_ps)(high, least), GPSTI_SIMD_OP(set1_ps)(GPSTI_WARP_ROUNDER));
        const GPSTI_SIMD_INTS byte = GPSTI_SIMD_BITS(and)(
            GPSTI_SIMD_OP(sub_epi32)(GPSTI_HOT_AS_INTS(rounded), GPSTI_HOT_SET(GPSTI_WARP_ROUNDER_BITS)),
            GPSTI_HOT_SET(255));
        GPSTI_HOT_STORE(packed + k,
                        GPSTI_SIMD_BITS(or)(GPSTI_HOT_LOAD(packed + k), GPSTI_SIMD_OP(sll_epi32)(byte, up)));
    }
}

/* Left and right tap of two output pixels: 8 source bytes each. */
GPSTI_SIMD_INLINE __m128i GPSTI_ROWS(hot_pair)(const uint8_t* source, const int32_t* at) {
    const __m128i first = _mm_loadl_epi64((const __m128i*)(const void*)(source + at[0]));
    return _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(first), (const double*)(const void*)(source + at[1])));
}

/* Where in the source each pixel's 8 bytes begin; false when a tap of the block lies outside, or so near the end of its
   row that 8 bytes go past it. */
GPSTI_SIMD_INLINE bool GPSTI_ROWS(hot_offsets)(const gpsti_warp_job* job, const gpsti_places* places,
                                               int32_t* GPSTI_RESTRICT at) {
    const GPSTI_SIMD_INTS last_x = GPSTI_HOT_SET(job->source_width - 3), last_y = GPSTI_HOT_SET(job->source_height - 2);
    const GPSTI_SIMD_INTS pitch = GPSTI_HOT_SET(job->source_pitch), bytes = GPSTI_HOT_SET(job->source_pixel_bytes);
    GPSTI_SIMD_INTS outside = GPSTI_HOT_SET(0);
    for (int k = 0; k < GPSTI_BLOCK; k += GPSTI_HOT_STEP) {
        const GPSTI_SIMD_INTS x = GPSTI_HOT_LOAD(places->x + k), y = GPSTI_HOT_LOAD(places->y + k);
        const GPSTI_SIMD_INTS past =
            GPSTI_SIMD_BITS(or)(GPSTI_SIMD_OP(sub_epi32)(last_x, x), GPSTI_SIMD_OP(sub_epi32)(last_y, y));
        outside = GPSTI_SIMD_BITS(or)(outside, GPSTI_SIMD_BITS(or)(past, GPSTI_SIMD_BITS(or)(x, y)));
        const GPSTI_SIMD_INTS offset =
            GPSTI_SIMD_OP(add_epi32)(GPSTI_SIMD_OP(mullo_epi32)(y, pitch), GPSTI_SIMD_OP(mullo_epi32)(x, bytes));
        GPSTI_HOT_STORE(at + k, offset);
    }
    return !GPSTI_HOT_SIGNS(outside);
}

/* ---- bytes --------------------------------------------------------------------------
   Weights as pairs of 16 bits, 2048 - w and w. */
GPSTI_SIMD_INLINE GPSTI_SIMD_INTS GPSTI_ROWS(hot_weights)(const int32_t* weights) {
    const GPSTI_SIMD_INTS w = GPSTI_HOT_LOAD(weights);
    return GPSTI_SIMD_OP(add_epi32)(GPSTI_SIMD_OP(sub_epi32)(GPSTI_SIMD_OP(slli_epi32)(w, 16), w), GPSTI_HOT_SET(2048));
}

/* One pixel of each lane, a channel in each 32 bits; pick makes pairs of 16 bits, left and right tap, of 8 bytes. */
GPSTI_SIMD_INLINE GPSTI_SIMD_INTS GPSTI_ROWS(hot_blend)(GPSTI_SIMD_INTS above, GPSTI_SIMD_INTS below,
                                                        GPSTI_SIMD_INTS pick, GPSTI_SIMD_INTS wx, GPSTI_SIMD_INTS wy) {
    const GPSTI_SIMD_INTS eight = GPSTI_HOT_SET(8), high = GPSTI_HOT_SET(0xffff0000u);
    const GPSTI_SIMD_INTS upper =
        GPSTI_SIMD_OP(add_epi32)(GPSTI_SIMD_OP(madd_epi16)(GPSTI_SIMD_OP(shuffle_epi8)(above, pick), wx), eight);
    const GPSTI_SIMD_INTS lower =
        GPSTI_SIMD_OP(add_epi32)(GPSTI_SIMD_OP(madd_epi16)(GPSTI_SIMD_OP(shuffle_epi8)(below, pick), wx), eight);
    const GPSTI_SIMD_INTS both = GPSTI_SIMD_BITS(or)(GPSTI_SIMD_OP(srli_epi32)(upper, 4),
                                                     GPSTI_SIMD_BITS(and)(GPSTI_SIMD_OP(slli_epi32)(lower, 12), high));
    return GPSTI_SIMD_OP(srli_epi32)(
        GPSTI_SIMD_OP(add_epi32)(GPSTI_SIMD_OP(madd_epi16)(both, wy), GPSTI_HOT_SET(1 << 17)), 18);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(hot_bytes)(const gpsti_warp_job* job, const gpsti_hot_work* work) {
    const uint8_t *const above = work->above, *const below = work->below;
    const int32_t* const at = work->at;
    const int32_t count = work->count;
    uint8_t* out = gpsti_warp_output(job, work->x, work->y, 0);
    const char n = (char)job->source_pixel_bytes, c0 = (char)(job->shift[0] / 8), c1 = (char)(job->shift[1] / 8),
               c2 = (char)(job->shift[2] / 8), none = -1;
    const __m128i pick_low = _mm_setr_epi8(c0, none, (char)(c0 + n), none, c1, none, (char)(c1 + n), none, c2, none,
                                           (char)(c2 + n), none, none, none, none, none);
    const GPSTI_SIMD_INTS even = GPSTI_HOT_SPREAD(pick_low);
    const GPSTI_SIMD_INTS odd =
        GPSTI_HOT_SPREAD(_mm_add_epi8(pick_low, _mm_setr_epi8(8, 0, 8, 0, 8, 0, 8, 0, 8, 0, 8, 0, 0, 0, 0, 0)));
    const GPSTI_SIMD_INTS packed =
        GPSTI_HOT_SPREAD(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    for (int32_t k = 0; k < count; k += GPSTI_HOT_STEP, out += 3 * GPSTI_HOT_STEP) {
        const GPSTI_SIMD_INTS a = GPSTI_HOT_JOIN(above, at + k), d = GPSTI_HOT_JOIN(below, at + k);
        const GPSTI_SIMD_INTS b = GPSTI_HOT_JOIN(above, at + k + 2), e = GPSTI_HOT_JOIN(below, at + k + 2);
        const GPSTI_SIMD_INTS wx = GPSTI_ROWS(hot_weights)(work->wx + k), wy = GPSTI_ROWS(hot_weights)(work->wy + k);
        const GPSTI_SIMD_INTS p0 =
            GPSTI_ROWS(hot_blend)(a, d, even, GPSTI_HOT_REPEAT(wx, 0x00), GPSTI_HOT_REPEAT(wy, 0x00));
        const GPSTI_SIMD_INTS p1 =
            GPSTI_ROWS(hot_blend)(a, d, odd, GPSTI_HOT_REPEAT(wx, 0x55), GPSTI_HOT_REPEAT(wy, 0x55));
        const GPSTI_SIMD_INTS p2 =
            GPSTI_ROWS(hot_blend)(b, e, even, GPSTI_HOT_REPEAT(wx, 0xaa), GPSTI_HOT_REPEAT(wy, 0xaa));
        const GPSTI_SIMD_INTS p3 =
            GPSTI_ROWS(hot_blend)(b, e, odd, GPSTI_HOT_REPEAT(wx, 0xff), GPSTI_HOT_REPEAT(wy, 0xff));
        const GPSTI_SIMD_INTS four =
            GPSTI_SIMD_OP(packus_epi16)(GPSTI_SIMD_OP(packus_epi32)(p0, p1), GPSTI_SIMD_OP(packus_epi32)(p2, p3));
        const GPSTI_SIMD_INTS three = GPSTI_SIMD_OP(shuffle_epi8)(four, packed);
        if (k + GPSTI_HOT_STEP <= count) {
            GPSTI_ROWS(hot_close)(three, out);
        } else {
            uint8_t rest[3 * GPSTI_HOT_STEP];
            GPSTI_ROWS(hot_close)(three, rest);
            memcpy(out, rest, (size_t)(count - k) * 3);
        }
    }
}

/* ---- floats --------------------------------------------------------------------------
   Of every pair 8 bytes, the first 32 bits of each and the second, in the order of the output. */
typedef struct GPSTI_ROWS(hot_taps) {
    GPSTI_SIMD_INTS low, high;
} GPSTI_ROWS(hot_taps);

GPSTI_SIMD_INLINE GPSTI_ROWS(hot_taps) GPSTI_ROWS(hot_split)(GPSTI_SIMD_INTS even, GPSTI_SIMD_INTS odd) {
    const GPSTI_SIMD_FLOATS a = GPSTI_HOT_AS_FLOATS(even), b = GPSTI_HOT_AS_FLOATS(odd);
    GPSTI_ROWS(hot_taps) out;
    out.low = GPSTI_HOT_AS_INTS(GPSTI_SIMD_OP(shuffle_ps)(a, b, 0x88));
    out.high = GPSTI_HOT_AS_INTS(GPSTI_SIMD_OP(shuffle_ps)(a, b, 0xdd));
    return out;
}

/* Byte number `byte` of each 32 bits; byte is a constant wherever this is called. */
GPSTI_SIMD_INLINE GPSTI_SIMD_INTS GPSTI_ROWS(hot_byte)(GPSTI_SIMD_INTS v, int byte) {
    if (byte == 0)
        return GPSTI_SIMD_BITS(and)(v, GPSTI_HOT_SET(255));
    if (byte == 3)
        return GPSTI_SIMD_OP(srli_epi32)(v, 24);
    return GPSTI_SIMD_OP(shuffle_epi8)(
        v, GPSTI_HOT_SPREAD(_mm_setr_epi8((char)byte, -1, -1, -1, (char)(byte + 4), -1, -1, -1, (char)(byte + 8), -1,
                                          -1, -1, (char)(byte + 12), -1, -1, -1)));
}

GPSTI_SIMD_INLINE GPSTI_SIMD_FLOATS GPSTI_ROWS(hot_between)(GPSTI_SIMD_INTS left, GPSTI_SIMD_INTS right,
                                                            GPSTI_SIMD_FLOATS fx) {
    return GPSTI_SIMD_OP(fmadd_ps)(GPSTI_SIMD_OP(cvtepi32_ps)(GPSTI_SIMD_OP(sub_epi32)(right, left)), fx,
                                   GPSTI_SIMD_OP(cvtepi32_ps)(left));
}

GPSTI_SIMD_INLINE GPSTI_SIMD_FLOATS GPSTI_ROWS(hot_down)(GPSTI_SIMD_FLOATS upper, GPSTI_SIMD_FLOATS lower,
                                                         GPSTI_SIMD_FLOATS fy) {
    return GPSTI_SIMD_OP(fmadd_ps)(GPSTI_SIMD_OP(sub_ps)(lower, upper), fy, upper);
}

/* Byte number `byte` of the pixels. */
GPSTI_SIMD_INLINE GPSTI_SIMD_FLOATS GPSTI_ROWS(hot_across)(GPSTI_ROWS(hot_taps) taps, int pixel_bytes, int byte,
                                                           GPSTI_SIMD_FLOATS fx) {
    const GPSTI_SIMD_INTS right = pixel_bytes == 4 ? GPSTI_ROWS(hot_byte)(taps.high, byte)
                                  : byte == 0      ? GPSTI_ROWS(hot_byte)(taps.low, 3)
                                                   : GPSTI_ROWS(hot_byte)(taps.high, byte - 1);
    return GPSTI_ROWS(hot_between)(GPSTI_ROWS(hot_byte)(taps.low, byte), right, fx);
}

GPSTI_SIMD_INLINE GPSTI_SIMD_FLOATS GPSTI_ROWS(hot_four)(GPSTI_ROWS(hot_taps) upper, GPSTI_ROWS(hot_taps) lower,
                                                         int pixel_bytes, int byte, GPSTI_SIMD_FLOATS fx,
                                                         GPSTI_SIMD_FLOATS fy) {
    return GPSTI_ROWS(hot_down)(GPSTI_ROWS(hot_across)(upper, pixel_bytes, byte, fx),
                                GPSTI_ROWS(hot_across)(lower, pixel_bytes, byte, fx), fy);
}

/* Where the samples of the source's red, green or blue go, and by what. */
typedef struct GPSTI_ROWS(hot_plane) {
    float* out;
    float scale, bias;
} GPSTI_ROWS(hot_plane);

/* By the byte that a channel has in the source. */
GPSTI_SIMD_INLINE void GPSTI_ROWS(hot_planes)(const gpsti_warp_job* job, int32_t x, int32_t y,
                                              GPSTI_ROWS(hot_plane) planes[3]) {
    for (uint32_t c = 0; c < 3; c++) {
        const uint32_t byte = job->shift[c] / 8;
        planes[byte].out = (float*)(void*)gpsti_warp_output(job, x, y, c);
        planes[byte].scale = job->scale[c], planes[byte].bias = job->bias[c];
    }
}

/* A step from pixel k on of count. */
GPSTI_SIMD_INLINE void GPSTI_ROWS(hot_put)(GPSTI_ROWS(hot_plane) plane, int32_t k, int32_t count, bool has_scale,
                                           GPSTI_SIMD_FLOATS value) {
    if (has_scale)
        value = GPSTI_SIMD_OP(fmadd_ps)(value, GPSTI_SIMD_OP(set1_ps)(plane.scale), GPSTI_SIMD_OP(set1_ps)(plane.bias));
    if (k + GPSTI_HOT_STEP <= count) {
        GPSTI_SIMD_OP(storeu_ps)(plane.out + k, value);
    } else {
        float rest[GPSTI_HOT_STEP];
        GPSTI_SIMD_OP(storeu_ps)(rest, value);
        memcpy(plane.out + k, rest, (size_t)(count - k) * sizeof(float));
    }
}

GPSTI_SIMD_INLINE void GPSTI_ROWS(hot_floats_of)(const gpsti_warp_job* job, int pixel_bytes,
                                                 const gpsti_hot_work* work) {
    const bool has_scale = job->has_scale;
    GPSTI_ROWS(hot_plane) planes[3];
    GPSTI_ROWS(hot_planes)(job, work->x, work->y, planes);
    for (int32_t k = 0; k < work->count; k += GPSTI_HOT_STEP) {
        const int32_t* const at = work->at + k;
        const GPSTI_SIMD_INTS a = GPSTI_HOT_JOIN(work->above, at), d = GPSTI_HOT_JOIN(work->below, at);
        const GPSTI_SIMD_INTS b = GPSTI_HOT_JOIN(work->above, at + 2), e = GPSTI_HOT_JOIN(work->below, at + 2);
        const GPSTI_ROWS(hot_taps) upper = GPSTI_ROWS(hot_split)(a, b), lower = GPSTI_ROWS(hot_split)(d, e);
        const GPSTI_SIMD_FLOATS fx = GPSTI_SIMD_OP(loadu_ps)(work->fx + k), fy = GPSTI_SIMD_OP(loadu_ps)(work->fy + k);
        GPSTI_ROWS(hot_put)
        (planes[0], k, work->count, has_scale, GPSTI_ROWS(hot_four)(upper, lower, pixel_bytes, 0, fx, fy));
        GPSTI_ROWS(hot_put)
        (planes[1], k, work->count, has_scale, GPSTI_ROWS(hot_four)(upper, lower, pixel_bytes, 1, fx, fy));
        GPSTI_ROWS(hot_put)
        (planes[2], k, work->count, has_scale, GPSTI_ROWS(hot_four)(upper, lower, pixel_bytes, 2, fx, fy));
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(hot_floats)(const gpsti_warp_job* job, const gpsti_hot_work* work) {
    if (job->source_pixel_bytes == 3)
        GPSTI_ROWS(hot_floats_of)(job, 3, work);
    else
        GPSTI_ROWS(hot_floats_of)(job, 4, work);
}

/* ---- NV12 to floats ---------------------------------------------------------------------
   Where four pixels need no more than 16 bytes of a row, a lane reads those and picks; else it gathers 4 bytes for
   each, of luma 2 too many: behind its last row lies chroma. */
typedef struct GPSTI_ROWS(hot_rows) {
    GPSTI_SIMD_INTS above, below;
} GPSTI_ROWS(hot_rows);

GPSTI_SIMD_INLINE GPSTI_ROWS(hot_rows)
    GPSTI_ROWS(hot_two_rows)(const uint8_t* above, const uint8_t* below, const int32_t* x, bool pairs,
                             const gpsti_hot_bytes* bytes, int32_t k, bool windows) {
    const GPSTI_SIMD_INTS pixel = GPSTI_HOT_LOAD(x + k), at = pairs ? GPSTI_SIMD_OP(add_epi32)(pixel, pixel) : pixel;
    GPSTI_ROWS(hot_rows) out;
    out.above = windows ? GPSTI_HOT_WINDOWS(above, bytes->window + k / 4) : GPSTI_HOT_GATHER(above, at);
    out.below = windows ? GPSTI_HOT_WINDOWS(below, bytes->window + k / 4) : GPSTI_HOT_GATHER(below, at);
    return out;
}

/* The bytes picked by left, and those `step` behind them. */
GPSTI_SIMD_INLINE GPSTI_SIMD_FLOATS GPSTI_ROWS(hot_picked)(GPSTI_ROWS(hot_rows) rows, GPSTI_SIMD_INTS left, int step,
                                                           GPSTI_SIMD_FLOATS fx, GPSTI_SIMD_FLOATS fy) {
    const GPSTI_SIMD_INTS right = GPSTI_SIMD_OP(add_epi32)(left, GPSTI_HOT_SET(step));
    return GPSTI_ROWS(hot_down)(GPSTI_ROWS(hot_between)(GPSTI_SIMD_OP(shuffle_epi8)(rows.above, left),
                                                        GPSTI_SIMD_OP(shuffle_epi8)(rows.above, right), fx),
                                GPSTI_ROWS(hot_between)(GPSTI_SIMD_OP(shuffle_epi8)(rows.below, left),
                                                        GPSTI_SIMD_OP(shuffle_epi8)(rows.below, right), fx),
                                fy);
}

typedef struct GPSTI_ROWS(hot_yuv) {
    GPSTI_SIMD_FLOATS y, cb, cr;
} GPSTI_ROWS(hot_yuv);

/* The samples of the block's pixels from k on. */
GPSTI_SIMD_INLINE GPSTI_ROWS(hot_yuv)
    GPSTI_ROWS(hot_sample_yuv)(const gpsti_hot_work* work, const gpsti_yuv_columns* columns, int32_t k, bool windows) {
    const GPSTI_ROWS(hot_rows) luma =
        GPSTI_ROWS(hot_two_rows)(work->above, work->below, work->at, false, &columns->luma, k, windows);
    const GPSTI_ROWS(hot_rows) chroma = GPSTI_ROWS(hot_two_rows)(work->chroma_above, work->chroma_below,
                                                                 columns->chroma_x, true, &columns->chroma, k, windows);
    const GPSTI_SIMD_FLOATS fx = GPSTI_SIMD_OP(loadu_ps)(work->fx + k), fy = GPSTI_SIMD_OP(loadu_ps)(work->fy + k);
    const GPSTI_SIMD_FLOATS cx = GPSTI_SIMD_OP(loadu_ps)(columns->chroma_fx + k);
    const GPSTI_SIMD_FLOATS cy = GPSTI_SIMD_OP(loadu_ps)(work->chroma_fy + k);
    const GPSTI_SIMD_INTS cb = GPSTI_HOT_LOAD(columns->chroma.pick + k);
    GPSTI_ROWS(hot_yuv) out;
    out.y = GPSTI_ROWS(hot_picked)(luma, GPSTI_HOT_LOAD(columns->luma.pick + k), 1, fx, fy);
    out.cb = GPSTI_ROWS(hot_picked)(chroma, cb, 2, cx, cy);
    out.cr = GPSTI_ROWS(hot_picked)(chroma, GPSTI_SIMD_OP(add_epi32)(cb, GPSTI_HOT_SET(1)), 2, cx, cy);
    return out;
}

/* value + sample * weight */
GPSTI_SIMD_INLINE GPSTI_SIMD_FLOATS GPSTI_ROWS(hot_weigh)(GPSTI_SIMD_FLOATS sample, float weight,
                                                          GPSTI_SIMD_FLOATS value) {
    return GPSTI_SIMD_OP(fmadd_ps)(sample, GPSTI_SIMD_OP(set1_ps)(weight), value);
}

GPSTI_SIMD_INLINE GPSTI_SIMD_FLOATS GPSTI_ROWS(hot_clamp)(GPSTI_SIMD_FLOATS value) {
    return GPSTI_SIMD_OP(max_ps)(GPSTI_SIMD_OP(min_ps)(value, GPSTI_SIMD_OP(set1_ps)(255.0f)),
                                 GPSTI_SIMD_OP(set1_ps)(0.0f));
}

GPSTI_SIMD_INLINE void GPSTI_ROWS(hot_yuv_of)(const gpsti_warp_job* job, const gpsti_hot_work* work,
                                              const gpsti_yuv_columns* columns, bool windows) {
    const gpsti_warp_colours by = job->colours;
    const bool has_scale = job->has_scale;
    GPSTI_ROWS(hot_plane) planes[3];
    GPSTI_ROWS(hot_planes)(job, work->x, work->y, planes);
    for (int32_t k = 0; k < work->count; k += GPSTI_HOT_STEP) {
        const GPSTI_ROWS(hot_yuv) yuv = GPSTI_ROWS(hot_sample_yuv)(work, columns, k, windows);
        GPSTI_SIMD_FLOATS red = GPSTI_ROWS(hot_weigh)(yuv.y, by.y, GPSTI_SIMD_OP(set1_ps)(by.red));
        GPSTI_SIMD_FLOATS green = GPSTI_ROWS(hot_weigh)(yuv.y, by.y, GPSTI_SIMD_OP(set1_ps)(by.green));
        GPSTI_SIMD_FLOATS blue = GPSTI_ROWS(hot_weigh)(yuv.y, by.y, GPSTI_SIMD_OP(set1_ps)(by.blue));
        red = GPSTI_ROWS(hot_weigh)(yuv.cr, by.red_v, red);
        green = GPSTI_ROWS(hot_weigh)(yuv.cb, by.green_u, GPSTI_ROWS(hot_weigh)(yuv.cr, by.green_v, green));
        blue = GPSTI_ROWS(hot_weigh)(yuv.cb, by.blue_u, blue);
        GPSTI_ROWS(hot_put)(planes[0], k, work->count, has_scale, GPSTI_ROWS(hot_clamp)(red));
        GPSTI_ROWS(hot_put)(planes[1], k, work->count, has_scale, GPSTI_ROWS(hot_clamp)(green));
        GPSTI_ROWS(hot_put)(planes[2], k, work->count, has_scale, GPSTI_ROWS(hot_clamp)(blue));
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(hot_yuv_floats)(const gpsti_warp_job* job, const gpsti_hot_work* work,
                                                   const gpsti_yuv_columns* columns) {
    if (columns->windows)
        GPSTI_ROWS(hot_yuv_of)(job, work, columns, true);
    else
        GPSTI_ROWS(hot_yuv_of)(job, work, columns, false);
}

/* ---- which work is hot ---------------------------------------------------------------- */
GPSTI_SIMD_INLINE bool GPSTI_ROWS(hot_job)(const gpsti_warp_job* job) {
    const int64_t pitch = job->source_pitch < 0 ? -job->source_pitch : job->source_pitch;
    const bool bytes = job->dtype == GPST_DTYPE_U8 && job->layout == GPST_LAYOUT_HWC && !job->has_scale;
    const bool floats = job->dtype == GPST_DTYPE_F32 && job->layout == GPST_LAYOUT_CHW;
    const bool nv12 = job->cb && job->chroma_step == 2 && gpsti_warp_by_axes(job->map);
    return (job->cb ? nv12 && floats : job->source_pixel_bytes >= 3 && (bytes || floats)) && job->n_channels == 3 &&
           job->source_dtype == GPST_DTYPE_U8 && !job->mask && job->filter == GPST_FILTER_BILINEAR &&
           job->convention != GPST_CONVENTION_FFMPEG && pitch * job->source_height <= INT32_MAX;
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(hot_sample)(const gpsti_warp_job* job, const gpsti_hot_work* work) {
    if (job->dtype == GPST_DTYPE_U8)
        GPSTI_ROWS(hot_bytes)(job, work);
    else
        GPSTI_ROWS(hot_floats)(job, work);
}

/* Every fourth pixel of a packed source reaches almost all lines; more only costs. */
GPSTI_SIMD_INLINE void GPSTI_ROWS(hot_ask)(const uint8_t* row, const int32_t* at, int step) {
    for (int k = 0; k < GPSTI_BLOCK; k += step)
        _mm_prefetch((const char*)(row + at[k]), _MM_HINT_T0);
}

/* ---- maps by axes -----------------------------------------------------------------------
   Where the bytes of a row are is known of a block's columns for all rows of the band, and the lines of the next row
   are asked for one row ahead. */

/* 16 bytes for each four pixels, kept inside the row; false when they are further apart, or the row is shorter. */
GPSTI_SIMD_PRIVATE bool GPSTI_ROWS(hot_windows)(const int32_t* x, int32_t pixel_bytes, int32_t row_bytes,
                                                gpsti_hot_bytes* bytes) {
    const int32_t last = row_bytes - 16;
    bool fit = last >= 0;
    for (int k = 0; fit && k < GPSTI_BLOCK; k += 4) {
        const int32_t begin = pixel_bytes * x[k] < last ? pixel_bytes * x[k] : last;
        bytes->window[k / 4] = begin;
        for (int i = k; i < k + 4; i++) {
            const int32_t from = pixel_bytes * x[i] - begin;
            fit = fit && from >= 0 && from <= 16 - 2 * pixel_bytes;
            bytes->pick[i] = 0x80808000u | (uint32_t)from;
        }
    }
    return fit;
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(hot_columns)(const gpsti_warp_job* job, gpsti_columns* columns) {
    const int32_t n = (int32_t)job->source_pixel_bytes;
    gpsti_yuv_columns* const yuv = columns->yuv;
    columns->hot = GPSTI_ROWS(hot_job)(job);
    for (int k = 0; columns->hot && k < GPSTI_BLOCK; k++) {
        const int32_t x = columns->x[k], last_x = job->source_width - (job->cb ? 2 : 3);
        columns->hot = x >= 0 && x <= last_x;
        columns->at[k] = n * x;
        if (yuv)
            columns->hot = columns->hot && yuv->chroma_x[k] >= 0 && yuv->chroma_x[k] <= job->chroma_width - 2;
    }
    if (!columns->hot || !yuv)
        return;
    yuv->windows = GPSTI_ROWS(hot_windows)(columns->at, 1, job->source_width, &yuv->luma) &&
                   GPSTI_ROWS(hot_windows)(yuv->chroma_x, 2, 2 * job->chroma_width, &yuv->chroma);
    for (uint32_t k = 0; !yuv->windows && k < GPSTI_BLOCK; k++)
        yuv->luma.pick[k] = yuv->chroma.pick[k] = 0x80808000u | 4 * (k % 4);
}

/* True when the block is done; taps is of row y, next of the one behind it. */
GPSTI_SIMD_PRIVATE bool GPSTI_ROWS(hot_by_axes)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                                const gpsti_row_taps* taps, const gpsti_row_taps* next,
                                                const gpsti_columns* columns, const gpsti_block* block) {
    const ptrdiff_t pitch = (ptrdiff_t)job->source_pitch, chroma_pitch = (ptrdiff_t)job->chroma_pitch;
    const uint32_t last = (uint32_t)job->source_height - 1, chroma_last = (uint32_t)job->chroma_height - 1;
    gpsti_hot_work work;
    if (!columns->hot || (uint32_t)taps->luma.pixel >= last || (job->cb && (uint32_t)taps->chroma.pixel >= chroma_last))
        return false;
    work.above = job->source + taps->luma.pixel * pitch, work.below = work.above + pitch;
    work.at = columns->at, work.wx = columns->wx, work.wy = block->wy, work.fx = columns->fx, work.fy = block->fy;
    work.x = x, work.y = y, work.count = count;
    if ((uint32_t)next->luma.pixel < last && next->luma.pixel > taps->luma.pixel) {
        const uint8_t* const above = job->source + next->luma.pixel * pitch;
        const int step = job->cb ? 16 : 4;
        if (next->luma.pixel > taps->luma.pixel + 1)
            GPSTI_ROWS(hot_ask)(above, work.at, step);
        GPSTI_ROWS(hot_ask)(above + pitch, work.at, step);
    }
    if (!job->cb) {
        GPSTI_ROWS(hot_sample)(job, &work);
        return true;
    }
    work.chroma_above = job->cb + taps->chroma.pixel * chroma_pitch;
    work.chroma_below = work.chroma_above + chroma_pitch, work.chroma_fy = block->chroma_fy;
    if ((uint32_t)next->chroma.pixel < chroma_last && next->chroma.pixel > taps->chroma.pixel)
        for (int k = 0; k < GPSTI_BLOCK; k += 16)
            _mm_prefetch((const char*)(job->cb + (next->chroma.pixel + 1) * chroma_pitch +
                                       2 * (ptrdiff_t)columns->yuv->chroma_x[k]),
                         _MM_HINT_T0);
    GPSTI_ROWS(hot_yuv_floats)(job, &work, columns->yuv);
    return true;
}

/* ---- other maps: the queue ---------------------------------------------------------------
   A block whose places are known waits while GPSTI_HOT_DEPTH others are placed, and its source lines are asked for at
   once: sampled, it would wait for each. Only the lower row is: it was the upper one's lower row, as views are not
   made smaller. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(hot_take)(const gpsti_warp_job* job, const gpsti_hot_block* block) {
    gpsti_hot_work work;
    work.above = job->source, work.below = work.above + job->source_pitch;
    work.at = block->at, work.wx = block->wx, work.wy = block->wy, work.fx = block->fx, work.fy = block->fy;
    work.x = block->at_x, work.y = block->at_y, work.count = block->count;
    GPSTI_ROWS(hot_sample)(job, &work);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(hot_drain)(const gpsti_warp_job* job, gpsti_hot_queue* queue) {
    for (; queue->taken < queue->put; queue->taken++)
        GPSTI_ROWS(hot_take)(job, &queue->blocks[queue->taken % GPSTI_HOT_DEPTH]);
}

/* 32 bits of every pixel of a block. */
GPSTI_SIMD_INLINE void GPSTI_ROWS(hot_copy)(void* to, const void* from) {
    for (int k = 0; k < 4 * GPSTI_BLOCK; k += 4 * GPSTI_HOT_STEP)
        GPSTI_HOT_STORE((uint8_t*)to + k, GPSTI_HOT_LOAD((const uint8_t*)from + k));
}

/* True when the block is queued. */
GPSTI_SIMD_PRIVATE bool GPSTI_ROWS(hot)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                        const gpsti_places* places, gpsti_hot_queue* queue) {
    if (gpsti_warp_by_axes(job->map) || !GPSTI_ROWS(hot_job)(job))
        return false;
    if (queue->put - queue->taken == GPSTI_HOT_DEPTH)
        GPSTI_ROWS(hot_take)(job, &queue->blocks[queue->taken++ % GPSTI_HOT_DEPTH]);
    gpsti_hot_block* const next = &queue->blocks[queue->put % GPSTI_HOT_DEPTH];
    if (!GPSTI_ROWS(hot_offsets)(job, places, next->at))
        return false;
    GPSTI_ROWS(hot_ask)(job->source + job->source_pitch, next->at, 4);
    next->at_x = x, next->at_y = y, next->count = count;
    if (job->dtype == GPST_DTYPE_U8)
        GPSTI_ROWS(hot_copy)(next->wx, places->wx), GPSTI_ROWS(hot_copy)(next->wy, places->wy);
    else
        GPSTI_ROWS(hot_copy)(next->fx, places->fx), GPSTI_ROWS(hot_copy)(next->fy, places->fy);
    queue->put++;
    return true;
}

#include "warp_hot_area_internal.h"

#undef GPSTI_HOT_SIGNS
#undef GPSTI_HOT_JOIN
#undef GPSTI_HOT_GATHER
#undef GPSTI_HOT_WINDOWS
#undef GPSTI_HOT_WIDEN
#undef GPSTI_HOT_SPREAD
