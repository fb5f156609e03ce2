/* tests/fuzz/fuzz_codec.c -- any bytes into the command's codecs: header, decode, and what was decoded
   written and read again.

   With a fuzzer (clang's), and with run_corpus.c instead of one:
   clang -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_codec.c tools/gpustage/codec*.c gpustage.c
   cc tests/fuzz/fuzz_codec.c tests/fuzz/run_corpus.c tools/gpustage/codec*.c gpustage.c -pthread
   PNG, TIFF and WebP come with -DGPST_TOOL_PNG -lspng, -DGPST_TOOL_TIFF -ltiff and -DGPST_TOOL_WEBP -lwebp.
*/
#include "../../tools/gpustage/codec.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

#define MAX_PIXEL_BYTES ((size_t)1 << 24)

static void require(bool holds) {
    if (!holds)
        abort();
}

/* Lossless formats give back what they were given. */
static void write_and_read(codec* self, const gpst_image* image, codec_kind kind, size_t image_bytes) {
    const codec_options options = {95, 444, NULL, 0, NULL, 0};
    char reason[CODEC_REASON_BYTES];
    gpst_image again;
    codec_kind found;
    size_t used = codec_encode_bound(kind, image, &options);
    void* file = malloc(used);
    require(used > 0 && file);
    require(codec_encode(self, kind, image, &options, file, &used, reason) == GPST_OK);
    require(codec_read_header(self, file, used, NULL, &found, &again, reason) == GPST_OK && found == kind);
    again.data = malloc(image_bytes);
    require(again.data && codec_decode(self, file, used, found, &again, reason) == GPST_OK);
    require(memcmp(again.data, image->data, image_bytes) == 0);
    free(again.data);
    free(file);
}

/* The input is not only the file: it is an EXIF block that goes with it, too. */
static void write_with_exif(codec* self, const gpst_image* image, const uint8_t* exif, size_t exif_bytes) {
    codec_options options = {95, 444, NULL, 0, NULL, 0};
    char reason[CODEC_REASON_BYTES] = "";
    options.exif = exif;
    options.exif_bytes = exif_bytes;
    size_t used = codec_encode_bound(CODEC_TIFF, image, &options);
    void* file = malloc(used);
    require(used > 0 && file);
    const gpst_result result = codec_encode(self, CODEC_TIFF, image, &options, file, &used, reason);
    require(!GPST_FAILED(result) || reason[0] != '\0');
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    char reason[CODEC_REASON_BYTES] = "";
    gpst_image image;
    codec_kind kind;
    size_t image_bytes;
    codec* self = codec_create();
    uint8_t* copy = (uint8_t*)malloc(bytes ? bytes : 1); /* exactly as long as the file, for the sanitizers */
    require(self && copy);
    if (bytes)
        memcpy(copy, data, bytes);
    const gpst_result header = codec_read_header(self, copy, bytes, NULL, &kind, &image, reason);
    require(!GPST_FAILED(header) || reason[0] != '\0');
    if (!GPST_FAILED(header) && gpst_image_bytes(&image, &image_bytes) == GPST_OK &&
        image_bytes <= MAX_PIXEL_BYTES) {
        image.data = malloc(image_bytes);
        require(image.data != NULL);
        const gpst_result result = codec_decode(self, copy, bytes, kind, &image, reason);
        require(!GPST_FAILED(result) || reason[0] != '\0');
        require(!GPST_FAILED(result) || kind >= CODEC_TIFF || kind == CODEC_JPEG ||
                kind == CODEC_PNG); /* the header saw all of the others */
        if (!GPST_FAILED(result)) {
            if (image.dtype == GPST_DTYPE_U8 || image.dtype == GPST_DTYPE_U16)
                write_and_read(self, &image, CODEC_PNM, image_bytes);
            write_and_read(self, &image, CODEC_NPY, image_bytes);
            if (codec_available(CODEC_TIFF) && image.dtype != GPST_DTYPE_I8) {
                write_and_read(self, &image, CODEC_TIFF, image_bytes);
                write_with_exif(self, &image, copy, bytes);
            }
        }
        free(image.data);
    }
    free(copy);
    codec_destroy(self);
    return 0;
}
