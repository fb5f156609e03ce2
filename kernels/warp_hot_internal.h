/* kernels/warp_hot_internal.h -- the shapes of work that the CPU is asked for most, in vector instructions: three
   channels by bilinear samples from packed bytes, as interleaved bytes (views) and as planes of floats (tensors),
   and from NV12 as planes of floats. A template: warp_cpu.c includes it once for each level that has such
   instructions. Gives the bits of warp_pixel_internal.h; obeys exact_internal.h. */
/* amalgamate: template */
/* Set by the includer beside what warp_rows_internal.h needs, unset at the end:
   GPSTI_HOT_LANES                   lanes of 16 bytes in a vector; a step is four pixels a lane
   GPSTI_HOT_INTS, _FLOATS           the vector's types
   GPSTI_HOT_OP(name), _BITS(name)   its intrinsics, those of untyped bits
   GPSTI_HOT_AS_INTS(v), _AS_FLOATS(v)
   GPSTI_HOT_SIGNS(v)                non-zero when an integer of v is negative
   GPSTI_HOT_JOIN(row, at)           hot_pair at at, at + 4, ...: a lane each
   GPSTI_HOT_GATHER(p, at)           32 bits from each p + at
   GPSTI_HOT_SPREAD(v)               16 bytes in every lane
   GPSTI_HOT_REPEAT(v, which)        shuffle of 32 bits in every lane
   GPSTI_HOT_CLOSE(v, out)           the first 12 bytes of every lane, one after the other, to out */
#define GPSTI_HOT_STEP (4 * GPSTI_HOT_LANES)
#define GPSTI_HOT_SET(value) GPSTI_HOT_OP(set1_epi32)((int)(value))
#define GPSTI_HOT_LOAD(p) GPSTI_HOT_BITS(loadu)((const GPSTI_HOT_INTS*)(const void*)(p))
#define GPSTI_HOT_STORE(p, v) GPSTI_HOT_BITS(storeu)((GPSTI_HOT_INTS*)(void*)(p), v)

/* Left and right tap of two output pixels: 8 source bytes each. */
GPSTI_PRIVATE GPSTI_ROWS_INLINE __m128i GPSTI_ROWS(hot_pair)(const uint8_t* source, const int32_t* at) {
    return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i*)(const void*)(source + at[0])),
                              _mm_loadl_epi64((const __m128i*)(const void*)(source + at[1])));
}

/* Where in the source each pixel's 8 bytes begin; false when a tap of the block lies outside, or so near the end of its
   row that 8 bytes go past it. */
GPSTI_PRIVATE GPSTI_ROWS_INLINE bool GPSTI_ROWS(hot_offsets)(const gpsti_warp_job* job, const gpsti_block* block,
                                                             int32_t* GPSTI_RESTRICT at) {
    const GPSTI_HOT_INTS last_x = GPSTI_HOT_SET(job->source_width - 3), last_y = GPSTI_HOT_SET(job->source_height - 2);
    const GPSTI_HOT_INTS pitch = GPSTI_HOT_SET(job->source_pitch), bytes = GPSTI_HOT_SET(job->source_pixel_bytes);
    GPSTI_HOT_INTS outside = GPSTI_HOT_SET(0);
    for (int k = 0; k < GPSTI_BLOCK; k += GPSTI_HOT_STEP) {
        const GPSTI_HOT_INTS x = GPSTI_HOT_LOAD(block->x + k), y = GPSTI_HOT_LOAD(block->y + k);
        const GPSTI_HOT_INTS past =
            GPSTI_HOT_BITS(or)(GPSTI_HOT_OP(sub_epi32)(last_x, x), GPSTI_HOT_OP(sub_epi32)(last_y, y));
        outside = GPSTI_HOT_BITS(or)(outside, GPSTI_HOT_BITS(or)(past, GPSTI_HOT_BITS(or)(x, y)));
        const GPSTI_HOT_INTS offset =
            GPSTI_HOT_OP(add_epi32)(GPSTI_HOT_OP(mullo_epi32)(y, pitch), GPSTI_HOT_OP(mullo_epi32)(x, bytes));
        GPSTI_HOT_STORE(at + k, offset);
    }
    return !GPSTI_HOT_SIGNS(outside);
}

/* ---- bytes --------------------------------------------------------------------------
   Weights as pairs of 16 bits, 2048 - w and w. */
