/* tests/test_pipeline_placement.c -- what metadata does to the pictures of a pipeline: JPEGs that are turned, placed on
   their sphere and looked at from where they were taken, on the cores and by a stand-in for nvJPEG; and segments in
   the files that ENCODE makes. */
#include "test.h"

#if !defined(GPST_TOOL_JPEG)
int main(void) {
    printf("no turbojpeg.h: install libturbojpeg0-dev\n");
    return GPST_TEST_SKIP;
}
#else

#include "codec_kit.h"

#include <math.h>

/* ---- files ------------------------------------------------------------------------------------------------ */

#define MOST_BYTES 262144

/* An APPn segment behind the first marker; the new length. */
static size_t put_segment(uint8_t* jpeg_file, size_t bytes, uint8_t marker, const void* data, size_t data_bytes) {
    const size_t length = data_bytes + 2;
    assert_true(bytes + length + 2 <= MOST_BYTES);
    memmove(jpeg_file + 2 + length + 2, jpeg_file + 2, bytes - 2);
    jpeg_file[2] = 0xff, jpeg_file[3] = marker;
    jpeg_file[4] = (uint8_t)(length >> 8), jpeg_file[5] = (uint8_t)length;
    memcpy(jpeg_file + 6, data, data_bytes);
    return bytes + length + 2;
}

static size_t put_orientation(uint8_t* jpeg_file, size_t bytes, uint32_t orientation) {
    uint8_t exif[] = {'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1,
                      1,   0x12, 0, 3, 0, 0, 0,   1,   0, 0,  0, 0, 0, 0, 0, 0};
    exif[25] = (uint8_t)orientation;
    return put_segment(jpeg_file, bytes, 0xe1, exif, sizeof exif);
}

static size_t put_xmp(uint8_t* jpeg_file, size_t bytes, const char* attributes) {
    char xmp[2048];
    const int used = snprintf(xmp, sizeof xmp,
                              "http://ns.adobe.com/xap/1.0/%c<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF "
                              "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"><rdf:Description "
                              "xmlns:GPano=\"http://ns.google.com/photos/1.0/panorama/\" "
                              "GPano:ProjectionType=\"equirectangular\" %s/></rdf:RDF></x:xmpmeta>",
                              0, attributes);
    assert_true(used > 0 && used < (int)sizeof xmp);
    return put_segment(jpeg_file, bytes, 0xe1, xmp, (size_t)used);
}

static size_t make_jpeg(uint8_t* jpeg_file, uint32_t width, uint32_t height, gpst_format chroma, uint32_t seed) {
    static uint8_t pixels[200 * 200 * 3];
    gpst_image image = GPST_ZERO;
    gpst_jpeg_encode_desc desc = GPST_ZERO;
    gpst_jpeg* jpeg = NULL;
    size_t bytes = MOST_BYTES;
    image.data = pixels;
    image.width = width, image.height = height;
    image.format = chroma == GPST_FORMAT_GRAY ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB;
    paint(pixels, width, height, gpst_format_channels(image.format), seed);
    desc.chroma = chroma == GPST_FORMAT_GRAY ? GPST_FORMAT_INVALID : chroma;
    assert_int_equal(gpst_jpeg_create(NULL, &jpeg), GPST_OK);
    assert_int_equal(gpst_jpeg_encode(jpeg, &image, &desc, jpeg_file, &bytes), GPST_OK);
    gpst_jpeg_destroy(jpeg);
    return bytes;
}

/* As the plain call decodes it, into the given memory. */
static gpst_image decode_plainly(const uint8_t* jpeg_file, size_t bytes, uint8_t* pixels) {
    gpst_image image = GPST_ZERO;
    gpst_jpeg_info info;
    gpst_jpeg* jpeg = NULL;
    assert_int_equal(gpst_jpeg_read_header(jpeg_file, bytes, &info), GPST_OK);
    image.data = pixels;
    image.width = info.width, image.height = info.height, image.format = info.format;
    assert_int_equal(gpst_jpeg_create(NULL, &jpeg), GPST_OK);
    assert_int_equal(gpst_jpeg_decode(jpeg, jpeg_file, bytes, NULL, &image, NULL), GPST_OK);
    gpst_jpeg_destroy(jpeg);
    return image;
}

static const gpst_format chromas[] = {GPST_FORMAT_JPEG_420, GPST_FORMAT_JPEG_444, GPST_FORMAT_GRAY};

/* ---- orientation ----------------------------------------------------------------------------------------- */

