/* tests/test_mask_time.c -- the mean of masks over time: every loop against the per-pixel reference between protected
   pages, that against the formula in plain words, convergence, cuts, what is refused. --hash prints the hash alone. */
#include "test_mask.h"

/* What every compiler, option and machine must compute. */
#define HASH_OF_ALL 0xf329aa0580a16caau

enum { N_FRAMES = 8 };

static gpst_mask_desc desc_of(float weight, float change, float cut) {
    gpst_mask_desc desc = GPST_ZERO;
    desc.kind = GPST_MASK_TIME;
    desc.weight = weight, desc.change = change, desc.cut = cut;
    return desc;
}

static gpst_image mask_of(uint8_t* data, uint32_t width, uint32_t height) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = width, image.height = height;
    image.format = GPST_FORMAT_GRAY;
    return image;
}

static gpst_image state_of(const gpst_image* mask, void* data) {
    const gpst_mask_desc desc = desc_of(0, 0, 0);
    gpst_image state;
    assert_int_equal(gpst_mask_query_state(&desc, mask, &state), GPST_OK);
    state.data = data;
    return state;
}

static uint8_t* row_of(const gpst_image* image, uint32_t y) {
    const int64_t pitch = image->pitch_bytes ? image->pitch_bytes : (int64_t)gpst_image_row_bytes(image);
    return (uint8_t*)image->data + (ptrdiff_t)((int64_t)y * pitch);
}

/* Where the header says that the means are. */
static uint16_t* means_of(const gpst_image* state, uint32_t y) { return (uint16_t*)(void*)row_of(state, y + 1); }

/* ---- a series of frames ---------------------------------------------------------------------- */
static gpst_mask_desc pick_desc(uint32_t choice, uint64_t* seed) {
    static const float weights[] = {0, 1, 0.5f, 0.01f, 1e-9f, 0.999f}, changes[] = {0, 1, 1e-9f, 0.1f};
    static const float cuts[] = {0, 2, 1, 0.05f, 1e-9f};
    const float any = (float)(1 + test_random(seed) % 1000) / 1000;
    const float weight = choice % 7 < 6 ? weights[choice % 7] : any;
    const float change = choice / 7 % 5 < 4 ? changes[choice / 7 % 5] : 1 - any / 2;
    return desc_of(weight, change, choice % 6 < 5 ? cuts[choice % 6] : any / 2);
}

/* What flickers: every pixel a little, some wholly; now and then all of them, or none. */
static void next_frame(const gpst_image* mask, uint32_t frame, uint64_t* seed) {
    const uint64_t kind = frame ? test_random(seed) % 6 : 5;
    for (uint32_t y = 0; y < mask->height; y++)
        for (uint32_t x = 0; x < mask->width; x++) {
            const uint64_t random = test_random(seed);
            uint8_t* const pixel = row_of(mask, y) + x;
            if (kind == 5)
                *pixel = (uint8_t)random;
            else if (kind == 4 || (kind > 0 && random % 16 == 0))
                *pixel = (uint8_t)(255 - *pixel);
            else if (kind > 0)
                *pixel = (uint8_t)(*pixel + (random >> 32) % 21 - 10);
        }
}

static void pick_size(uint32_t* width, uint32_t* height, uint64_t* seed) {
    static const uint32_t widths[] = {1, 2, 3, 15, 16, 17, 63, 64, 65, 129, 256, 257, 300};
    static const uint32_t heights[] = {1, 2, 3, 5, 8, 31, 50};
    *width = widths[test_random(seed) % 13];
    *height = heights[test_random(seed) % 7];
}

/* At a multiple of 8, and any pitch; upwards, too. */
static gpst_image place_state(arena a, const gpst_image* mask, uint64_t* seed) {
    gpst_image state = state_of(mask, NULL);
    size_t bytes = 0;
    const bool up = test_random(seed) & 1;
    state.pitch_bytes = pick_pitch((size_t)state.pitch_bytes, up ? 8 : 2, seed);
    assert_int_equal(gpst_image_bytes(&state, &bytes), GPST_OK);
    uint8_t* const lowest = arena_place(a, bytes, 8, seed);
    state.data = lowest;
    if (up) {
        state.data = lowest + (size_t)(state.height - 1) * (size_t)state.pitch_bytes;
        state.pitch_bytes = -state.pitch_bytes;
    }
    return state;
}

