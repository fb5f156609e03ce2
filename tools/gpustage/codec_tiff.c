/* tools/gpustage/codec_tiff.c -- TIFF, read through libtiff: the first picture of a file. What its header says is
   judged here, before the library allocates anything for the pixels. */
#include "codec_internal.h"

#include <stdlib.h>
#include <string.h>

#define CODEC_TIFF_HOLDS "u8, u16, f16 and f32"

#if defined(GPST_TOOL_TIFF)
#include "codec_tiff_internal.h"

#define CODEC_TIFF_NOTE "one of several pictures in the file: the others are not read"
#define CODEC_TIFF_STATE_BYTES ((uint64_t)1 << 20)   /* of a decompressor, beside what grows with the picture; */
#define CODEC_TIFF_WINDOW_BYTES ((uint64_t)12 << 20) /* and of LZMA and Zstandard, whose windows are wide */

typedef struct codec_tiff_page {
    uint32_t width, height;
    uint16_t bits, samples, photometric, sample_format, planar, compression;
    uint32_t n_colors;  /* samples of a pixel that are not alpha */
    bool alpha;         /* the next one is */
    bool premultiplied; /* the colours have it in them */
    bool by_library;    /* YCbCr: by the library's conversion, 8 bits */
    bool tiled;
    uint32_t block_width, block_height; /* of a tile, or a strip */
    uint32_t n_planes;                  /* that a block is stored in */
    size_t row_bytes, block_bytes;      /* of one plane */
    uint32_t full;                      /* the largest value of integers */
    const uint16_t* palette[3];
    uint32_t palette_shift;
    gpst_format format;
    gpst_dtype dtype;
} codec_tiff_page;

/* ---- the header -------------------------------------------------------------------- */

static uint16_t codec_tiff_u16(TIFF* tiff, uint32_t tag, uint16_t otherwise) {
    uint16_t value = otherwise;
    return TIFFGetFieldDefaulted(tiff, tag, &value) ? value : otherwise;
}