static void add_turned(run* self, bool ignored) {
    static uint8_t bytes[MOST_BYTES], stored[200 * 200 * 3], turned[200 * 200 * 3];
    for (uint32_t o = 1; o <= 8; o++)
        for (int c = 0; c < 3; c++) {
            size_t n = make_jpeg(bytes, 71, 45, chromas[c], o);
            const gpst_image from = decode_plainly(bytes, n, stored);
            gpst_image to = from;
            n = put_orientation(bytes, n, o);
            to.data = turned;
            to.width = o >= 5 ? from.height : from.width;
            to.height = o >= 5 ? from.width : from.height;
            assert_int_equal(gpst_image_orient(&from, o, &to), GPST_OK);
            expect_views(self, add_file(self, "jpg", bytes, n), ignored ? &from : &to);
        }
}

static void files_are_turned(void** state) {
    static const char* const backends[] = {"cpu", "sim"};
    run self;
    (void)state;
    use_fake("7", "");
    for (int ignored = 0; ignored < 2; ignored++)
        for (int b = 0; b < 2; b++) {
            open_run(&self);
            self.backend = backends[b];
            self.mode = GPST_RUN_ENGINE;
            self.decode.placement.ignore_orientation = ignored == 1;
            self.decode.codec = GPST_CODEC_GPU; /* which has no turned ones */
            add_turned(&self, ignored == 1);
            go(&self);
            check_whole(&self);
            assert_int_equal(self.n_device, b == 0 ? 0 : ignored ? 24 : 3);
            self.mode = GPST_RUN_PLAIN_SERIAL;
            go(&self);
            check_whole(&self);
            close_run(&self);
        }
}

/* ---- a part of a sphere ------------------------------------------------------------------------------------ */

static void add_placed(run* self, uint32_t orientation) {
    static uint8_t bytes[MOST_BYTES], stored[200 * 200 * 3], whole[160 * 80 * 3];
    size_t n = make_jpeg(bytes, orientation >= 5 ? 40 : 90, orientation >= 5 ? 90 : 40, GPST_FORMAT_JPEG_420, 3);
    const gpst_image from = decode_plainly(bytes, n, stored);
    gpst_image picture = from, window = from;
    n = put_xmp(bytes, n,
                "GPano:FullPanoWidthPixels=\"160\" GPano:FullPanoHeightPixels=\"80\" "
                "GPano:CroppedAreaImageWidthPixels=\"90\" GPano:CroppedAreaImageHeightPixels=\"40\" "
                "GPano:CroppedAreaLeftPixels=\"30\" GPano:CroppedAreaTopPixels=\"22\"");
    if (orientation != 1)
        n = put_orientation(bytes, n, orientation);
    memset(whole, 0, sizeof whole);
    picture.data = whole;
    picture.width = 160, picture.height = 80;
    window.data = whole + 3 * (22 * 160 + 30);
    window.width = 90, window.height = 40, window.pitch_bytes = 3 * 160;
    assert_int_equal(gpst_image_orient(&from, orientation, &window), GPST_OK);
    expect_views(self, add_file(self, "jpg", bytes, n), &picture);
}

static void parts_are_placed(void** state) {
    static const char* const backends[] = {"cpu", "sim"};
    run self;
    (void)state;
    use_fake("7", "");
    for (int b = 0; b < 2; b++) {
        open_run(&self);
        self.backend = backends[b];
        self.decode.placement.sphere = true;
        self.decode.codec = GPST_CODEC_GPU;
        add_placed(&self, 1);
        add_placed(&self, 8);
        go(&self);
        check_whole(&self);
        assert_int_equal(self.n_notes, 2);
        assert_non_null(strstr(self.note, "GPano: 90x40 placed at 30,22 of a sphere of 160x80"));
        self.decode.max_pixels = 160 * 80 - 1; /* of the sphere, too */
        go(&self);
        assert_int_equal(self.n_failed, 2);
        assert_non_null(strstr(self.reason, "160x80 are 12800 pixels; at most 12799"));
        close_run(&self);
    }
}

