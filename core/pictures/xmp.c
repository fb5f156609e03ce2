/* core/pictures/xmp.c -- what XMP packets say: GPano, and the orientation. Knows of XML only tags, attributes, texts
   and what is to be skipped (comments and the like), and goes over each byte a fixed number of times. */
#include "../base/platform_internal.h"

#include "metadata_internal.h"

#include <string.h>

/* What is not read yet. */
typedef struct gpsti_xmp {
    const char* at;
    const char* end;
    char prefixes[2][32]; /* that stand for the namespaces from here on; "": none does */
} gpsti_xmp;

enum { GPSTI_XMP_GPANO = 0, GPSTI_XMP_TIFF = 1 };
static const char* const gpsti_xmp_uris[2] = {"http://ns.google.com/photos/1.0/panorama/",
                                              "http://ns.adobe.com/tiff/1.0/"};

/* In the order of gpsti_xmp_found.numbers; the projection, which is a text, and the orientation are behind those. */
static const char* const gpsti_xmp_names[] = {
    "FullPanoWidthPixels",   "FullPanoHeightPixels", "CroppedAreaImageWidthPixels", "CroppedAreaImageHeightPixels",
    "CroppedAreaLeftPixels", "CroppedAreaTopPixels", "PoseHeadingDegrees",          "PosePitchDegrees",
    "PoseRollDegrees",       "ProjectionType",       "Orientation"};
enum { GPSTI_XMP_ANGLE = 6, GPSTI_XMP_PROJECTION = 9, GPSTI_XMP_ORIENTATION = 10, GPSTI_XMP_NAMES = 11 };

#define GPSTI_XMP_MOST_DEGREES 1e9 /* beyond that nothing is left of an angle */

/* ---- values -------------------------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_xmp_is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

GPSTI_PRIVATE gpsti_segment gpsti_xmp_trim(const char* at, const char* end) {
    gpsti_segment value;
    while (at < end && gpsti_xmp_is_space(*at))
        at++;
    while (at < end && gpsti_xmp_is_space(end[-1]))
        end--;
    value.data = (const uint8_t*)at;
    value.bytes = (size_t)(end - at);
    return value;
}

/* As far as there is room; notes have "; " in between. */
GPSTI_PRIVATE void gpsti_xmp_copy(gpsti_segment value, char* out, size_t room) {
    const size_t bytes = value.bytes < room - 1 ? value.bytes : room - 1;
    for (size_t i = 0; i < bytes; i++) {
        const char c = (char)value.data[i];
        out[i] = c >= ' ' && c < 0x7f && c != ';' ? c : '?';
    }
    out[bytes] = '\0';
}

/* The whole of it; false: no whole number of up to three digits. */
GPSTI_PRIVATE bool gpsti_xmp_exponent(const uint8_t* at, const uint8_t* end, int* out) {
    const bool negative = at < end && *at == '-';
    int value = 0;
    at += at < end && (*at == '-' || *at == '+') ? 1 : 0;
    if (at == end || end - at > 3)
        return false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return false;
        value = value * 10 + (*at - '0');
    }
    *out = negative ? -value : value;
    return true;
}

/* Decimal, with a point, whatever the locale; the whole value. Up to 15 digits are rounded once. */
GPSTI_PRIVATE bool gpsti_xmp_number(gpsti_segment value, double* out) {
    const uint8_t *at = value.data, *const end = value.data + value.bytes;
    uint32_t n_digits = 0;
    int exponent = 0;
    double number = 0.0, unit = 1.0;
    const bool negative = value.bytes > 0 && *at == '-';
    at += value.bytes > 0 && (*at == '-' || *at == '+') ? 1 : 0;
    for (bool behind_point = false; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.' && !behind_point) {
            behind_point = true;
            continue;
        }
        if (*at < '0' || *at > '9' || n_digits++ >= 40)
            return false;
        unit = behind_point ? unit * 10.0 : unit;
        number = number * 10.0 + (double)(*at - '0');
    }
    if (n_digits == 0 || (at < end && !gpsti_xmp_exponent(at + 1, end, &exponent)))
        return false;
    for (int i = 0; i < exponent; i++)
        number *= 10.0;
    for (int i = 0; i < -exponent; i++)
        number /= 10.0;
    *out = (negative ? -number : number) / unit;
    return true;
}

/* ---- properties ------------------------------------------------------------------------------------------------ */

GPSTI_PRIVATE void gpsti_xmp_fault(gpsti_xmp_found* found, int name, gpsti_segment value, const char* rule) {
    char text[21];
    if (found->fault[0])
        return;
    gpsti_xmp_copy(value, text, sizeof text);
    gpsti_format(found->fault, sizeof found->fault, "%s=\"%s\" %s", gpsti_xmp_names[name], text, rule);
}