static gpst_result codec_tiff_read_tags(TIFF* tiff, codec_tiff_page* page, char* reason) {
    uint32_t width = 0, height = 0;
    (void)TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    (void)TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    const gpst_result result = codec_check_sides("TIFF", width, height, reason);
    if (GPST_FAILED(result))
        return result;
    page->width = width;
    page->height = height;
    page->bits = codec_tiff_u16(tiff, TIFFTAG_BITSPERSAMPLE, 1);
    page->samples = codec_tiff_u16(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
    page->photometric =
        codec_tiff_u16(tiff, TIFFTAG_PHOTOMETRIC, page->samples < 3 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB);
    page->sample_format = codec_tiff_u16(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
    page->planar = codec_tiff_u16(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    page->compression = codec_tiff_u16(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    page->full = page->bits <= 16 ? ((uint32_t)1 << page->bits) - 1 : 0;
    if (!TIFFIsCODECConfigured(page->compression))
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "TIFF: compression %u: this libtiff does not read it",
                          page->compression);
    return GPST_OK;
}

/* What the file says of samples that are no colours. */
static uint16_t codec_tiff_extras(TIFF* tiff, const uint16_t** kinds) {
    uint16_t n = 0, *found = NULL;
    const bool says = TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &n, &found) == 1; /* the default: one of no meaning */
    *kinds = found;
    return says ? n : 0;
}

/* Three and four samples are colours, whatever some writers call them, unless one of three is alpha; more are a stack of
   what nobody knows. */
static bool codec_tiff_find_gray(TIFF* tiff, codec_tiff_page* page) {
    const uint16_t* kinds = NULL;
    if (page->samples <= 2)
        return true;
    if (page->photometric != PHOTOMETRIC_MINISBLACK || page->samples > 4)
        return false;
    for (uint16_t n = page->samples == 3 ? codec_tiff_extras(tiff, &kinds) : 0; n > 0; n--)
        if (kinds[n - 1] != EXTRASAMPLE_UNSPECIFIED)
            return false;
    page->photometric = PHOTOMETRIC_RGB;
    page->n_colors = 3;
    return true;
}

/* How many samples are colours, and whether the channels and bits go together. */
static bool codec_tiff_find_colors(TIFF* tiff, codec_tiff_page* page) {
    const bool floats = page->sample_format == SAMPLEFORMAT_IEEEFP;
    const bool wide = floats ? page->bits == 16 || page->bits == 32 : page->bits == 8 || page->bits == 16;
    const bool few = !floats && page->samples == 1 && (page->bits == 1 || page->bits == 2 || page->bits == 4);
    if (!floats && page->sample_format != SAMPLEFORMAT_UINT && page->sample_format != SAMPLEFORMAT_VOID)
        return false;
    page->n_colors = page->photometric == PHOTOMETRIC_RGB ? 3 : page->photometric == PHOTOMETRIC_SEPARATED ? 4 : 1;
    if (page->samples < page->n_colors)
        return false;
    switch (page->photometric) {
    case PHOTOMETRIC_MINISWHITE:
        return few || (wide && !floats && codec_tiff_find_gray(tiff, page));
    case PHOTOMETRIC_MINISBLACK:
        return few || (wide && codec_tiff_find_gray(tiff, page));
    case PHOTOMETRIC_RGB:
        return wide;
    case PHOTOMETRIC_PALETTE:
        return few || (wide && page->bits == 8 && page->samples == 1);
    case PHOTOMETRIC_SEPARATED:
        return wide && !floats && codec_tiff_u16(tiff, TIFFTAG_INKSET, INKSET_CMYK) == INKSET_CMYK;
    default:
        return false;
    }
}

/* The first sample behind the colours is alpha where the file says so, and where it says nothing of extra samples. */
static bool codec_tiff_find_alpha(TIFF* tiff, codec_tiff_page* page) {
    const uint16_t* kinds = NULL;
    const uint16_t n_extra = codec_tiff_extras(tiff, &kinds);
    const uint32_t beside = page->samples - page->n_colors;
    if (beside == 0)
        return true;
    /* Colours that are called gray are extra, too; the library puts what the file does not name behind what it does. */
    uint16_t kind = n_extra > 0 ? kinds[n_extra > beside ? n_extra - beside : 0] : EXTRASAMPLE_UNSPECIFIED;
    if (n_extra > 0 && kind == EXTRASAMPLE_UNSPECIFIED)
        kind = kinds[0];
    page->alpha = n_extra == 0 || kind != EXTRASAMPLE_UNSPECIFIED;
    page->premultiplied = kind == EXTRASAMPLE_ASSOCALPHA;
    return !(page->premultiplied && page->sample_format == SAMPLEFORMAT_IEEEFP && page->bits == 16);
}

static bool codec_tiff_find_palette(TIFF* tiff, codec_tiff_page* page) {
    uint16_t* colors[3] = {NULL, NULL, NULL};
    if (page->photometric != PHOTOMETRIC_PALETTE)
        return true;
    if (!TIFFGetField(tiff, TIFFTAG_COLORMAP, &colors[0], &colors[1], &colors[2]))
        return false;
    for (int c = 0; c < 3; c++) {
        page->palette[c] = colors[c];
        for (uint32_t i = 0; i <= page->full; i++)
            if (colors[c][i] > 255) /* some writers fill it with 8 bits */
                page->palette_shift = 8;
    }
    return true;
}

/* YCbCr is converted by libjpeg on the way where it is JPEG, else by the library, a whole picture at a time. */
static bool codec_tiff_find_ycc(TIFF* tiff, codec_tiff_page* page) {
    char problem[1024];
    if (page->photometric != PHOTOMETRIC_YCBCR || page->bits != 8 || page->samples != 3)
        return false;
    if (page->compression == COMPRESSION_JPEG && page->planar == PLANARCONFIG_CONTIG) {
        page->photometric = PHOTOMETRIC_RGB;
        return TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB) == 1;
    }
    page->by_library = true;
    return TIFFRGBAImageOK(tiff, problem) == 1;
}

static void codec_tiff_find_shape(codec_tiff_page* page) {
    const bool floats = page->sample_format == SAMPLEFORMAT_IEEEFP;
    const bool gray = page->n_colors == 1 && page->photometric != PHOTOMETRIC_PALETTE;
    page->format = page->alpha ? GPST_FORMAT_RGBA : gray && !page->by_library ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB;
    page->dtype = page->bits <= 8    ? GPST_DTYPE_U8
                  : page->bits == 32 ? GPST_DTYPE_F32
                  : floats           ? GPST_DTYPE_F16
                                     : GPST_DTYPE_U16;
}

/* Strips and tiles have the size that follows from the tags, and all of them lie in the file. */
static gpst_result codec_tiff_find_blocks(TIFF* tiff, size_t bytes, codec_tiff_page* page, char* reason) {
    uint32_t rows = page->height;
    page->tiled = TIFFIsTiled(tiff) != 0;
    if (page->tiled) {
        (void)TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &page->block_width);
        (void)TIFFGetField(tiff, TIFFTAG_TILELENGTH, &page->block_height);
    } else {
        (void)TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows);
        page->block_width = page->width;
        page->block_height = rows < page->height ? rows : page->height;
    }
    page->n_planes = page->planar == PLANARCONFIG_SEPARATE ? page->samples : 1;
    page->row_bytes = ((uint64_t)page->block_width * (page->samples / page->n_planes) * page->bits + 7) / 8;
    page->block_bytes = (size_t)(page->tiled ? TIFFTileSize(tiff) : TIFFStripSize(tiff));
    if (!page->by_library && (page->block_height == 0 || page->block_bytes / page->block_height != page->row_bytes ||
                              page->block_bytes % page->block_height != 0))
        return codec_fail(reason, GPST_ERROR_FORMAT, "TIFF: %s of %ux%u pixels of %zu bytes contradict its other tags",
                          page->tiled ? "tiles" : "strips", page->block_width, page->block_height, page->block_bytes);
    const uint32_t n = page->tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t at = TIFFGetStrileOffset(tiff, i), length = TIFFGetStrileByteCount(tiff, i);
        if (at > bytes || length > bytes - at)
            return codec_fail(reason, GPST_ERROR_TRUNCATED, "TIFF: the file ends before its pixels");
    }
    return GPST_OK;
}