/* ---- loops against the reference --------------------------------------------------------------- */
typedef struct arenas { arena source, out, state, out_reference, state_reference; } arenas;

static uint64_t time_case(const arenas* a, const gpsti_mask_time_job* job, uint32_t number, uint64_t hash) {
    static uint8_t before[ARENA_BYTES];
    gpsti_mask_time_job expected = *job;
    memcpy(before, a->state.begin, ARENA_BYTES);
    memcpy(a->state_reference.begin, before, ARENA_BYTES);
    memset(a->out_reference.begin, 0xa5, ARENA_BYTES);
    expected.output = arena_moved(job->output, a->out, a->out_reference);
    expected.state = arena_moved(job->state, a->state, a->state_reference);
    gpsti_mask_time_reference(&expected);
    for (uint32_t level = 0; level <= (uint32_t)gpsti_simd_level_query(); level++) {
        memcpy(a->state.begin, before, ARENA_BYTES);
        memset(a->out.begin, 0xa5, ARENA_BYTES);
        gpsti_mask_time_compute(job, (gpsti_simd_level)level, 1);
        expect_same(a->out, a->out_reference, "output", number, level, job->width);
        expect_same(a->state, a->state_reference, "state", number, level, job->width);
    }
    for (uint32_t y = 0; y < job->height; y++) {
        hash = fnv(hash, job->output + (int64_t)y * job->output_pitch, job->width);
        hash = fnv(hash, (const uint8_t*)gpsti_mask_time_row(job, y), job->width * sizeof(uint16_t));
    }
    return hash;
}

static uint64_t hash_all(uint64_t seed) {
    arenas a;
    uint64_t hash = FNV_BEGIN;
    a.source = arena_open(), a.out = arena_open(), a.state = arena_open();
    a.out_reference = arena_open(), a.state_reference = arena_open();
    for (uint32_t choice = 0; choice < 7 * 6 * 5; choice++) {
        const gpst_mask_desc desc = pick_desc(choice, &seed);
        uint32_t width, height;
        pick_size(&width, &height, &seed);
        const gpst_image mask = place_gray(a.source, width, height, GPST_DTYPE_U8, &seed);
        const gpst_image out = place_gray(a.out, width, height, GPST_DTYPE_U8, &seed);
        const gpst_image state = place_state(a.state, &mask, &seed);
        const bool unset = choice % 9 == 0; /* a caller who forgets to begin gets the same everywhere, too */
        memset(a.state.begin, choice % 2 ? 0xff : 0xa5, ARENA_BYTES);
        for (uint32_t frame = 0; frame < N_FRAMES; frame++) {
            gpsti_mask_time_job job;
            next_frame(&mask, frame, &seed);
            const bool restart = (frame == 0 && !unset) || test_random(&seed) % 16 == 0;
            if (GPST_FAILED(gpsti_mask_time_job_init("test", &desc, &mask, &out, &state, restart, &job)))
                fail_msg("%s", gpst_last_reason());
            hash = time_case(&a, &job, choice * N_FRAMES + frame, hash);
        }
    }
    arena_close(a.source), arena_close(a.out), arena_close(a.state);
    arena_close(a.out_reference), arena_close(a.state_reference);
    return hash;
}

static void loops_give_the_bits_of_the_reference(void** state) {
    (void)state;
    hash_all(test_seed(60));
}

static void every_build_gives_the_same_hash(void** state) {
    const uint64_t hash = hash_all(1);
    (void)state;
    if (hash != HASH_OF_ALL)
        fail_msg("hash %016llx, expected %016llx", (unsigned long long)hash, (unsigned long long)HASH_OF_ALL);
}

/* ---- the formula ---------------------------------------------------------------------------------- */
enum { MOST = 300 * 50 };

static int64_t nearest(double value) { return (int64_t)(value + 0.5); }