/* A few bytes do not ask for gigabytes. */
static void spheres_have_limits(void** state) {
    static uint8_t bytes[MOST_BYTES];
    gpst_jpeg_info info;
    run self;
    (void)state;
    open_run(&self);
    size_t n = make_jpeg(bytes, 16, 8, GPST_FORMAT_JPEG_420, 1);
    n = put_xmp(bytes, n,
                "GPano:FullPanoWidthPixels=\"1600\" GPano:FullPanoHeightPixels=\"800\" "
                "GPano:CroppedAreaImageWidthPixels=\"16\" GPano:CroppedAreaImageHeightPixels=\"8\"");
    (void)add_file(&self, "jpg", bytes, n);
    self.decode.placement.sphere = true;
    assert_int_equal(gpst_jpeg_read_header(bytes, n, &info), GPST_OK);
    self.decode.max_bytes = n + info.decoder_bytes + 1600 * 800 * 3; /* all that is there at once */
    go(&self);
    assert_int_equal(self.n_failed, 0);
    self.decode.max_bytes--;
    go(&self);
    assert_int_equal(self.n_failed, 1);
    assert_non_null(strstr(self.reason, "JPEG: 16x8 pixels, turned or placed in 1600x800, take 39"));
    self.decode.max_bytes = 0; /* 8256 pixels for a byte, and no more */
    n = make_jpeg(bytes, 16, 8, GPST_FORMAT_JPEG_420, 1);
    n = put_xmp(bytes, n,
                "GPano:FullPanoWidthPixels=\"16000\" GPano:FullPanoHeightPixels=\"8000\" "
                "GPano:CroppedAreaImageWidthPixels=\"16\" GPano:CroppedAreaImageHeightPixels=\"8\"");
    (void)add_file(&self, "jpg", bytes, n);
    go(&self);
    assert_int_equal(self.n_failed, 1);
    assert_non_null(strstr(self.reason, "bytes cannot hold a part of a sphere of 16000x8000"));
    close_run(&self);
}

/* ---- how it was taken -------------------------------------------------------------------------------------- */

/* A panorama whose value is a plain function of the direction, in its own frame. */
static double shade(const double d[3]) { return 2.0 + d[0] + 0.5 * d[1] - 0.25 * d[2]; }

enum { SKY_WIDTH = 720, SKY_HEIGHT = 360, VIEW = 33 };

typedef struct look {
    gpst_view pose;
    bool refused;
} look;

static gpst_result decode_sky(void* user_data, gpst_task* task) {
    const double pi = 3.14159265358979323846;
    const look* const self = (const look*)user_data;
    gpst_image shape = GPST_ZERO, picture;
    shape.width = SKY_WIDTH, shape.height = SKY_HEIGHT;
    shape.format = GPST_FORMAT_GRAY, shape.dtype = GPST_DTYPE_F32;
    const gpst_result result = gpst_task_set_picture(task, 0, 0, &shape, &picture);
    if (GPST_FAILED(result))
        return result;
    for (int y = 0; y < SKY_HEIGHT; y++)
        for (int x = 0; x < SKY_WIDTH; x++) {
            const double a = pi * ((2 * x + 1.0) / SKY_WIDTH - 1.0), b = 0.5 * pi * ((2 * y + 1.0) / SKY_HEIGHT - 1.0);
            const double d[3] = {cos(b) * sin(a), sin(b), cos(b) * cos(a)};
            ((float*)picture.data)[y * SKY_WIDTH + x] = (float)shade(d);
        }
    gpst_task_note(task, "a sky");
    gpst_task_note(task, "and no more");
    return gpst_task_set_pose(task, &self->pose);
}

static gpst_result check_sky(void* user_data, gpst_task* task) {
    static const gpst_view views[2] = {{30, -20, 5, 80, 0}, {200, 40, 0, 60, 0}};
    const double pi = 3.14159265358979323846;
    const look* const self = (const look*)user_data;
    double pose[9], view[9];
    gpst_view_rotation(&self->pose, pose);
    assert_string_equal(task->item->note, "a sky; and no more");
    for (int v = 0; v < 2; v++) {
        const float* const pixels = (const float*)task->item->sets[1].pictures[v].data;
        const double reach = tan(0.5 * views[v].hfov * pi / 180.0);
        gpst_view_rotation(&views[v], view);
        for (int y = 0; y < VIEW; y++)
            for (int x = 0; x < VIEW; x++) {
                const double ray[3] = {reach * ((2 * x + 1.0) / VIEW - 1.0), reach * ((2 * y + 1.0) / VIEW - 1.0), 1.0};
                const double length = sqrt(ray[0] * ray[0] + ray[1] * ray[1] + 1.0);
                double world[3], own[3];
                for (int r = 0; r < 3; r++)
                    world[r] = (view[3 * r] * ray[0] + view[3 * r + 1] * ray[1] + view[3 * r + 2] * ray[2]) / length;
                for (int r = 0; r < 3; r++) /* from the world into the panorama's frame */
                    own[r] = pose[r] * world[0] + pose[3 + r] * world[1] + pose[6 + r] * world[2];
                if (fabs(shade(own) - (double)pixels[y * VIEW + x]) > 2e-4)
                    return gpst_task_fail(task, GPST_ERROR_CALLBACK, "view %d, %d, %d: %g instead of %g", v, x, y,
                                          (double)pixels[y * VIEW + x], shade(own));
            }
    }
    return GPST_OK;
}