GPSTI_PRIVATE GPSTI_ROWS_INLINE GPSTI_HOT_INTS GPSTI_ROWS(hot_weights)(const int32_t* weights) {
    const GPSTI_HOT_INTS w = GPSTI_HOT_LOAD(weights);
    return GPSTI_HOT_OP(add_epi32)(GPSTI_HOT_OP(sub_epi32)(GPSTI_HOT_OP(slli_epi32)(w, 16), w), GPSTI_HOT_SET(2048));
}

/* One pixel of each lane, a channel in each 32 bits; pick makes pairs of 16 bits, left and right tap, of 8 bytes. */
GPSTI_PRIVATE GPSTI_ROWS_INLINE GPSTI_HOT_INTS GPSTI_ROWS(hot_blend)(GPSTI_HOT_INTS above, GPSTI_HOT_INTS below,
                                                                     GPSTI_HOT_INTS pick, GPSTI_HOT_INTS wx,
                                                                     GPSTI_HOT_INTS wy) {
    const GPSTI_HOT_INTS eight = GPSTI_HOT_SET(8), high = GPSTI_HOT_SET(0xffff0000u);
    const GPSTI_HOT_INTS upper =
        GPSTI_HOT_OP(add_epi32)(GPSTI_HOT_OP(madd_epi16)(GPSTI_HOT_OP(shuffle_epi8)(above, pick), wx), eight);
    const GPSTI_HOT_INTS lower =
        GPSTI_HOT_OP(add_epi32)(GPSTI_HOT_OP(madd_epi16)(GPSTI_HOT_OP(shuffle_epi8)(below, pick), wx), eight);
    const GPSTI_HOT_INTS both = GPSTI_HOT_BITS(or)(GPSTI_HOT_OP(srli_epi32)(upper, 4),
                                                   GPSTI_HOT_BITS(and)(GPSTI_HOT_OP(slli_epi32)(lower, 12), high));
    return GPSTI_HOT_OP(srli_epi32)(GPSTI_HOT_OP(add_epi32)(GPSTI_HOT_OP(madd_epi16)(both, wy), GPSTI_HOT_SET(1 << 17)),
                                    18);
}