/* The first one of each that is not empty counts. */
GPSTI_PRIVATE void gpsti_xmp_keep(gpsti_xmp_found* found, int name, gpsti_segment value) {
    double number = 0.0;
    if (value.bytes == 0 || (found->said >> name & 1))
        return;
    found->said |= (uint32_t)1 << name;
    if (name == GPSTI_XMP_PROJECTION) {
        gpsti_xmp_copy(value, found->projection, sizeof found->projection);
        return;
    }
    const bool is_number = gpsti_xmp_number(value, &number);
    if (name == GPSTI_XMP_ORIENTATION)
        found->orientation = is_number && number >= 1.0 && number <= 8.0 ? (uint32_t)number : 0;
    else if (!is_number)
        gpsti_xmp_fault(found, name, value, "is not a number");
    else if (name < GPSTI_XMP_ANGLE && !(number >= 0.0 && number <= 4294967295.0))
        gpsti_xmp_fault(found, name, value, "is no number of pixels");
    else if (name >= GPSTI_XMP_ANGLE && !(number >= -GPSTI_XMP_MOST_DEGREES && number <= GPSTI_XMP_MOST_DEGREES))
        gpsti_xmp_fault(found, name, value, "is no angle");
    else
        found->numbers[name] = number;
}

/* Which property a name is; negative: none that is read. */
GPSTI_PRIVATE int gpsti_xmp_property(const gpsti_xmp* self, gpsti_segment name) {
    for (int space = 0; space < 2; space++) {
        const size_t before = strlen(self->prefixes[space]);
        if (before == 0 || name.bytes <= before || name.data[before] != ':' ||
            memcmp(name.data, self->prefixes[space], before) != 0)
            continue;
        const int end = space == GPSTI_XMP_GPANO ? GPSTI_XMP_ORIENTATION : GPSTI_XMP_NAMES;
        for (int i = space == GPSTI_XMP_GPANO ? 0 : GPSTI_XMP_ORIENTATION; i < end; i++) {
            const size_t bytes = strlen(gpsti_xmp_names[i]);
            if (name.bytes - before - 1 == bytes && memcmp(name.data + before + 1, gpsti_xmp_names[i], bytes) == 0)
                return i;
        }
    }
    return -1;
}

/* xmlns:prefix="uri" */
GPSTI_PRIVATE void gpsti_xmp_bind(gpsti_xmp* self, gpsti_segment name, gpsti_segment uri) {
    if (name.bytes <= 6 || name.bytes - 6 >= sizeof self->prefixes[0] || memcmp(name.data, "xmlns:", 6) != 0)
        return;
    for (int i = 0; i < 2; i++) {
        char* const prefix = self->prefixes[i];
        if (uri.bytes == strlen(gpsti_xmp_uris[i]) && memcmp(uri.data, gpsti_xmp_uris[i], uri.bytes) == 0) {
            memcpy(prefix, name.data + 6, name.bytes - 6);
            prefix[name.bytes - 6] = '\0';
        } else if (strlen(prefix) == name.bytes - 6 && memcmp(prefix, name.data + 6, name.bytes - 6) == 0) {
            prefix[0] = '\0';
        }
    }
}

/* ---- XML ------------------------------------------------------------------------------------------------------- */

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

/* To the next such character, or the end. */
GPSTI_PRIVATE bool gpsti_xmp_find(gpsti_xmp* self, char c) {
    const void* const found = memchr(self->at, c, (size_t)(self->end - self->at));
    self->at = found ? (const char*)found : self->end;
    return found != NULL;
}

/* Behind the next such text, or to the end. */
GPSTI_PRIVATE void gpsti_xmp_skip(gpsti_xmp* self, const char* text) {
    while (gpsti_xmp_find(self, text[0]) && !gpsti_xmp_take(self, text))
        self->at++;
}

