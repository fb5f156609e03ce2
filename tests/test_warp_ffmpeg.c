/* tests/test_warp_ffmpeg.c -- the ffmpeg convention against the ffmpeg on this machine, live: v360, planar
   RGB so that no chroma is scaled. Its v360 must be that of FFmpeg 5.1 or later. */
#include "test.h"

#include <math.h>
#include <unistd.h>

#define SOURCE_W 1024
#define SOURCE_H 512

static char folder[64];
static uint8_t source_pixels[SOURCE_W * SOURCE_H * 3];

/* Detail down to a few pixels a period, different in each channel, continuous over seam and poles. */
static void draw_source(void) {
    for (int y = 0; y < SOURCE_H; y++) {
        for (int x = 0; x < SOURCE_W; x++) {
            const double phi = ((x + 0.5) / SOURCE_W - 0.5) * 2 * 3.14159265358979,
                         theta = ((y + 0.5) / SOURCE_H - 0.5) * 3.14159265358979;
            const double u = cos(theta) * sin(phi), v = sin(theta), w = cos(theta) * cos(phi);
            for (int c = 0; c < 3; c++) {
                const double f = 40.0 + 25 * c;
                const double value = sin(f * u + c) * cos(f * 0.7 * w) + sin(f * 0.9 * v + 2 * c);
                source_pixels[(y * SOURCE_W + x) * 3 + c] = (uint8_t)lrint(127.5 + 60 * value);
            }
        }
    }
}

static int write_source(void** state) {
    char path[96];
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/gpustage_ffmpeg_XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    draw_source();
    snprintf(path, sizeof path, "%s/in.ppm", folder);
    FILE* file = fopen(path, "wb");
    if (!file)
        return -1;
    fprintf(file, "P6\n%d %d\n255\n", SOURCE_W, SOURCE_H);
    const bool whole = fwrite(source_pixels, sizeof source_pixels, 1, file) == 1;
    return fclose(file) == 0 && whole ? 0 : -1;
}

static int remove_folder(void** state) {
    char path[96];
    (void)state;
    snprintf(path, sizeof path, "%s/in.ppm", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/out.rgb", folder);
    unlink(path);
    return rmdir(folder);
}

typedef struct shot {
    double yaw, pitch, roll, hfov, vfov;
    uint32_t width, height;
    bool nearest;
} shot;

static void run_ffmpeg(const shot* s, uint8_t* out, size_t bytes) {
    char command[512], path[96];
    snprintf(path, sizeof path, "%s/out.rgb", folder);
    snprintf(command, sizeof command,
             "ffmpeg -v error -y -i %s/in.ppm -vf "
             "format=gbrp,v360=e:flat:yaw=%g:pitch=%g:roll=%g:h_fov=%g:v_fov=%g:w=%u:h=%u:"
             "interp=%s,format=rgb24 -f rawvideo %s </dev/null",
             folder, s->yaw, s->pitch, s->roll, s->hfov, s->vfov, s->width, s->height,
             s->nearest ? "near" : "line", path);
    assert_int_equal(system(command), 0);
    FILE* file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(out, 1, bytes, file), bytes);
    fclose(file);
}

static void run_ours(const shot* s, gpst_convention convention, uint8_t* out) {
    gpst_view view = GPST_ZERO;
    gpst_warp_desc desc = GPST_ZERO;
    gpst_image source = GPST_ZERO, output = GPST_ZERO;
    gpst_warp* warp = NULL;
    view.yaw = s->yaw, view.pitch = s->pitch, view.roll = s->roll, view.hfov = s->hfov, view.vfov = s->vfov;
    desc.map = GPST_MAP_EQUIRECT;
    desc.filter = s->nearest ? GPST_FILTER_NEAREST : GPST_FILTER_BILINEAR;
    desc.convention = convention;
    desc.views = &view;
    desc.n_views = 1;
    desc.width = s->width;
    desc.height = s->height;
    desc.format = GPST_FORMAT_RGB;
    source.data = source_pixels;
    source.width = SOURCE_W;
    source.height = SOURCE_H;
    source.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_output(warp, &output);
    output.data = out;
    assert_int_equal(gpst_warp_run(warp, &source, &output, 1, 1), GPST_OK);
    gpst_warp_destroy(warp);
}

static double psnr(const uint8_t* a, const uint8_t* b, size_t bytes) {
    double sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum += (double)((a[i] - b[i]) * (a[i] - b[i]));
    return sum > 0 ? 10 * log10(255.0 * 255.0 * (double)bytes / sum) : 99.0;
}

static void views_agree(void** state) {
    static const shot shots[] = {
        {0, 0, 0, 90, 60, 320, 240, false},     {180, 0, 0, 100, 80, 320, 240, false},
        {30, 90, 0, 90, 90, 256, 256, false},   {-60, -90, 20, 70, 70, 255, 129, false},
        {40, -25, 10, 90, 60, 320, 180, false}, {-135, 60, -45, 120, 90, 300, 200, false},
        {179, 5, 0, 40, 30, 320, 240, false},   {10, 80, 170, 90, 90, 256, 256, true},
        {100, -20, 33, 75, 50, 320, 200, true},
    };
    static uint8_t theirs[320 * 256 * 3], ours[320 * 256 * 3];
    (void)state;
    for (size_t i = 0; i < sizeof shots / sizeof shots[0]; i++) {
        const shot* s = &shots[i];
        const size_t bytes = (size_t)s->width * s->height * 3;
        memset(theirs, 0xa5, sizeof theirs);
        memset(ours, 0xa5, sizeof ours);
        run_ffmpeg(s, theirs, bytes);
        run_ours(s, GPST_CONVENTION_FFMPEG, ours);
        const double emulated = psnr(ours, theirs, bytes);
        run_ours(s, GPST_CONVENTION_NATIVE, ours);
        printf("yaw %g pitch %g roll %g hfov %g vfov %g %s: PSNR %.1f dB; native convention %.1f dB\n",
               s->yaw, s->pitch, s->roll, s->hfov, s->vfov, s->nearest ? "nearest" : "bilinear", emulated,
               psnr(ours, theirs, bytes));
        if (emulated < (s->nearest ? 45.0 : 60.0))
            fail_msg("too far from ffmpeg");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(views_agree)};
    if (system("ffmpeg -hide_banner -filters 2>/dev/null </dev/null | grep -q v360") != 0) {
        printf("skipped: no ffmpeg with the v360 filter on this machine\n");
        return GPST_TEST_SKIP;
    }
    return cmocka_run_group_tests(tests, write_source, remove_folder);
}
