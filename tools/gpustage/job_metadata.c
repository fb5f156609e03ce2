/* tools/gpustage/job_metadata.c -- what a run does with what pictures say beside their pixels: EXIF and ICC of the views
   that the command encodes, and what of it is remarked. Each hook runs on any worker. */
#include "job.h"

#include "remarks.h"

#include <stdlib.h>
#include <string.h>

#define JOB_MOST_ICC ((size_t)255 * 65519) /* gpst_metadata_segments' most */

/* ---- views ---------------------------------------------------------------------------------- */

/* Views are RGB: a profile of gray or of inks would be wrong of them. And a JPEG has room for so much. */
static bool job_icc_fits(const void* profile, size_t bytes) {
    return bytes > 128 && bytes <= JOB_MOST_ICC && !memcmp((const char*)profile + 16, "RGB ", 4);
}

gpst_result job_icc(void* user_data, const gpst_item* item, void* out, size_t* bytes) {
    void* profile = NULL;
    size_t found = 0;
    (void)user_data;
    const bool read = codec_read_icc(item->file_data, item->file_bytes, &profile, &found);
    if (read && !job_icc_fits(profile, found))
        found = 0;
    const bool fits = found <= *bytes;
    if (read && out && found > 0 && fits)
        memcpy(out, profile, found);
    free(profile);
    *bytes = found;
    if (!read)
        return gpst_task_fail(NULL, GPST_ERROR_MEMORY, "%s", text_out_of_memory);
    return out && !fits ? GPST_ERROR_ARGUMENT : GPST_OK;
}

gpst_result job_take_metadata(const job* self, const gpst_task* task, job_metadata* out) {
    out->exif_bytes = out->icc_bytes = 0;
    out->icc = NULL;
    if (self->desc.asked->no_metadata)
        return GPST_OK;
    if (!codec_read_icc(task->item->file_data, task->item->file_bytes, &out->icc, &out->icc_bytes))
        return gpst_task_fail(NULL, GPST_ERROR_MEMORY, "%s", text_out_of_memory);
    if (!job_icc_fits(out->icc, out->icc_bytes))
        out->icc_bytes = 0;
    out->exif_bytes = sizeof out->exif;
    return gpst_view_exif(self->desc.warp, task->picture_index, task->item, out->exif, &out->exif_bytes);
}

/* ---- remarks --------------------------------------------------------------------------------- */

/* Sentences of the library's placement, and of decoders, by a piece of each. */
static const char* job_kind_of(const char* note) {
    static const char* const kinds[][2] = {{"is not 2:1", "not_a_sphere"},
                                           {"GPano is ignored", "gpano_ignored"},
                                           {"GPano: its projection", "gpano_ignored"},
                                           {"GPano: the camera", "pose"},
                                           {" placed at ", "placed"},
                                           {"others are not read", "pages"},
                                           {"CMYK without an Adobe", "inks"},
                                           {"not read: ", "metadata_not_read"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strstr(note, kinds[i][0]))
            return kinds[i][1];
    return NULL;
}

/* Never fewer bits without a word. */
void job_remark_bits(const job* self, const gpst_item* item, gpst_dtype was) {
    const bool has_floats = was == GPST_DTYPE_F16 || was == GPST_DTYPE_F32, has_words = was == GPST_DTYPE_U16;
    const char* const found = has_floats ? "its values are floats" : "it has 16 bits a channel";
    gpst_image out;
    gpst_warp_query_output(self->desc.warp, &out);
    if (out.dtype == GPST_DTYPE_U8 && (has_floats || has_words))
        (void)remarks_add("fewer_bits", item->name, "%s, and %s have 8 (%s)", found,
                          self->desc.reproject ? "views" : "tensors", self->desc.reproject ? "--depth" : "--dtype");
    else if (out.dtype == GPST_DTYPE_U16 && has_floats)
        (void)remarks_add("fewer_bits", item->name, "%s, and views have 16 bits (--depth)", found);
}

static void job_remark_profile(const job* self, const gpst_item* item) {
    void* profile = NULL;
    size_t bytes = 0;
    if (!self->desc.reproject || self->desc.asked->no_metadata)
        return;
    if (codec_read_icc(item->file_data, item->file_bytes, &profile, &bytes) && bytes > 0 &&
        !job_icc_fits(profile, bytes))
        (void)remarks_add("profile_dropped", item->name,
                          "its ICC profile is not one of RGB, as views are, or too large: they have none");
    free(profile);
}

void job_remark_item(const job* self, const gpst_item* item) {
    const char* at = item->note;
    gpst_file_kind file;
    gpst_image shape;
    size_t offset;
    while (*at) {
        const char* const end = strstr(at, "; ");
        char* const note = text_copy(at, end ? (size_t)(end - at) : strlen(at));
        const char* const kind = note ? job_kind_of(note) : NULL;
        if (kind)
            (void)remarks_add(kind, item->name, "%s", note);
        free(note);
        at = end ? end + 2 : at + strlen(at);
    }
    job_remark_profile(self, item);
    if (!strcmp(item->decoder, "PNM") || !strcmp(item->decoder, ".npy")) /* of others their decoder said it */
        if (!GPST_FAILED(gpst_picture_read_header(item->file_data, item->file_bytes, &file, &shape, &offset)))
            job_remark_bits(self, item, shape.dtype);
}