static gpst_result four_skies(void* user_data, uint64_t index, gpst_input* out) {
    (void)user_data;
    (void)out;
    return index < 4 ? GPST_OK : GPST_END;
}

static gpst_result look_around(const char* backend, look* self) {
    static const gpst_view views[2] = {{30, -20, 5, 80, 0}, {200, 40, 0, 60, 0}};
    gpst_warp_desc warp_desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_stage_desc stages[3];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    warp_desc.map = GPST_MAP_EQUIRECT;
    warp_desc.views = views, warp_desc.n_views = 2;
    warp_desc.width = warp_desc.height = VIEW;
    warp_desc.format = GPST_FORMAT_GRAY, warp_desc.dtype = GPST_DTYPE_F32;
    assert_int_equal(gpst_warp_create(&warp_desc, &warp), GPST_OK);
    context_desc.backend = backend;
    assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
    gpst_stage_host(&stages[0], 0, GPST_SET(0), decode_sky, self);
    gpst_stage_warp(&stages[1], 0, 1, warp);
    gpst_stage_host(&stages[2], GPST_SET(1), 0, check_sky, self);
    desc.stages = stages, desc.n_stages = 3;
    desc.source = four_skies;
    assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
    const gpst_result result = gpst_pipeline_run(pipeline);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    gpst_context_destroy(context);
    gpst_warp_destroy(warp);
    return result;
}

static void views_stay_where_they_are(void** state) {
    static const gpst_view poses[] = {{0, 0, 0, 0, 0}, {90, 0, 0, 0, 0}, {0, 15, 0, 0, 0}, {0, 0, -30, 0, 0},
                                      {-123, 25, 170, 0, 0}};
    static const char* const backends[] = {"cpu", "sim"};
    look self = GPST_ZERO;
    (void)state;
    for (int b = 0; b < 2; b++) {
        for (size_t i = 0; i < sizeof poses / sizeof poses[0]; i++) {
            self.pose = poses[i];
            assert_int_equal(look_around(backends[b], &self), GPST_OK);
        }
        self.pose.roll = 2e6;
        assert_int_equal(look_around(backends[b], &self), GPST_ERROR_ARGUMENT);
    }
}

/* The same from a file: a heading of 90 degrees is views 90 degrees further left, to the last bit. */
static void poses_of_files(void** state) {
    static const char* const backends[] = {"cpu", "sim"};
    static const gpst_view turned[N_VIEWS] = {{-90, 0, 0, 90, 0}, {30, 0, 0, 90, 0}, {150, 0, 0, 90, 0}};
    static const gpst_view straight[N_VIEWS] = {{0, 0, 0, 90, 0}, {120, 0, 0, 90, 0}, {240, 0, 0, 90, 0}};
    static uint8_t bytes[MOST_BYTES], pixels[200 * 200 * 3];
    gpst_warp_desc desc = GPST_ZERO;
    run self;
    (void)state;
    use_fake("7", "");
    desc.map = GPST_MAP_EQUIRECT;
    desc.n_views = N_VIEWS, desc.width = 48, desc.height = 32, desc.format = GPST_FORMAT_RGB;
    for (int b = 0; b < 2; b++) {
        open_run(&self);
        gpst_warp_destroy(self.warp);
        desc.views = turned;
        assert_int_equal(gpst_warp_create(&desc, &self.warp), GPST_OK);
        for (int i = 0; i < 4; i++) {
            size_t n = make_jpeg(bytes, 128, 64, GPST_FORMAT_JPEG_444, (uint32_t)i);
            const gpst_image picture = decode_plainly(bytes, n, pixels);
            n = put_xmp(bytes, n, "GPano:FullPanoWidthPixels=\"128\" GPano:FullPanoHeightPixels=\"64\" "
                                  "GPano:CroppedAreaImageWidthPixels=\"128\" GPano:CroppedAreaImageHeightPixels=\"64\" "
                                  "GPano:CroppedAreaLeftPixels=\"0\" GPano:CroppedAreaTopPixels=\"0\" "
                                  "GPano:PoseHeadingDegrees=\"90.0\"");
            expect_views(&self, add_file(&self, "jpg", bytes, n), &picture);
        }
        gpst_warp_destroy(self.warp);
        desc.views = straight;
        assert_int_equal(gpst_warp_create(&desc, &self.warp), GPST_OK);
        self.backend = backends[b];
        self.mode = GPST_RUN_ENGINE;
        self.decode.codec = GPST_CODEC_GPU;
        self.decode.placement.sphere = true;
        go(&self);
        check_whole(&self);
        assert_int_equal(self.n_device, b == 0 ? 0 : 4);
        for (int k = 1; b == 1 && k <= 8; k++) { /* what the device had decoded is decoded again, and said once */
            char backend[64];
            snprintf(backend, sizeof backend, "sim:lose_at=%d", k);
            self.backend = backend;
            go(&self);
            check_whole(&self);
            assert_int_equal(self.n_notes, 4);
            assert_string_equal(self.note, "GPano: the camera was turned: views look into the world");
        }
        self.backend = backends[b];
        self.decode.placement.ignore_pose = true;
        go(&self);
        assert_int_not_equal(gpsti_a32_load(&self.n_wrong), 0);
        close_run(&self);
    }
}