static gpst_result codec_tiff_read_page(TIFF* tiff, size_t bytes, codec_tiff_page* page, char* reason) {
    memset(page, 0, sizeof *page);
    const gpst_result result = codec_tiff_read_tags(tiff, page, reason);
    if (GPST_FAILED(result))
        return result;
    if (!codec_tiff_find_ycc(tiff, page) && !(codec_tiff_find_colors(tiff, page) && codec_tiff_find_alpha(tiff, page) &&
                                              codec_tiff_find_palette(tiff, page)))
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED,
                          "TIFF: %u samples of %u bits, sample format %u, photometric interpretation %u: not read",
                          page->samples, page->bits, page->sample_format, page->photometric);
    codec_tiff_find_shape(page);
    return codec_tiff_find_blocks(tiff, bytes, page, reason);
}

/* Blocks as they are unpacked, what the decompressors of whole pictures hold, and the list of the blocks. */
static uint64_t codec_tiff_decoder_bytes(TIFF* tiff, const codec_tiff_page* page) {
    const uint64_t block_bytes = page->block_bytes,
                   n = page->tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
    uint64_t bytes = CODEC_TIFF_STATE_BYTES + page->n_planes * block_bytes + 16 * n;
    switch (page->compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_PACKBITS:
    case COMPRESSION_LZW:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_ADOBE_DEFLATE:
        break;
    default:
        bytes += 3 * block_bytes + CODEC_TIFF_WINDOW_BYTES;
    }
    return page->by_library ? bytes + (uint64_t)page->width * page->height * 4 : bytes;
}

static gpst_result codec_tiff_read_header(const uint8_t* data, size_t bytes, gpst_image* shape, codec_layout* layout,
                                          char* reason) {
    codec_tiff_stream stream = {data, NULL, bytes, 0, 0, false, reason};
    codec_tiff_page page;
    TIFF* const tiff = codec_tiff_open(&stream, "r");
    if (!tiff)
        return GPST_ERROR_FORMAT;
    const gpst_result result = codec_tiff_read_page(tiff, bytes, &page, reason);
    if (!GPST_FAILED(result)) {
        shape->width = page.width;
        shape->height = page.height;
        shape->format = page.format;
        shape->dtype = page.dtype;
        layout->decoder_bytes = codec_tiff_decoder_bytes(tiff, &page);
        if (!TIFFLastDirectory(tiff))
            memcpy(layout->note, CODEC_TIFF_NOTE, sizeof CODEC_TIFF_NOTE);
    }
    TIFFClose(tiff);
    return result;
}

/* ---- pixels ------------------------------------------------------------------------ */

