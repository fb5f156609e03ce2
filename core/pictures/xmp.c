/* core/pictures/xmp.c -- what GPano says in an XMP packet. Knows of XML only how a property looks: an attribute, or an
   element with text. */
#include "../base/platform_internal.h"

#include "metadata_internal.h"

#include <string.h>

#define GPSTI_XMP_URI "http://ns.google.com/photos/1.0/panorama/"
#define GPSTI_XMP_PREFIX_BYTES 32

/* What is not read yet. */
typedef struct gpsti_xmp {
    const char* at;
    const char* end;
} gpsti_xmp;

GPSTI_PRIVATE bool gpsti_xmp_is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

GPSTI_PRIVATE void gpsti_xmp_skip_space(gpsti_xmp* self) {
    while (self->at < self->end && gpsti_xmp_is_space(*self->at))
        self->at++;
}

GPSTI_PRIVATE bool gpsti_xmp_take(gpsti_xmp* self, const char* text) {
    const size_t bytes = strlen(text);
    if ((size_t)(self->end - self->at) < bytes || memcmp(self->at, text, bytes) != 0)
        return false;
    self->at += bytes;
    return true;
}

/* Behind the next place where text stands; false: nowhere. */
GPSTI_PRIVATE bool gpsti_xmp_seek(gpsti_xmp* self, const char* text) {
    while (self->at < self->end) {
        const void* const found = memchr(self->at, text[0], (size_t)(self->end - self->at));
        self->at = found ? (const char*)found : self->end;
        if (found && gpsti_xmp_take(self, text))
            return true;
        self->at += found ? 1 : 0;
    }
    return false;
}

/* = "value" or = 'value' */
GPSTI_PRIVATE bool gpsti_xmp_quoted(gpsti_xmp* self, gpsti_segment* out) {
    gpsti_xmp_skip_space(self);
    if (!gpsti_xmp_take(self, "="))
        return false;
    gpsti_xmp_skip_space(self);
    if (self->at == self->end || (*self->at != '"' && *self->at != '\''))
        return false;
    const char quote = *self->at++;
    const void* const close = memchr(self->at, quote, (size_t)(self->end - self->at));
    if (!close)
        return false;
    out->data = (const uint8_t*)self->at;
    out->bytes = (size_t)((const char*)close - self->at);
    self->at = (const char*)close + 1;
    return true;
}

/* The prefix that stands for GPano's namespace; "": none does. */
GPSTI_PRIVATE void gpsti_xmp_prefix(gpsti_xmp packet, char out[GPSTI_XMP_PREFIX_BYTES]) {
    out[0] = '\0';
    while (gpsti_xmp_seek(&packet, "xmlns:")) {
        const char* const name = packet.at;
        gpsti_segment uri;
        while (packet.at < packet.end && *packet.at != '=' && !gpsti_xmp_is_space(*packet.at))
            packet.at++;
        const size_t bytes = (size_t)(packet.at - name);
        if (!gpsti_xmp_quoted(&packet, &uri) || bytes == 0 || bytes >= GPSTI_XMP_PREFIX_BYTES ||
            uri.bytes != strlen(GPSTI_XMP_URI) || memcmp(uri.data, GPSTI_XMP_URI, uri.bytes) != 0)
            continue;
        memcpy(out, name, bytes);
        out[bytes] = '\0';
        return;
    }
}

/* <prefix:name ...>text<: behind the name. */
GPSTI_PRIVATE bool gpsti_xmp_text(gpsti_xmp* self, gpsti_segment* out) {
    const void* const tag_end = memchr(self->at, '>', (size_t)(self->end - self->at));
    if (!tag_end || ((const char*)tag_end)[-1] == '/' || (*self->at != '>' && !gpsti_xmp_is_space(*self->at)))
        return false; /* it is empty, or its name goes on */
    self->at = (const char*)tag_end + 1;
    gpsti_xmp_skip_space(self);
    const void* const close = memchr(self->at, '<', (size_t)(self->end - self->at));
    if (!close)
        return false;
    out->data = (const uint8_t*)self->at;
    out->bytes = (size_t)((const char*)close - self->at);
    while (out->bytes > 0 && gpsti_xmp_is_space((char)out->data[out->bytes - 1]))
        out->bytes--;
    return true;
}