/* As mask_op.h says it. Returns whether it was a cut. */
static bool plain_frame(const gpst_mask_desc* desc, const gpst_image* mask, bool restart, int64_t* mean) {
    const double cut = desc->cut > 0 ? (double)desc->cut : 0.25, change = desc->change > 0 ? (double)desc->change : 0.5;
    const double weight = desc->weight > 0 ? (double)desc->weight : (double)0.35f;
    const int64_t per_pixel = nearest(cut * 65280) < 1 ? 1 : nearest(cut * 65280);
    int64_t share = nearest(weight * 65536), sum = 0;
    share = share < 1 ? 1 : share >= 65535 ? 65536 : share; /* the last is all */
    for (uint32_t i = 0; i < mask->width * mask->height; i++)
        sum += llabs(256 * row_of(mask, i / mask->width)[i % mask->width] - mean[i]);
    const bool is_cut = !restart && cut <= 1 && sum >= per_pixel * mask->width * mask->height;
    for (uint32_t i = 0; i < mask->width * mask->height; i++) {
        const int64_t value = 256 * row_of(mask, i / mask->width)[i % mask->width], difference = llabs(value - mean[i]);
        const int64_t step = difference * share / 65536 + (difference * share % 65536 ? 1 : 0);
        if (restart || is_cut || difference > nearest(change * 65280))
            mean[i] = value;
        else
            mean[i] += value > mean[i] ? step : -step;
    }
    return is_cut;
}

static void frames_follow_the_formula(void** state) {
    uint64_t seed = test_seed(61);
    const arena a = arena_open(), b = arena_open(), c = arena_open();
    static int64_t mean[MOST];
    uint32_t n_cuts = 0, n_frames = 0;
    (void)state;
    for (uint32_t choice = 0; choice < 7 * 6 * 5; choice++) {
        const gpst_mask_desc desc = pick_desc(choice, &seed);
        uint32_t width, height;
        pick_size(&width, &height, &seed);
        const gpst_image mask = place_gray(a, width, height, GPST_DTYPE_U8, &seed);
        const gpst_image out = place_gray(b, width, height, GPST_DTYPE_U8, &seed);
        const gpst_image means = place_state(c, &mask, &seed);
        memset(c.begin, 0xa5, ARENA_BYTES);
        for (uint32_t frame = 0; frame < N_FRAMES; frame++, n_frames++) {
            next_frame(&mask, frame, &seed);
            const bool restart = frame == 0 || test_random(&seed) % 16 == 0;
            memset(b.begin, 0xa5, ARENA_BYTES);
            n_cuts += plain_frame(&desc, &mask, restart, mean);
            if (GPST_FAILED(gpst_mask_time(&desc, &mask, &out, &means, restart, 1)))
                fail_msg("%s", gpst_last_reason());
            for (uint32_t i = 0; i < width * height; i++) {
                const uint32_t x = i % width, y = i / width;
                if (means_of(&means, y)[x] != mean[i] || row_of(&out, y)[x] != (mean[i] + 128) / 256)
                    fail_msg("case %u, frame %u, pixel %u, %u: mean %u, output %u, by the formula %ld", choice, frame,
                             x, y, means_of(&means, y)[x], row_of(&out, y)[x], (long)mean[i]);
            }
        }
    }
    assert_in_range(n_cuts, n_frames / 10, n_frames * 9 / 10);
    arena_close(a), arena_close(b), arena_close(c);
}

/* ---- what it means --------------------------------------------------------------------------------- */
/* One pixel. */
typedef struct pixel {
    uint8_t from, to;
    GPSTI_ALIGNAS(8) uint16_t state[2 * 256];
} pixel;

static uint8_t pixel_next(pixel* p, const gpst_mask_desc* desc, uint8_t value, bool restart) {
    const gpst_image from = mask_of(&p->from, 1, 1), to = mask_of(&p->to, 1, 1), state = state_of(&from, p->state);
    assert_int_equal(state.width * state.height * 2, sizeof p->state);
    p->from = value, p->to = (uint8_t)(value ^ 0x5a);
    assert_int_equal(gpst_mask_time(desc, &from, &to, &state, restart, 1), GPST_OK);
    return p->to;
}

/* A picture that stays is reached exactly, from both sides, without a step back, and by then the mean was where one
   without rounding is. */
