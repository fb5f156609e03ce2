/* tools/demo_scene.c -- writes frames of the analytic scene: demo_scene OUTDIR N [WIDTHxHEIGHT] [jpg|ppm].
   The scene is in scene.h, the file formats in gpustage/codec.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpustage/codec.h"
#include "scene.h"

static bool write_file(const char* path, const void* data, size_t bytes) {
    FILE* file = fopen(path, "wb");
    if (!file) {
        perror(path);
        return false;
    }
    const bool written = fwrite(data, 1, bytes, file) == bytes;
    const bool closed = fclose(file) == 0;
    if (!written || !closed)
        fprintf(stderr, "%s: could not be written\n", path);
    return written && closed;
}

typedef struct demo {
    const char* directory;
    codec_kind kind;
    codec* encoder;
    gpst_image image;
    uint8_t *background, *encoded;
    size_t bound;
    scene now;
} demo;

static const codec_options demo_options = {95, 444, NULL, 0, NULL, 0};

static bool demo_frame(demo* self, int index) {
    char path[4096], reason[CODEC_REASON_BYTES];
    size_t bytes = self->bound;
    const int length =
        snprintf(path, sizeof path, "%s/frame_%03d.%s", self->directory, index, codec_extension(self->kind));
    if (length < 0 || (size_t)length >= sizeof path) {
        fprintf(stderr, "%s: the name is too long\n", self->directory);
        return false;
    }
    scene_prepare(&self->now, SCENE_ALL, index);
    if (!scene_render_frame(&self->now, (int)self->image.width, (int)self->image.height, self->background,
                            (uint8_t*)self->image.data)) {
        fprintf(stderr, "out of memory\n");
        return false;
    }
    if (GPST_FAILED(codec_encode(self->encoder, self->kind, &self->image, &demo_options, self->encoded,
                                 &bytes, reason))) {
        fprintf(stderr, "%s\n", reason);
        return false;
    }
    return write_file(path, self->encoded, bytes);
}

static bool demo_run(demo* self, int n_frames) {
    const size_t bytes = gpst_image_row_bytes(&self->image) * self->image.height;
    self->image.data = malloc(bytes);
    self->background = (uint8_t*)malloc(bytes);
    self->bound = codec_encode_bound(self->kind, &self->image, &demo_options);
    self->encoded = (uint8_t*)malloc(self->bound);
    self->encoder = codec_create();
    scene_prepare(&self->now, SCENE_ALL, 0);
    bool ok = self->image.data && self->background && self->encoded && self->encoder &&
              scene_render_background(&self->now, (int)self->image.width, (int)self->image.height,
                                      self->background);
    if (!ok)
        fprintf(stderr, "out of memory\n");
    for (int i = 0; ok && i < n_frames; i++)
        ok = demo_frame(self, i);
    codec_destroy(self->encoder);
    free(self->encoded);
    free(self->background);
    free(self->image.data);
    return ok;
}

int main(int argc, char** argv) {
    demo self;
    unsigned width = 4096, height = 2048;
    char end;
    memset(&self, 0, sizeof self);
    self.kind = codec_available(CODEC_JPEG) ? CODEC_JPEG : CODEC_PNM;
    const int n_frames = argc > 2 ? atoi(argv[2]) : 0;
    const bool size_ok = argc < 4 || (sscanf(argv[3], "%5ux%5u%c", &width, &height, &end) == 2 && width > 0 &&
                                      width <= CODEC_MAX_SIDE && height > 0 && height <= CODEC_MAX_SIDE);
    if (argc > 4)
        self.kind = strcmp(argv[4], "jpg") == 0   ? CODEC_JPEG
                    : strcmp(argv[4], "ppm") == 0 ? CODEC_PNM
                                                  : CODEC_UNKNOWN;
    if (argc < 3 || argc > 5 || n_frames < 1 || n_frames > 1000 || !size_ok || !codec_available(self.kind)) {
        fprintf(stderr,
                "usage: %s OUTDIR N [WIDTHxHEIGHT] [jpg|ppm]\n"
                "writes frame_000 ... of a 360-degree scene (N up to 1000, 4096x2048, jpg%s)\n",
                argv[0], codec_available(CODEC_JPEG) ? "" : ": not compiled in");
        return 2;
    }
    self.directory = argv[1];
    self.image.width = width;
    self.image.height = height;
    self.image.format = GPST_FORMAT_RGB;
    return demo_run(&self, n_frames) ? 0 : 1;
}