/* Sample s of pixel x, as bits; row is of the block's first plane. */
static uint32_t codec_tiff_sample(const codec_tiff_page* page, const uint8_t* row, uint32_t x, uint32_t s) {
    const size_t i = page->n_planes == 1 ? (size_t)x * page->samples + s : x;
    const uint8_t* const plane = page->n_planes == 1 ? row : row + s * page->block_bytes;
    uint16_t word;
    uint32_t wide;
    switch (page->bits) {
    case 8:
        return plane[i];
    case 16:
        memcpy(&word, plane + 2 * i, 2);
        return word;
    case 32:
        memcpy(&wide, plane + 4 * i, 4);
        return wide;
    default: /* 1, 2, 4: the first one highest */
        return (uint32_t)plane[i * page->bits / 8] >> (8 - page->bits - i * page->bits % 8) & page->full;
    }
}

/* value / alpha; of nothing, nothing is known. Integers are cut off, as Pillow does it. */
static uint32_t codec_tiff_divide(const codec_tiff_page* page, uint32_t value, uint32_t alpha) {
    if (page->dtype == GPST_DTYPE_F32) {
        float color, part;
        memcpy(&color, &value, 4);
        memcpy(&part, &alpha, 4);
        color = part > 0.0f ? color / part : color;
        memcpy(&value, &color, 4);
        return value;
    }
    if (alpha == 0)
        return value;
    const uint64_t divided = (uint64_t)value * page->full / alpha;
    return divided < page->full ? (uint32_t)divided : page->full;
}

static void codec_tiff_pixel(const codec_tiff_page* page, const uint8_t* row, uint32_t x, uint32_t out[4]) {
    uint32_t value = codec_tiff_sample(page, row, x, 0);
    const uint64_t full = page->full;
    if (page->photometric == PHOTOMETRIC_PALETTE) {
        for (int c = 0; c < 3; c++)
            out[c] = (uint32_t)page->palette[c][value] >> page->palette_shift & 255;
    } else if (page->photometric == PHOTOMETRIC_SEPARATED) {
        const uint64_t rest = full - codec_tiff_sample(page, row, x, 3);
        for (uint32_t c = 0; c < 3; c++) /* rounded to nearest */
            out[c] = (uint32_t)(((full - codec_tiff_sample(page, row, x, c)) * rest * 2 + full) / (2 * full));
    } else if (page->n_colors == 3) {
        for (uint32_t c = 0; c < 3; c++)
            out[c] = codec_tiff_sample(page, row, x, c);
    } else {
        value = page->photometric == PHOTOMETRIC_MINISWHITE ? page->full - value : value;
        out[0] = out[1] = out[2] = page->bits < 8 ? value * 255 / page->full : value;
    }
    out[3] = page->alpha ? codec_tiff_sample(page, row, x, page->n_colors) : 0;
    for (int c = 0; c < 3 && page->premultiplied; c++)
        out[c] = codec_tiff_divide(page, out[c], out[3]);
}

/* Are rows of the file what the picture's are? */
static bool codec_tiff_is_plain(const codec_tiff_page* page) {
    return page->n_planes == 1 && page->bits >= 8 && !page->premultiplied &&
           page->samples == gpst_format_channels(page->format) &&
           (page->photometric == PHOTOMETRIC_RGB || page->photometric == PHOTOMETRIC_MINISBLACK);
}

static void codec_tiff_convert(const codec_tiff_page* page, const uint8_t* row, uint32_t n, uint8_t* out) {
    const uint32_t n_channels = gpst_format_channels(page->format);
    const size_t one = gpst_dtype_bytes(page->dtype);
    if (codec_tiff_is_plain(page)) {
        memcpy(out, row, n * n_channels * one);
        return;
    }
    for (uint32_t x = 0; x < n; x++) {
        uint32_t pixel[4];
        codec_tiff_pixel(page, row, x, pixel);
        for (uint32_t c = 0; c < n_channels; c++, out += one) {
            const uint8_t byte = (uint8_t)pixel[c];
            const uint16_t word = (uint16_t)pixel[c];
            memcpy(out, one == 1 ? (const void*)&byte : one == 2 ? (const void*)&word : (const void*)&pixel[c], one);
        }
    }
}

/* One strip or tile, with all its planes one behind the other. */
static bool codec_tiff_read_block(TIFF* tiff, const codec_tiff_page* page, uint32_t x, uint32_t y, uint32_t n_rows,
                                  uint8_t* block) {
    const size_t wanted = page->tiled ? page->block_bytes : page->row_bytes * n_rows;
    for (uint32_t p = 0; p < page->n_planes; p++) {
        uint8_t* const plane = block + p * page->block_bytes;
        const uint16_t s = (uint16_t)p;
        const tmsize_t n = page->tiled
                               ? TIFFReadEncodedTile(tiff, TIFFComputeTile(tiff, x, y, 0, s), plane, (tmsize_t)wanted)
                               : TIFFReadEncodedStrip(tiff, TIFFComputeStrip(tiff, y, s), plane, (tmsize_t)wanted);
        if (n != (tmsize_t)wanted)
            return false;
    }
    return true;
}