static void what_stays_is_reached(void** state) {
    static const float weights[] = {0.01f, 0.1f, 0.35f, 0.9f, 1};
    static const uint8_t values[][2] = {{0, 255}, {255, 0}, {0, 1}, {255, 254}, {17, 200}, {128, 127}, {3, 3}};
    (void)state;
    for (int w = 0; w < 5; w++)
        for (int v = 0; v < 7; v++) {
            const gpst_mask_desc desc = desc_of(weights[w], 1, 2);
            const int begin = values[v][0], end = values[v][1];
            double mean = 256.0 * begin;
            int n = 0, last = begin;
            pixel p;
            assert_int_equal(pixel_next(&p, &desc, (uint8_t)begin, true), begin);
            while (p.state[256] != 256 * end && n++ < 2000) {
                const int out = pixel_next(&p, &desc, (uint8_t)end, false);
                mean += (256.0 * end - mean) * (double)weights[w];
                assert_true(end > begin ? out >= last && out <= end : out <= last && out >= end);
                assert_true(mean - p.state[256] <= 1.01 / (double)weights[w]);
                assert_true(p.state[256] - mean <= 1.01 / (double)weights[w]);
                last = out;
            }
            assert_int_equal(p.state[256], 256 * end);
            assert_int_equal(pixel_next(&p, &desc, (uint8_t)end, false), end);
            assert_true(weights[w] < 1 || n <= 1);
        }
}

static void zeroes_are_the_defaults(void** state) {
    const gpst_mask_desc desc = desc_of(0, 0, 2), spelt = desc_of(0.35f, 0.5f, 2);
    pixel p, q;
    (void)state;
    for (int n = 0; n < 50; n++) {
        const uint8_t value = (uint8_t)(n * n * 31);
        assert_int_equal(pixel_next(&p, &desc, value, n == 0), pixel_next(&q, &spelt, value, n == 0));
        assert_int_equal(p.state[256], q.state[256]);
    }
    pixel_next(&p, &desc, 100, true);
    assert_int_equal(pixel_next(&p, &desc, 200, false), 135);
}

/* Of more than `change`, not of as much: 127.5 of 255 is half. */
static void great_changes_are_taken_at_once(void** state) {
    gpst_mask_desc desc = desc_of(0.5f, 0, 2);
    pixel p;
    (void)state;
    pixel_next(&p, &desc, 0, true);
    assert_int_equal(pixel_next(&p, &desc, 127, false), 64);
    pixel_next(&p, &desc, 0, true);
    assert_int_equal(pixel_next(&p, &desc, 128, false), 128);
    pixel_next(&p, &desc, 255, true);
    assert_int_equal(pixel_next(&p, &desc, 0, false), 0);
    desc.change = 51.0f / 255;
    pixel_next(&p, &desc, 100, true);
    assert_int_equal(pixel_next(&p, &desc, 151, false), 126);
    pixel_next(&p, &desc, 100, true);
    assert_int_equal(pixel_next(&p, &desc, 152, false), 152);
    desc.change = 1; /* hard masks become soft ones */
    pixel_next(&p, &desc, 0, true);
    assert_int_equal(pixel_next(&p, &desc, 255, false), 128);
    assert_int_equal(pixel_next(&p, &desc, 0, false), 64);
}

/* Of four pixels one changes wholly: a mean difference of a quarter. */
static uint8_t after_a_quarter(float cut, uint8_t value) {
    static uint8_t from[4], to[4];
    static GPSTI_ALIGNAS(8) uint16_t room[3 * 256];
    const gpst_mask_desc desc = desc_of(0.5f, 1, cut);
    const gpst_image mask = mask_of(from, 2, 2), out = mask_of(to, 2, 2), state = state_of(&mask, room);
    memset(from, 0, sizeof from);
    assert_int_equal(gpst_mask_time(&desc, &mask, &out, &state, true, 1), GPST_OK);
    from[2] = value;
    assert_int_equal(gpst_mask_time(&desc, &mask, &out, &state, false, 1), GPST_OK);
    assert_int_equal(to[0] | to[1] | to[3], 0);
    return to[2];
}

static void cuts_begin_anew(void** state) {
    (void)state;
    assert_int_equal(after_a_quarter(0, 255), 255); /* as much as cut */
    assert_int_equal(after_a_quarter(0, 254), 127);
    assert_int_equal(after_a_quarter(0.25f, 255), 255);
    assert_int_equal(after_a_quarter(0.2501f, 255), 128);
    assert_int_equal(after_a_quarter(0.1f, 103), 103);
    assert_int_equal(after_a_quarter(0.1f, 101), 51);
    assert_int_equal(after_a_quarter(1, 255), 128);
}