/* What begins like a tag and is none, and what ends one: false, and nothing is skipped, of a tag that begins. */
GPSTI_PRIVATE bool gpsti_xmp_skip_other(gpsti_xmp* self) {
    static const char* const others[][2] = {
        {"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}, {"<!", ">"}, {"</", ">"}};
    const char next = self->end - self->at > 1 ? self->at[1] : '\0';
    const bool is_other = next == '!' || next == '?' || next == '/';
    for (size_t i = 0; is_other && i < sizeof others / sizeof others[0]; i++)
        if (gpsti_xmp_take(self, others[i][0])) {
            gpsti_xmp_skip(self, others[i][1]);
            return true;
        }
    return false;
}

GPSTI_PRIVATE gpsti_segment gpsti_xmp_name(gpsti_xmp* self) {
    gpsti_segment name;
    name.data = (const uint8_t*)self->at;
    for (; self->at < self->end && !gpsti_xmp_is_space(*self->at); self->at++)
        if (*self->at == '=' || *self->at == '/' || *self->at == '<' || *self->at == '>' || *self->at == '"' ||
            *self->at == '\'')
            break;
    name.bytes = (size_t)(self->at - (const char*)name.data);
    return name;
}

/* The next attribute of a tag; its value is empty where it is not quoted. False: the tag ends, or is no tag. */
GPSTI_PRIVATE bool gpsti_xmp_attribute(gpsti_xmp* self, gpsti_segment* name, gpsti_segment* value) {
    gpsti_xmp_skip_space(self);
    *name = *value = gpsti_xmp_name(self);
    value->bytes = 0;
    gpsti_xmp_skip_space(self);
    if (!gpsti_xmp_take(self, "="))
        return name->bytes > 0;
    gpsti_xmp_skip_space(self);
    if (self->at == self->end || (*self->at != '"' && *self->at != '\''))
        return true;
    const char* const begin = self->at++;
    if (gpsti_xmp_find(self, *begin)) {
        *value = gpsti_xmp_trim(begin + 1, self->at);
        self->at++;
    }
    return true;
}

/* The text of an element whose tag has been read; it has to be plain. */
GPSTI_PRIVATE void gpsti_xmp_text(gpsti_xmp* self, gpsti_xmp_found* found, int name) {
    gpsti_xmp_skip_space(self);
    while (gpsti_xmp_take(self, "<!--")) {
        gpsti_xmp_skip(self, "-->");
        gpsti_xmp_skip_space(self);
    }
    const char* const begin = self->at;
    if (!gpsti_xmp_find(self, '<'))
        return;
    const gpsti_segment value = gpsti_xmp_trim(begin, self->at);
    gpsti_xmp rest = *self;
    if (gpsti_xmp_take(&rest, "</"))
        gpsti_xmp_keep(found, name, value);
    else if (name != GPSTI_XMP_ORIENTATION && !(found->said >> name & 1))
        gpsti_xmp_fault(found, name, value, "is not plain text");
}

/* All prefixes that a tag names hold for all of it. */
GPSTI_PRIVATE void gpsti_xmp_tag(gpsti_xmp* self, gpsti_xmp_found* found) {
    const gpsti_segment tag = gpsti_xmp_name(self);
    gpsti_segment name, value;
    const char* const begin = self->at;
    while (gpsti_xmp_attribute(self, &name, &value))
        gpsti_xmp_bind(self, name, value);
    const char* const end = self->at;
    for (self->at = begin; self->at < end && gpsti_xmp_attribute(self, &name, &value);) {
        const int property = gpsti_xmp_property(self, name);
        if (property >= 0)
            gpsti_xmp_keep(found, property, value);
    }
    const int property = gpsti_xmp_property(self, tag);
    if (gpsti_xmp_take(self, ">") && property >= 0)
        gpsti_xmp_text(self, found, property);
}

GPSTI_INTERN void gpsti_xmp_read(gpsti_segment packet, gpsti_xmp_found* found) {
    gpsti_xmp self;
    memset(&self, 0, sizeof self);
    self.at = (const char*)packet.data;
    self.end = self.at + packet.bytes;
    while (gpsti_xmp_find(&self, '<'))
        if (!gpsti_xmp_skip_other(&self)) {
            self.at++;
            gpsti_xmp_tag(&self, found);
        }
}

/* ---- what all packets of a file say ------------------------------------------------------------------------------ */

GPSTI_PRIVATE bool gpsti_xmp_is_sphere(const char* projection) {
    const char* const name = "equirectangular";
    size_t i = 0;
    for (; name[i] && (projection[i] | 0x20) == name[i]; i++)
        continue;
    return !name[i] && !projection[i];
}

GPSTI_INTERN void gpsti_xmp_finish(const gpsti_xmp_found* found, gpst_metadata* out) {
    uint32_t* const sizes[] = {&out->full_width,  &out->full_height, &out->crop_width,
                               &out->crop_height, &out->crop_left,   &out->crop_top};
    if (out->orientation == 0)
        out->orientation = found->orientation;
    gpsti_copy_text(out->gpano_fault, sizeof out->gpano_fault, found->fault);
    if (found->fault[0] || !(found->said & ~((uint32_t)1 << GPSTI_XMP_ORIENTATION)))
        return;
    out->has_sphere = !found->projection[0] || gpsti_xmp_is_sphere(found->projection);
    gpsti_copy_text(out->projection, sizeof out->projection,
                    out->has_sphere ? "equirectangular" : found->projection);
    for (int i = 0; i < GPSTI_XMP_ANGLE; i++)
        *sizes[i] = (uint32_t)found->numbers[i];
    out->heading = found->numbers[GPSTI_XMP_ANGLE];
    out->pitch = found->numbers[GPSTI_XMP_ANGLE + 1];
    out->roll = found->numbers[GPSTI_XMP_ANGLE + 2];
}