/* ---- segments ------------------------------------------------------------------------------------------------ */

typedef struct tagged {
    run run;
    bool lies, fails;
    gpsti_a64 n_tagged;
} tagged;

/* Of another length for each picture. */
static gpst_result make_segments(void* user_data, const gpst_item* item, uint32_t picture_index, void* out,
                                 size_t* bytes) {
    const tagged* const self = (const tagged*)user_data;
    uint8_t* const to = (uint8_t*)out;
    const size_t length = 6 + 100 * picture_index + (self->lies && out ? 1 : 0);
    if (self->fails)
        return gpst_task_fail(NULL, GPST_ERROR_FORMAT, "no segments today");
    if (!item->file_data || item->file_bytes == 0 || !item->metadata) /* whoever decoded it has read them */
        return GPST_ERROR_STATE;
    if (out) {
        memset(to, 'x', *bytes);
        to[0] = 0xff, to[1] = 0xe5, to[2] = (uint8_t)((*bytes - 2) >> 8), to[3] = (uint8_t)(*bytes - 2);
    }
    *bytes = length;
    return GPST_OK;
}

/* Without the segment the file is the one expected. */
static gpst_result take_tagged(void* user_data, gpst_task* task) {
    static const uint8_t begin[4] = {0xff, 0xd8, 0xff, 0xe5};
    tagged* const self = (tagged*)user_data;
    const size_t before = 6 + 100 * task->picture_index;
    uint8_t* const copy = (uint8_t*)malloc(task->encoded_bytes);
    assert_non_null(copy);
    memcpy(copy, task->encoded, task->encoded_bytes);
    if (memcmp(copy, begin, sizeof begin) != 0)
        (void)gpsti_a32_add(&self->run.n_wrong, 1);
    copy[before] = 0xff, copy[before + 1] = 0xd8;
    if (hash_of(copy + before, task->encoded_bytes - before) !=
        self->run.files[task->item->index].views[task->picture_index])
        (void)gpsti_a32_add(&self->run.n_wrong, 1);
    gpsti_a64_add(&self->n_tagged, 1);
    free(copy);
    return GPST_OK;
}

static void go_tagged(tagged* self) {
    self->run.encode.segments = make_segments;
    self->run.encode.segments_user_data = self;
    self->run.encoded_func = take_tagged;
    gpsti_a64_store(&self->n_tagged, 0);
    go(&self->run);
}

static void files_have_segments(void** state) {
    static const char* const backends[] = {"cpu", "sim"};
    static tagged self;
    (void)state;
    use_fake("7", "");
    for (int b = 0; b < 2; b++) {
        open_run(&self.run);
        self.lies = self.fails = false;
        self.run.backend = backends[b];
        self.run.mode = GPST_RUN_ENGINE;
        self.run.decode.codec = self.run.encode.codec = GPST_CODEC_GPU;
        add_all_jpegs(&self.run, 12);
        go_tagged(&self);
        check_whole(&self.run);
        assert_int_equal(gpsti_a64_load(&self.n_tagged), 12 * N_VIEWS);
        assert_int_equal(self.run.n_encoded_device, b == 0 ? 0 : 12);
        self.lies = true;
        go_tagged(&self);
        assert_int_equal(self.run.n_failed, 12);
        assert_non_null(strstr(self.run.reason, "segments: "));
        self.lies = false, self.fails = true;
        go_tagged(&self);
        assert_int_equal(self.run.n_failed, 12);
        assert_string_equal(self.run.reason, "no segments today");
        close_run(&self.run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_turned), cmocka_unit_test(parts_are_placed),
        cmocka_unit_test(spheres_have_limits),
        cmocka_unit_test(views_stay_where_they_are), cmocka_unit_test(poses_of_files),
        cmocka_unit_test(files_have_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