/* Every pixel changes wholly: a cut, unless none is looked for; and what begins anew forgets. */
static void cuts_can_be_switched_off(void** state) {
    gpst_mask_desc desc = desc_of(0.5f, 1, 1);
    pixel p;
    (void)state;
    pixel_next(&p, &desc, 0, true);
    assert_int_equal(pixel_next(&p, &desc, 255, false), 255);
    assert_int_equal(p.state[256], 255 * 256);
    desc.cut = gpsti_f32_from_bits(0x3f800001); /* the next above 1 */
    pixel_next(&p, &desc, 0, true);
    assert_int_equal(pixel_next(&p, &desc, 255, false), 128);
    assert_int_equal(pixel_next(&p, &desc, 40, true), 40);
    assert_int_equal(p.state[256], 40 * 256);
}

static void threads_give_the_same_bits(void** state) {
    enum { W = 150, H = 231 };
    static uint8_t from[W * H], outs[2][W * H];
    static GPSTI_ALIGNAS(8) uint16_t rooms[2][(H + 1) * 256];
    const gpst_mask_desc desc = desc_of(0, 0, 0.3f);
    const gpst_image mask = mask_of(from, W, H);
    uint64_t seed = test_seed(62);
    uint32_t n_cuts = 0;
    (void)state;
    for (uint32_t frame = 0; frame < 24; frame++) {
        next_frame(&mask, frame, &seed);
        for (uint32_t i = 0; i < 2; i++) {
            const gpst_image out = mask_of(outs[i], W, H), means = state_of(&mask, rooms[i]);
            memset(outs[i], i ? 0xa5 : 0x5a, sizeof outs[i]);
            assert_int_equal(gpst_mask_time(&desc, &mask, &out, &means, frame == 0, i ? frame % 6 : 1), GPST_OK);
        }
        assert_memory_equal(outs[0], outs[1], sizeof outs[0]);
        assert_memory_equal(rooms[0], rooms[1], sizeof rooms[0]);
        n_cuts += frame > 0 && memcmp(outs[0], from, sizeof from) == 0;
    }
    assert_in_range(n_cuts, 2, 20);
}

/* As the engine calls it. */
static void a_kernel_takes_many_each_with_its_state(void** state) {
    uint8_t from[2][6] = {{0, 10, 20, 30, 40, 50}, {255, 254, 253, 0, 1, 2}}, to[2][6];
    static GPSTI_ALIGNAS(8) uint16_t rooms[2][3 * 256];
    const gpst_mask_desc desc = desc_of(0.5f, 1, 2);
    gpst_image froms[2], tos[2], states[2];
    gpsti_mask_time_args args;
    gpsti_exec exec = GPST_ZERO;
    (void)state;
    for (int i = 0; i < 2; i++) {
        froms[i] = mask_of(from[i], 3, 2), tos[i] = mask_of(to[i], 3, 2);
        states[i] = state_of(&froms[i], rooms[i]);
    }
    exec.n_threads = 1;
    args.desc = &desc, args.from = froms, args.to = tos, args.states = states;
    args.n = 2, args.restart = true;
    assert_int_equal(gpsti_mask_time_kernel()->host(&args, &exec), GPST_OK);
    assert_memory_equal(to, from, sizeof from);
    for (int i = 0; i < 2; i++)
        memset(from[i], i ? 1 : 100, 6);
    args.restart = false;
    assert_int_equal(gpsti_mask_time_kernel()->host(&args, NULL), GPST_OK);
    assert_int_equal(to[0][1], 55);
    assert_int_equal(to[1][0], 128);
    assert_int_equal(to[1][4], 1);
    states[1].data = NULL;
    expect_refused(gpsti_mask_time_kernel()->host(&args, &exec), "gpst_mask_time: state.data=NULL");
}

static void shapes_are_told(void** state) {
    const gpst_mask_desc desc = desc_of(0, 0, 0);
    static const uint32_t sides[][4] = {
        {1, 1, 256, 2}, {256, 3, 256, 4}, {257, 3, 272, 4}, {1920, 1080, 1920, 1081}, {65535, 65535, 65536, 65536}};
    gpst_image out;
    (void)state;
    for (int i = 0; i < 5; i++) {
        const gpst_image mask = mask_of(NULL, sides[i][0], sides[i][1]);
        assert_int_equal(gpst_mask_query_state(&desc, &mask, &out), GPST_OK);
        assert_int_equal(out.width, sides[i][2]);
        assert_int_equal(out.height, sides[i][3]);
        assert_int_equal(out.pitch_bytes, 2 * out.width);
        assert_true(out.format == GPST_FORMAT_GRAY && out.dtype == GPST_DTYPE_U16 && !out.data);
        assert_int_equal(gpst_mask_query_output(&desc, &mask, &out), GPST_OK);
        assert_int_equal(out.width, sides[i][0]);
        assert_int_equal(out.height, sides[i][1]);
        assert_int_equal(out.pitch_bytes, out.width);
        assert_true(out.format == GPST_FORMAT_GRAY && out.dtype == GPST_DTYPE_U8);
    }
}