GPSTI_PRIVATE GPSTI_ROWS_TARGET void GPSTI_ROWS(hot_bytes)(const gpsti_warp_job* job, const gpsti_hot_block* block) {
    const uint8_t *const above = job->source, *const below = above + job->source_pitch;
    const int32_t* const at = block->at;
    const int32_t count = block->count;
    uint8_t* out = gpsti_warp_output(job, block->at_x, block->at_y, 0);
    const char n = (char)job->source_pixel_bytes, c0 = (char)(job->shift[0] / 8), c1 = (char)(job->shift[1] / 8),
               c2 = (char)(job->shift[2] / 8), none = -1;
    const __m128i pick_low = _mm_setr_epi8(c0, none, (char)(c0 + n), none, c1, none, (char)(c1 + n), none, c2, none,
                                           (char)(c2 + n), none, none, none, none, none);
    const GPSTI_HOT_INTS even = GPSTI_HOT_SPREAD(pick_low);
    const GPSTI_HOT_INTS odd =
        GPSTI_HOT_SPREAD(_mm_add_epi8(pick_low, _mm_setr_epi8(8, 0, 8, 0, 8, 0, 8, 0, 8, 0, 8, 0, 0, 0, 0, 0)));
    const GPSTI_HOT_INTS packed =
        GPSTI_HOT_SPREAD(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    for (int32_t k = 0; k < count; k += GPSTI_HOT_STEP, out += 3 * GPSTI_HOT_STEP) {
        const GPSTI_HOT_INTS a = GPSTI_HOT_JOIN(above, at + k), b = GPSTI_HOT_JOIN(above, at + k + 2);
        const GPSTI_HOT_INTS d = GPSTI_HOT_JOIN(below, at + k), e = GPSTI_HOT_JOIN(below, at + k + 2);
        const GPSTI_HOT_INTS wx = GPSTI_ROWS(hot_weights)(block->wx + k), wy = GPSTI_ROWS(hot_weights)(block->wy + k);
        const GPSTI_HOT_INTS p0 =
            GPSTI_ROWS(hot_blend)(a, d, even, GPSTI_HOT_REPEAT(wx, 0x00), GPSTI_HOT_REPEAT(wy, 0x00));
        const GPSTI_HOT_INTS p1 =
            GPSTI_ROWS(hot_blend)(a, d, odd, GPSTI_HOT_REPEAT(wx, 0x55), GPSTI_HOT_REPEAT(wy, 0x55));
        const GPSTI_HOT_INTS p2 =
            GPSTI_ROWS(hot_blend)(b, e, even, GPSTI_HOT_REPEAT(wx, 0xaa), GPSTI_HOT_REPEAT(wy, 0xaa));
        const GPSTI_HOT_INTS p3 =
            GPSTI_ROWS(hot_blend)(b, e, odd, GPSTI_HOT_REPEAT(wx, 0xff), GPSTI_HOT_REPEAT(wy, 0xff));
        const GPSTI_HOT_INTS four =
            GPSTI_HOT_OP(packus_epi16)(GPSTI_HOT_OP(packus_epi32)(p0, p1), GPSTI_HOT_OP(packus_epi32)(p2, p3));
        const GPSTI_HOT_INTS three = GPSTI_HOT_OP(shuffle_epi8)(four, packed);
        if (k + GPSTI_HOT_STEP <= count) {
            GPSTI_HOT_CLOSE(three, out);
        } else {
            uint8_t rest[3 * GPSTI_HOT_STEP];
            GPSTI_HOT_CLOSE(three, rest);
            memcpy(out, rest, (size_t)(count - k) * 3);
        }
    }
}

/* ---- floats --------------------------------------------------------------------------
   The left and the right pixel of every pair, 32 bits each, in the order of the output. */
typedef struct GPSTI_ROWS(hot_taps) {
    GPSTI_HOT_INTS left, right;
} GPSTI_ROWS(hot_taps);

GPSTI_PRIVATE GPSTI_ROWS_INLINE GPSTI_ROWS(hot_taps)
    GPSTI_ROWS(hot_split)(const uint8_t* row, const int32_t* at, uint32_t pixel_bytes) {
    const GPSTI_HOT_FLOATS a = GPSTI_HOT_AS_FLOATS(GPSTI_HOT_JOIN(row, at));
    const GPSTI_HOT_FLOATS b = GPSTI_HOT_AS_FLOATS(GPSTI_HOT_JOIN(row, at + 2));
    const GPSTI_HOT_INTS low = GPSTI_HOT_AS_INTS(GPSTI_HOT_OP(shuffle_ps)(a, b, 0x88));
    const GPSTI_HOT_INTS high = GPSTI_HOT_AS_INTS(GPSTI_HOT_OP(shuffle_ps)(a, b, 0xdd));
    GPSTI_ROWS(hot_taps) out;
    out.left = low;
    out.right = pixel_bytes == 4
                    ? high
                    : GPSTI_HOT_BITS(or)(GPSTI_HOT_OP(srli_epi32)(low, 24), GPSTI_HOT_OP(slli_epi32)(high, 8));
    return out;
}

GPSTI_PRIVATE GPSTI_ROWS_INLINE GPSTI_HOT_FLOATS GPSTI_ROWS(hot_between)(GPSTI_HOT_INTS left, GPSTI_HOT_INTS right,
                                                                         GPSTI_HOT_FLOATS fx) {
    return GPSTI_HOT_OP(fmadd_ps)(GPSTI_HOT_OP(cvtepi32_ps)(GPSTI_HOT_OP(sub_epi32)(right, left)), fx,
                                  GPSTI_HOT_OP(cvtepi32_ps)(left));
}

GPSTI_PRIVATE GPSTI_ROWS_INLINE GPSTI_HOT_FLOATS GPSTI_ROWS(hot_down)(GPSTI_HOT_FLOATS upper, GPSTI_HOT_FLOATS lower,
                                                                      GPSTI_HOT_FLOATS fy) {
    return GPSTI_HOT_OP(fmadd_ps)(GPSTI_HOT_OP(sub_ps)(lower, upper), fy, upper);
}

GPSTI_PRIVATE GPSTI_ROWS_INLINE GPSTI_HOT_FLOATS GPSTI_ROWS(hot_across)(GPSTI_ROWS(hot_taps) taps, GPSTI_HOT_INTS pick,
                                                                        GPSTI_HOT_FLOATS fx) {
    return GPSTI_ROWS(hot_between)(GPSTI_HOT_OP(shuffle_epi8)(taps.left, pick),
                                   GPSTI_HOT_OP(shuffle_epi8)(taps.right, pick), fx);
}

/* A step of the block from pixel k on, of channel c. */
GPSTI_PRIVATE GPSTI_ROWS_INLINE void GPSTI_ROWS(hot_put_floats)(const gpsti_warp_job* job,
                                                                const gpsti_hot_block* block, int32_t k, uint32_t c,
                                                                GPSTI_HOT_FLOATS value) {
    float* const out = (float*)(void*)gpsti_warp_output(job, block->at_x + k, block->at_y, c);
    if (job->has_scale)
        value = GPSTI_HOT_OP(fmadd_ps)(value, GPSTI_HOT_OP(set1_ps)(job->scale[c]),
                                       GPSTI_HOT_OP(set1_ps)(job->bias[c]));
    if (k + GPSTI_HOT_STEP <= block->count) {
        GPSTI_HOT_OP(storeu_ps)(out, value);
    } else {
        float rest[GPSTI_HOT_STEP];
        GPSTI_HOT_OP(storeu_ps)(rest, value);
        memcpy(out, rest, (size_t)(block->count - k) * sizeof(float));
    }
}

GPSTI_PRIVATE GPSTI_ROWS_INLINE void GPSTI_ROWS(hot_floats_of)(const gpsti_warp_job* job, uint32_t pixel_bytes,
                                                               const gpsti_hot_block* block) {
    const uint8_t *const above = job->source, *const below = above + job->source_pitch;
    for (int32_t k = 0; k < block->count; k += GPSTI_HOT_STEP) {
        const GPSTI_ROWS(hot_taps) upper = GPSTI_ROWS(hot_split)(above, block->at + k, pixel_bytes);
        const GPSTI_ROWS(hot_taps) lower = GPSTI_ROWS(hot_split)(below, block->at + k, pixel_bytes);
        const GPSTI_HOT_FLOATS fx = GPSTI_HOT_OP(loadu_ps)(block->fx + k), fy = GPSTI_HOT_OP(loadu_ps)(block->fy + k);
        for (uint32_t c = 0; c < 3; c++) {
            const char byte = (char)(job->shift[c] / 8);
            const GPSTI_HOT_INTS pick =
                GPSTI_HOT_SPREAD(_mm_setr_epi8(byte, -1, -1, -1, (char)(byte + 4), -1, -1, -1, (char)(byte + 8), -1, -1,
                                               -1, (char)(byte + 12), -1, -1, -1));
            const GPSTI_HOT_FLOATS top = GPSTI_ROWS(hot_across)(upper, pick, fx);
            const GPSTI_HOT_FLOATS bottom = GPSTI_ROWS(hot_across)(lower, pick, fx);
            GPSTI_ROWS(hot_put_floats)(job, block, k, c, GPSTI_ROWS(hot_down)(top, bottom, fy));
        }
    }
}

GPSTI_PRIVATE GPSTI_ROWS_TARGET void GPSTI_ROWS(hot_floats)(const gpsti_warp_job* job, const gpsti_hot_block* block) {
    if (job->source_pixel_bytes == 3)
        GPSTI_ROWS(hot_floats_of)(job, 3, block);
    else
        GPSTI_ROWS(hot_floats_of)(job, 4, block);
}

/* ---- NV12 to floats ---------------------------------------------------------------------
   Of luma, 4 bytes are read for the two of each row: behind the last row lies chroma. Of chroma they are both pairs. */
#define GPSTI_HOT_BYTE(v, shift) GPSTI_HOT_BITS(and)(GPSTI_HOT_OP(srli_epi32)(v, shift), GPSTI_HOT_SET(255))

typedef struct GPSTI_ROWS(hot_yuv) {
    GPSTI_HOT_FLOATS y, cb, cr;
} GPSTI_ROWS(hot_yuv);

/* False when a tap of the block lies outside. */
GPSTI_PRIVATE GPSTI_ROWS_INLINE bool GPSTI_ROWS(hot_yuv_offsets)(const gpsti_warp_job* job, const gpsti_block* block,
                                                                 gpsti_hot_block* out) {
    const GPSTI_HOT_INTS last_x = GPSTI_HOT_SET(job->source_width - 2), last_y = GPSTI_HOT_SET(job->source_height - 2);
    const GPSTI_HOT_INTS last_cx = GPSTI_HOT_SET(job->chroma_width - 2);
    const GPSTI_HOT_INTS last_cy = GPSTI_HOT_SET(job->chroma_height - 2);
    const GPSTI_HOT_INTS pitch = GPSTI_HOT_SET(job->source_pitch), chroma_pitch = GPSTI_HOT_SET(job->chroma_pitch);
    GPSTI_HOT_INTS outside = GPSTI_HOT_SET(0);
    for (int k = 0; k < GPSTI_BLOCK; k += GPSTI_HOT_STEP) {
        const GPSTI_HOT_INTS x = GPSTI_HOT_LOAD(block->x + k), y = GPSTI_HOT_LOAD(block->y + k);
        const GPSTI_HOT_INTS cx = GPSTI_HOT_LOAD(block->chroma_x + k), cy = GPSTI_HOT_LOAD(block->chroma_y + k);
        const GPSTI_HOT_INTS past =
            GPSTI_HOT_BITS(or)(GPSTI_HOT_OP(sub_epi32)(last_x, x), GPSTI_HOT_OP(sub_epi32)(last_y, y));
        const GPSTI_HOT_INTS chroma_past =
            GPSTI_HOT_BITS(or)(GPSTI_HOT_OP(sub_epi32)(last_cx, cx), GPSTI_HOT_OP(sub_epi32)(last_cy, cy));
        outside = GPSTI_HOT_BITS(or)(outside, GPSTI_HOT_BITS(or)(past, chroma_past));
        outside = GPSTI_HOT_BITS(or)(outside, GPSTI_HOT_BITS(or)(GPSTI_HOT_BITS(or)(x, y), GPSTI_HOT_BITS(or)(cx, cy)));
        GPSTI_HOT_STORE(out->at + k, GPSTI_HOT_OP(add_epi32)(GPSTI_HOT_OP(mullo_epi32)(y, pitch), x));
        GPSTI_HOT_STORE(out->chroma_at + k, GPSTI_HOT_OP(add_epi32)(GPSTI_HOT_OP(mullo_epi32)(cy, chroma_pitch),
                                                                    GPSTI_HOT_OP(add_epi32)(cx, cx)));
    }
    return !GPSTI_HOT_SIGNS(outside);
}

/* The samples of the block's pixels from k on. */
GPSTI_PRIVATE GPSTI_ROWS_INLINE GPSTI_ROWS(hot_yuv)
    GPSTI_ROWS(hot_sample_yuv)(const gpsti_warp_job* job, const gpsti_hot_block* block, int32_t k) {
    const GPSTI_HOT_INTS at = GPSTI_HOT_LOAD(block->at + k), chroma_at = GPSTI_HOT_LOAD(block->chroma_at + k);
    const GPSTI_HOT_FLOATS fx = GPSTI_HOT_OP(loadu_ps)(block->fx + k), fy = GPSTI_HOT_OP(loadu_ps)(block->fy + k);
    const GPSTI_HOT_FLOATS cx = GPSTI_HOT_OP(loadu_ps)(block->chroma_fx + k),
                           cy = GPSTI_HOT_OP(loadu_ps)(block->chroma_fy + k);
    const GPSTI_HOT_INTS top = GPSTI_HOT_GATHER(job->source, at);
    const GPSTI_HOT_INTS bottom = GPSTI_HOT_GATHER(job->source + job->source_pitch, at);
    const GPSTI_HOT_INTS above = GPSTI_HOT_GATHER(job->cb, chroma_at);
    const GPSTI_HOT_INTS below = GPSTI_HOT_GATHER(job->cb + job->chroma_pitch, chroma_at);
    GPSTI_ROWS(hot_yuv) out;
    out.y = GPSTI_ROWS(hot_down)(GPSTI_ROWS(hot_between)(GPSTI_HOT_BYTE(top, 0), GPSTI_HOT_BYTE(top, 8), fx),
                                 GPSTI_ROWS(hot_between)(GPSTI_HOT_BYTE(bottom, 0), GPSTI_HOT_BYTE(bottom, 8), fx), fy);
    out.cb = GPSTI_ROWS(hot_down)(GPSTI_ROWS(hot_between)(GPSTI_HOT_BYTE(above, 0), GPSTI_HOT_BYTE(above, 16), cx),
                                  GPSTI_ROWS(hot_between)(GPSTI_HOT_BYTE(below, 0), GPSTI_HOT_BYTE(below, 16), cx), cy);
    out.cr = GPSTI_ROWS(hot_down)(GPSTI_ROWS(hot_between)(GPSTI_HOT_BYTE(above, 8), GPSTI_HOT_BYTE(above, 24), cx),
                                  GPSTI_ROWS(hot_between)(GPSTI_HOT_BYTE(below, 8), GPSTI_HOT_BYTE(below, 24), cx), cy);
    return out;
}

/* value + sample * weight */
GPSTI_PRIVATE GPSTI_ROWS_INLINE GPSTI_HOT_FLOATS GPSTI_ROWS(hot_weigh)(GPSTI_HOT_FLOATS sample, float weight,
                                                                       GPSTI_HOT_FLOATS value) {
    return GPSTI_HOT_OP(fmadd_ps)(sample, GPSTI_HOT_OP(set1_ps)(weight), value);
}

GPSTI_PRIVATE GPSTI_ROWS_INLINE GPSTI_HOT_FLOATS GPSTI_ROWS(hot_colour)(const gpsti_warp_colours* colours,
                                                                        uint32_t shift, GPSTI_ROWS(hot_yuv) yuv) {
    const float black = shift == 0 ? colours->red : shift == 8 ? colours->green : colours->blue;
    GPSTI_HOT_FLOATS value = GPSTI_ROWS(hot_weigh)(yuv.y, colours->y, GPSTI_HOT_OP(set1_ps)(black));
    if (shift == 0)
        value = GPSTI_ROWS(hot_weigh)(yuv.cr, colours->red_v, value);
    else if (shift == 8)
        value = GPSTI_ROWS(hot_weigh)(yuv.cb, colours->green_u, GPSTI_ROWS(hot_weigh)(yuv.cr, colours->green_v, value));
    else
        value = GPSTI_ROWS(hot_weigh)(yuv.cb, colours->blue_u, value);
    value = GPSTI_HOT_OP(min_ps)(value, GPSTI_HOT_OP(set1_ps)(255.0f));
    return GPSTI_HOT_OP(max_ps)(value, GPSTI_HOT_OP(set1_ps)(0.0f));
}

GPSTI_PRIVATE GPSTI_ROWS_TARGET void GPSTI_ROWS(hot_yuv_floats)(const gpsti_warp_job* job,
                                                                const gpsti_hot_block* block) {
    for (int32_t k = 0; k < block->count; k += GPSTI_HOT_STEP) {
        const GPSTI_ROWS(hot_yuv) yuv = GPSTI_ROWS(hot_sample_yuv)(job, block, k);
        for (uint32_t c = 0; c < 3; c++)
            GPSTI_ROWS(hot_put_floats)(job, block, k, c, GPSTI_ROWS(hot_colour)(&job->colours, job->shift[c], yuv));
    }
}

/* ---- the queue --------------------------------------------------------------------------
   A block whose places are known waits while GPSTI_HOT_DEPTH others are placed, and its source lines are asked for at
   once: sampled, it would wait for each. Every fourth pixel reaches almost all of them; more only costs. */
GPSTI_PRIVATE GPSTI_ROWS_INLINE void GPSTI_ROWS(hot_ask)(const uint8_t* row, const int32_t* at) {
    for (int k = 0; k < GPSTI_BLOCK; k += 4)
        _mm_prefetch((const char*)(row + at[k]), _MM_HINT_T0);
}

GPSTI_PRIVATE GPSTI_ROWS_TARGET void GPSTI_ROWS(hot_sample)(const gpsti_warp_job* job, const gpsti_hot_block* block) {
    if (job->cb)
        GPSTI_ROWS(hot_yuv_floats)(job, block);
    else if (job->dtype == GPST_DTYPE_U8)
        GPSTI_ROWS(hot_bytes)(job, block);
    else
        GPSTI_ROWS(hot_floats)(job, block);
}

GPSTI_PRIVATE GPSTI_ROWS_TARGET void GPSTI_ROWS(hot_drain)(const gpsti_warp_job* job, gpsti_hot_queue* queue) {
    for (; queue->taken < queue->put; queue->taken++)
        GPSTI_ROWS(hot_sample)(job, &queue->blocks[queue->taken % GPSTI_HOT_DEPTH]);
}

/* ---- which work is hot ---------------------------------------------------------------- */
GPSTI_PRIVATE GPSTI_ROWS_INLINE bool GPSTI_ROWS(hot_job)(const gpsti_warp_job* job) {
    const int64_t pitch = job->source_pitch < 0 ? -job->source_pitch : job->source_pitch;
    const bool bytes = job->dtype == GPST_DTYPE_U8 && job->layout == GPST_LAYOUT_HWC && !job->has_scale;
    const bool floats = job->dtype == GPST_DTYPE_F32 && job->layout == GPST_LAYOUT_CHW;
    const bool nv12 = job->cb && job->chroma_step == 2 && gpsti_warp_by_axes(job->map) &&
                      job->chroma_pitch * job->chroma_height <= INT32_MAX;
    return (job->cb ? nv12 && floats : job->source_pixel_bytes >= 3 && (bytes || floats)) && job->n_channels == 3 &&
           !job->mask && job->filter == GPST_FILTER_BILINEAR && job->convention != GPST_CONVENTION_FFMPEG &&
           pitch * job->source_height <= INT32_MAX;
}

/* True when places are known and all of them inside. The upper row is asked for where the row before had another lower
   one: views and what is enlarged have not. */
GPSTI_PRIVATE GPSTI_ROWS_INLINE bool GPSTI_ROWS(hot_place)(const gpsti_warp_job* job, const gpsti_block* block,
                                                           gpsti_hot_block* out) {
    const bool inside = job->cb ? GPSTI_ROWS(hot_yuv_offsets)(job, block, out)
                                : GPSTI_ROWS(hot_offsets)(job, block, out->at);
    if (!inside)
        return false;
    if (gpsti_warp_by_axes(job->map))
        GPSTI_ROWS(hot_ask)(job->source, out->at);
    GPSTI_ROWS(hot_ask)(job->source + job->source_pitch, out->at);
    if (job->cb)
        GPSTI_ROWS(hot_ask)(job->cb + job->chroma_pitch, out->chroma_at);
    return true;
}

GPSTI_PRIVATE GPSTI_ROWS_INLINE void GPSTI_ROWS(hot_keep)(const gpsti_warp_job* job, const gpsti_block* block,
                                                          gpsti_hot_block* out) {
    if (job->dtype == GPST_DTYPE_U8) {
        memcpy(out->wx, block->wx, sizeof out->wx), memcpy(out->wy, block->wy, sizeof out->wy);
        return;
    }
    memcpy(out->fx, block->fx, sizeof out->fx), memcpy(out->fy, block->fy, sizeof out->fy);
    if (job->cb) {
        memcpy(out->chroma_fx, block->chroma_fx, sizeof out->chroma_fx);
        memcpy(out->chroma_fy, block->chroma_fy, sizeof out->chroma_fy);
    }
}

/* True when the block is queued. */
GPSTI_PRIVATE GPSTI_ROWS_TARGET bool GPSTI_ROWS(hot)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                                     gpsti_block* block) {
    gpsti_hot_queue* const queue = &block->queue;
    if (!GPSTI_ROWS(hot_job)(job))
        return false;
    if (queue->put - queue->taken == GPSTI_HOT_DEPTH)
        GPSTI_ROWS(hot_sample)(job, &queue->blocks[queue->taken++ % GPSTI_HOT_DEPTH]);
    gpsti_hot_block* const next = &queue->blocks[queue->put % GPSTI_HOT_DEPTH];
    if (!GPSTI_ROWS(hot_place)(job, block, next))
        return false;
    next->at_x = x, next->at_y = y, next->count = count;
    GPSTI_ROWS(hot_keep)(job, block, next);
    queue->put++;
    return true;
}

#undef GPSTI_HOT_STEP
#undef GPSTI_HOT_SET
#undef GPSTI_HOT_LOAD
#undef GPSTI_HOT_STORE
#undef GPSTI_HOT_LANES
#undef GPSTI_HOT_INTS
#undef GPSTI_HOT_FLOATS
#undef GPSTI_HOT_OP
#undef GPSTI_HOT_BITS
#undef GPSTI_HOT_AS_INTS
#undef GPSTI_HOT_AS_FLOATS
#undef GPSTI_HOT_SIGNS
#undef GPSTI_HOT_JOIN
#undef GPSTI_HOT_GATHER
#undef GPSTI_HOT_BYTE
#undef GPSTI_HOT_SPREAD
#undef GPSTI_HOT_REPEAT
#undef GPSTI_HOT_CLOSE