/* The value of a property; false: it is not there. */
GPSTI_PRIVATE bool gpsti_xmp_find(gpsti_xmp packet, const char* prefix, const char* name, gpsti_segment* out) {
    char full[GPSTI_XMP_PREFIX_BYTES + 64];
    const char* const begin = packet.at;
    gpsti_format(full, sizeof full, "%s:%s", prefix, name);
    const size_t bytes = strlen(full);
    while (gpsti_xmp_seek(&packet, full)) {
        const char* const at = packet.at - bytes;
        const char before = at > begin ? at[-1] : ' ';
        gpsti_xmp rest = packet;
        if (before == '<' ? gpsti_xmp_text(&rest, out) : gpsti_xmp_is_space(before) && gpsti_xmp_quoted(&rest, out))
            return true;
    }
    return false;
}

/* Decimal, with a point, whatever the locale; the whole value. Up to 15 digits are rounded once. */
GPSTI_PRIVATE bool gpsti_xmp_number(gpsti_segment value, double* out) {
    size_t at = 0, n_digits = 0;
    double number = 0.0, unit = 1.0;
    const bool negative = value.bytes > 0 && value.data[0] == '-';
    at += value.bytes > 0 && (value.data[0] == '-' || value.data[0] == '+') ? 1 : 0;
    for (bool behind_point = false; at < value.bytes; at++) {
        const uint8_t c = value.data[at];
        if (c == '.' && !behind_point) {
            behind_point = true;
            continue;
        }
        if (c < '0' || c > '9' || n_digits++ >= 40)
            return false;
        unit = behind_point ? unit * 10.0 : unit;
        number = number * 10.0 + (double)(c - '0');
    }
    *out = (negative ? -number : number) / unit;
    return n_digits > 0;
}

GPSTI_PRIVATE void gpsti_xmp_size(gpsti_xmp packet, const char* prefix, const char* name, uint32_t* out) {
    gpsti_segment value;
    double number;
    if (gpsti_xmp_find(packet, prefix, name, &value) && gpsti_xmp_number(value, &number) && number >= 0.0 &&
        number <= 4294967295.0)
        *out = (uint32_t)number;
}

GPSTI_PRIVATE void gpsti_xmp_angle(gpsti_xmp packet, const char* prefix, const char* name, double* out) {
    gpsti_segment value;
    double number;
    if (gpsti_xmp_find(packet, prefix, name, &value) && gpsti_xmp_number(value, &number))
        *out = number;
}

GPSTI_INTERN void gpsti_xmp_read(gpsti_segment xmp, gpst_metadata* out) {
    char prefix[GPSTI_XMP_PREFIX_BYTES];
    gpsti_segment value;
    gpsti_xmp packet;
    if (xmp.bytes == 0)
        return;
    packet.at = (const char*)xmp.data;
    packet.end = packet.at + xmp.bytes;
    gpsti_xmp_prefix(packet, prefix);
    if (!prefix[0] || !gpsti_xmp_find(packet, prefix, "ProjectionType", &value))
        return;
    const size_t bytes = value.bytes < sizeof out->projection - 1 ? value.bytes : sizeof out->projection - 1;
    for (size_t i = 0; i < bytes; i++) {
        const char c = (char)value.data[i];
        out->projection[i] = c >= ' ' && c < 0x7f && c != ';' ? c : '?'; /* notes have "; " in between */
    }
    out->projection[bytes] = '\0';
    out->has_sphere = strcmp(out->projection, "equirectangular") == 0;
    gpsti_xmp_size(packet, prefix, "FullPanoWidthPixels", &out->full_width);
    gpsti_xmp_size(packet, prefix, "FullPanoHeightPixels", &out->full_height);
    gpsti_xmp_size(packet, prefix, "CroppedAreaImageWidthPixels", &out->crop_width);
    gpsti_xmp_size(packet, prefix, "CroppedAreaImageHeightPixels", &out->crop_height);
    gpsti_xmp_size(packet, prefix, "CroppedAreaLeftPixels", &out->crop_left);
    gpsti_xmp_size(packet, prefix, "CroppedAreaTopPixels", &out->crop_top);
    gpsti_xmp_angle(packet, prefix, "PoseHeadingDegrees", &out->heading);
    gpsti_xmp_angle(packet, prefix, "PosePitchDegrees", &out->pitch);
    gpsti_xmp_angle(packet, prefix, "PoseRollDegrees", &out->roll);
}