/* ---- what is refused ---------------------------------------------------------------------------------- */
enum { SIDE = 9 };

/* A call whose arguments are right. */
typedef struct call {
    gpst_mask_desc desc;
    gpst_image from, to, state;
} call;

static call call_of(void) {
    static uint8_t from[2 * SIDE * SIDE], to[2 * SIDE * SIDE];
    static GPSTI_ALIGNAS(16) uint16_t room[(SIDE + 2) * 256];
    call c;
    c.desc = desc_of(0, 0, 0);
    c.from = mask_of(from, SIDE, SIDE), c.to = mask_of(to, SIDE, SIDE);
    c.state = state_of(&c.from, room);
    return c;
}

/* Both refuse alike, each with its name. */
static void expect_both_refused(const call* c, const char* text) {
    expect_refused(gpst_mask_time(&c->desc, &c->from, &c->to, &c->state, false, 1), "gpst_mask_time: ");
    assert_non_null(strstr(gpst_last_reason(), text));
    expect_refused(gpst_mask_time_launch(&c->desc, &c->from, &c->to, &c->state, false, NULL), "gpst_mask_time_launch: ");
    assert_non_null(strstr(gpst_last_reason(), text));
}

static void bad_descs_are_refused(void** state) {
    call c = call_of();
    gpst_image out;
    (void)state;
    c.desc.kind = GPST_MASK_SMOOTH, expect_both_refused(&c, "desc.kind=5: must be TIME");
    expect_refused(gpst_mask_query_state(&c.desc, &c.from, &out), "gpst_mask_query_state: desc.kind=5: must be TIME");
    c.desc = desc_of(-0.1f, 0, 0), expect_both_refused(&c, "weight=-0.1, change=0: must be 0 to 1");
    c.desc = desc_of(1.5f, 0, 0), expect_both_refused(&c, "weight=1.5, change=0: must be 0 to 1");
    c.desc = desc_of(0, 1.5f, 0), expect_both_refused(&c, "weight=0, change=1.5: must be 0 to 1");
    c.desc = desc_of(gpsti_f32_from_bits(0x7fc00000), 0, 0), expect_both_refused(&c, "weight=nan");
    c.desc = desc_of(0, 0, -1), expect_both_refused(&c, "cut=-1: must be 0 or more");
    c.desc = desc_of(0, 0, gpsti_f32_from_bits(0x7fc00000)), expect_both_refused(&c, "cut=nan");
    expect_refused(gpst_mask_query_state(&c.desc, &c.from, &out), "gpst_mask_query_state: cut=nan");
    expect_refused(gpst_mask_query_output(&c.desc, &c.from, &out), "gpst_mask_query_output: cut=nan");
    c = call_of();
    expect_refused(gpst_mask_query_state(NULL, &c.from, &out), "desc=NULL: required");
    expect_refused(gpst_mask_query_state(&c.desc, NULL, &out), "from=NULL: required");
    c.from.height = 65536;
    expect_refused(gpst_mask_query_state(&c.desc, &c.from, &out), "from.width=9, height=65536: must be 1 to 65535");
    c.from.height = 1, c.from.width = 0;
    expect_refused(gpst_mask_query_state(&c.desc, &c.from, &out), "from.width=0, height=1: must be 1 to 65535");
    assert_int_equal(out.width, 0);
}

