/* tests/fuzz/fuzz_jpeg.c -- any bytes into the library's JPEG: header, plain or not, mending, decoding of every kind.

   With a fuzzer (clang's), and with run_corpus.c instead of one:
   clang -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_jpeg.c gpustage.c
   cc tests/fuzz/fuzz_jpeg.c tests/fuzz/run_corpus.c gpustage.c -pthread
   Where there is no libturbojpeg headers alone are read.
*/
#include "../../gpustage.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

#define MAX_PIXELS ((uint64_t)1 << 20)

static void require(bool holds) {
    if (!holds)
        abort();
}

/* The decoder is the same for all inputs: none may leave anything behind for the next. */
static gpst_jpeg* decoder(void) {
    static gpst_jpeg* jpeg;
    static bool tried;
    if (!tried)
        require(gpst_jpeg_create(NULL, &jpeg) == GPST_OK || jpeg == NULL);
    tried = true;
    return jpeg;
}

static gpst_result decode(const uint8_t* data, size_t bytes, gpst_format format, const gpst_jpeg_info* info,
                          gpst_damage on_damage, gpst_jpeg_note* note) {
    gpst_jpeg_decode_desc desc = GPST_ZERO;
    gpst_image picture = GPST_ZERO;
    size_t picture_bytes = 0;
    picture.width = info->width;
    picture.height = info->height;
    picture.format = format;
    desc.on_damage = on_damage;
    require(gpst_image_bytes(&picture, &picture_bytes) == GPST_OK);
    picture.data = malloc(picture_bytes);
    require(picture.data != NULL);
    const gpst_result result = gpst_jpeg_decode(decoder(), data, bytes, &desc, &picture, note);
    free(picture.data);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    gpst_jpeg_info info;
    gpst_jpeg_note strict, kept;
    uint8_t* const copy = (uint8_t*)malloc(bytes ? bytes : 1); /* exactly as long as the file, for the sanitizers */
    require(copy != NULL);
    if (bytes)
        memcpy(copy, data, bytes);
    gpst_clear_reason();
    const gpst_result header = gpst_jpeg_read_header(copy, bytes, &info);
    require(GPST_FAILED(header) == (gpst_last_reason()[0] != 0));
    if (!GPST_FAILED(header) && (uint64_t)info.width * info.height <= MAX_PIXELS && info.n_scans < 50 && decoder()) {
        gpst_clear_reason();
        const gpst_result result = decode(copy, bytes, info.format, &info, GPST_DAMAGE_FAIL, &strict);
        require(GPST_FAILED(result) == (gpst_last_reason()[0] != 0));
        require(!strict.damaged && strict.mended == (strict.text[0] != 0) && !(GPST_FAILED(result) && strict.mended));
        const gpst_result other = decode(copy, bytes, GPST_FORMAT_BGRA, &info, GPST_DAMAGE_KEEP, &kept);
        require(GPST_FAILED(result) || (other == GPST_OK && !kept.damaged));
        if (info.planes != GPST_FORMAT_INVALID)
            require(decode(copy, bytes, info.planes, &info, GPST_DAMAGE_FAIL, NULL) == result);
    }
    free(copy);
    return 0;
}