static gpst_result codec_tiff_decode_blocks(TIFF* tiff, const codec_tiff_stream* stream, const codec_tiff_page* page,
                                            const gpst_image* image) {
    const size_t pixel_bytes = gpst_format_channels(image->format) * gpst_dtype_bytes(image->dtype);
    uint8_t* const block = (uint8_t*)malloc(page->n_planes * page->block_bytes);
    bool whole = true;
    if (!block)
        return codec_fail(stream->reason, GPST_ERROR_MEMORY, "TIFF: no memory for a strip or tile");
    for (uint32_t y = 0; whole && y < page->height; y += page->block_height) {
        const uint32_t left = page->height - y, n_rows = left < page->block_height ? left : page->block_height;
        for (uint32_t x = 0; whole && x < page->width; x += page->block_width) {
            const uint32_t beside = page->width - x, n = beside < page->block_width ? beside : page->block_width;
            whole = codec_tiff_read_block(tiff, page, x, y, n_rows, block) && !stream->failed;
            for (uint32_t i = 0; whole && i < n_rows; i++)
                codec_tiff_convert(page, block + page->row_bytes * i, n, codec_row(image, y + i) + x * pixel_bytes);
        }
    }
    free(block);
    return whole ? GPST_OK : codec_tiff_fail(stream, "pixels are missing or damaged");
}

/* In the order in which the rows are stored, whatever the file's orientation. */
static gpst_result codec_tiff_decode_by_library(TIFF* tiff, const codec_tiff_stream* stream,
                                                const codec_tiff_page* page, const gpst_image* image) {
    const size_t n_pixels = (size_t)page->width * page->height;
    const int orientation = codec_tiff_u16(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    uint32_t* const raster = (uint32_t*)malloc(n_pixels * 4);
    if (!raster)
        return codec_fail(stream->reason, GPST_ERROR_MEMORY, "TIFF: no memory for a picture");
    const bool whole = TIFFReadRGBAImageOriented(tiff, page->width, page->height, raster, orientation, 1) == 1;
    for (uint32_t y = 0; whole && y < page->height; y++) {
        uint8_t* out = codec_row(image, y);
        const uint32_t* const row = raster + (size_t)y * page->width;
        for (uint32_t x = 0; x < page->width; x++, out += 3) {
            out[0] = (uint8_t)TIFFGetR(row[x]);
            out[1] = (uint8_t)TIFFGetG(row[x]);
            out[2] = (uint8_t)TIFFGetB(row[x]);
        }
    }
    free(raster);
    return whole && !stream->failed ? GPST_OK : codec_tiff_fail(stream, "pixels are missing or damaged");
}

static gpst_result codec_tiff_decode(codec* self, const uint8_t* data, size_t bytes, const gpst_image* image,
                                     char* reason) {
    codec_tiff_stream stream = {data, NULL, bytes, 0, 0, false, reason};
    codec_tiff_page page;
    (void)self;
    TIFF* const tiff = codec_tiff_open(&stream, "r");
    if (!tiff)
        return GPST_ERROR_FORMAT;
    gpst_result result = codec_tiff_read_page(tiff, bytes, &page, reason);
    if (!GPST_FAILED(result))
        result = page.by_library ? codec_tiff_decode_by_library(tiff, &stream, &page, image)
                                 : codec_tiff_decode_blocks(tiff, &stream, &page, image);
    TIFFClose(tiff);
    return result;
}

const codec_format codec_tiff = {CODEC_TIFF,
                                 "TIFF",
                                 "tif",
                                 CODEC_TIFF_HOLDS,
                                 "libtiff",
                                 true,
                                 codec_tiff_read_header,
                                 codec_tiff_decode,
                                 codec_tiff_bound,
                                 codec_tiff_encode,
                                 NULL};

#else

const codec_format codec_tiff = {
    CODEC_TIFF, "TIFF", "tif", CODEC_TIFF_HOLDS, "libtiff", false, NULL, NULL, NULL, NULL, NULL};

#endif