static void bad_pictures_are_refused(void** state) {
    const call good = call_of();
    call c = good;
    (void)state;
    expect_refused(gpst_mask_time(NULL, &c.from, &c.to, &c.state, false, 1), "gpst_mask_time: desc=NULL: required");
    expect_refused(gpst_mask_time(&c.desc, NULL, &c.to, &c.state, false, 1), "from=NULL: required");
    expect_refused(gpst_mask_time(&c.desc, &c.from, NULL, &c.state, false, 1), "to=NULL: required");
    expect_refused(gpst_mask_time(&c.desc, &c.from, &c.to, NULL, false, 1), "state=NULL: required");
    c.from.data = NULL, expect_both_refused(&c, "from.data=NULL");
    c = good, c.from.width = 65536, expect_both_refused(&c, "from.width=65536");
    c = good, c.from.dtype = GPST_DTYPE_I8, expect_both_refused(&c, "from.format=1, dtype=4: must be GRAY and U8");
    c = good, c.to.format = GPST_FORMAT_RGB, expect_both_refused(&c, "to.format=2, dtype=0: must be GRAY and U8");
    c = good, c.to.height = 8, expect_both_refused(&c, "to.width=9, height=8: must be the source's 9 x 9");
    c = good, c.to.data = (uint8_t*)c.from.data + 80, expect_both_refused(&c, "to: must not overlap the source");
    c = good, c.to.pitch_bytes = -8, expect_both_refused(&c, "to.pitch_bytes=-8");
    c = good, c.state.width = 9, expect_both_refused(&c, "state=9x10, format=1, dtype=5: must be what "
                                                         "gpst_mask_query_state says: 256x10, GRAY and U16");
    c = good, c.state.height = 9, expect_both_refused(&c, "state=256x9");
    c = good, c.state.dtype = GPST_DTYPE_F16, expect_both_refused(&c, "state=256x10, format=1, dtype=2");
    c = good, c.state.format = GPST_FORMAT_RGB, expect_both_refused(&c, "state=256x10, format=2, dtype=5");
    c = good, c.state.pitch_bytes = 513, expect_both_refused(&c, "state.pitch_bytes=513");
    c = good, c.state.pitch_bytes = 510, expect_both_refused(&c, "state.pitch_bytes=510");
    c = good, c.state.data = (uint8_t*)c.state.data + 4, expect_both_refused(&c, "must be a multiple of 8");
    c = good, c.from.data = (uint8_t*)c.state.data + 10 * 512 - 1;
    expect_both_refused(&c, "state: must overlap neither from nor to");
    c = good, c.to.data = (uint8_t*)c.state.data;
    expect_both_refused(&c, "state: must overlap neither from nor to");
}

/* Calls and stages without a state say who takes one. */
static void others_refuse_the_kind(void** state) {
    static const char text[] = "kind=TIME: has a state: call gpst_mask_time or gpst_mask_time_launch";
    const call c = call_of();
    (void)state;
    expect_refused(gpst_mask_run(&c.desc, &c.from, NULL, &c.to, 1), "gpst_mask_run: kind=TIME");
    expect_refused(gpst_mask_run(&c.desc, &c.from, NULL, &c.to, 1), text);
    expect_refused(gpst_mask_launch(&c.desc, &c.from, NULL, &c.to, NULL), "gpst_mask_launch: kind=TIME");
    expect_refused(gpsti_mask_desc_check(&c.desc, "stages[1].mask"), "stages[1].mask: kind=TIME");
#if !defined(GPSTI_GPU)
    assert_int_equal(gpst_mask_time_launch(&c.desc, &c.from, &c.to, &c.state, true, NULL), GPST_ERROR_UNSUPPORTED);
    assert_non_null(strstr(gpst_last_reason(), "gpst_mask_time_launch: this program has no GPU code"));
#endif
}

int main(int argc, char** argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_give_the_bits_of_the_reference),
        cmocka_unit_test(every_build_gives_the_same_hash),
        cmocka_unit_test(frames_follow_the_formula),
        cmocka_unit_test(what_stays_is_reached),
        cmocka_unit_test(zeroes_are_the_defaults),
        cmocka_unit_test(great_changes_are_taken_at_once),
        cmocka_unit_test(cuts_begin_anew),
        cmocka_unit_test(cuts_can_be_switched_off),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(a_kernel_takes_many_each_with_its_state),
        cmocka_unit_test(shapes_are_told),
        cmocka_unit_test(bad_descs_are_refused),
        cmocka_unit_test(bad_pictures_are_refused),
        cmocka_unit_test(others_refuse_the_kind),
    };
    if (argc > 1 && strcmp(argv[1], "--hash") == 0) {
        printf("%016llx\n", (unsigned long long)hash_all(1));
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
