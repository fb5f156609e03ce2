/* core/tuning/tuner_text.c -- settings as text and back; the names of the knobs. Opens
   no file: where the text lies is the caller's business. */
#include "../base/platform_internal.h"

#include "tuner_internal.h"

#include <string.h>

/* Of the loop, whose values have names, by gpst_run_mode; those of other knobs are numbers. */
#define GPSTI_LOOP_NAMES 4
static const char* const gpsti_loop_names[GPSTI_LOOP_NAMES] = {"", "engine", "plain-serial", "plain-inside"};

GPST_API const char* gpst_knob_name(gpst_knob knob) {
    static const char* const names[GPST_KNOB_COUNT] = {"none",   "loop",    "workers", "slots", "reads",
                                                       "writes", "streams", "inside",  "batch"};
    const int index = (int)knob;
    return index >= 0 && index < (int)GPST_KNOB_COUNT ? names[index] : "unknown";
}

GPST_API gpst_result gpst_settings_format(const gpst_settings* settings, char* out, size_t out_bytes) {
    char text[256] = "";
    GPSTI_FAIL_IF(!settings || !out || out_bytes == 0, GPST_ERROR_ARGUMENT,
                  "gpst_settings_format: settings and out with room are required");
    const uint32_t loop = settings->value[GPST_KNOB_LOOP];
    GPSTI_FAIL_IF(loop >= GPSTI_LOOP_NAMES, GPST_ERROR_ARGUMENT, "gpst_settings_format: loop=%u: unknown", loop);
    if (loop != 0)
        gpsti_append(text, sizeof text, "loop=%s\n", gpsti_loop_names[loop]);
    for (int k = (int)GPST_KNOB_LOOP + 1; k < (int)GPST_KNOB_COUNT; k++)
        if (settings->value[k] != 0)
            gpsti_append(text, sizeof text, "%s=%u\n", gpst_knob_name((gpst_knob)k), settings->value[k]);
    gpsti_copy_text(out, out_bytes, text);
    GPSTI_FAIL_IF(strlen(text) >= out_bytes, GPST_ERROR_OVERFLOW, "gpst_settings_format: out_bytes=%zu: %zu are needed",
                  out_bytes, strlen(text) + 1);
    return GPST_OK;
}

/* ---- parse ------------------------------------------------------------------------------- */

typedef struct gpsti_setting_word { /* one "name=value" of a text */
    const char* text;
    size_t name_bytes, bytes;
    unsigned line;
} gpsti_setting_word;

GPSTI_PRIVATE bool gpsti_setting_is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* The next word from *at on, which is moved behind it; false when there is none. */
GPSTI_PRIVATE bool gpsti_setting_next(const char** at, gpsti_setting_word* word) {
    const char* p = *at;
    while (gpsti_setting_is_space(*p) || *p == '#') {
        if (*p == '#')
            p += strcspn(p, "\n");
        word->line += *p == '\n';
        p += *p != '\0';
    }
    word->text = p;
    word->bytes = strcspn(p, " \t\r\n#");
    word->name_bytes = strcspn(p, "= \t\r\n#");
    *at = p + word->bytes;
    return word->bytes > 0;
}

GPSTI_PRIVATE bool gpsti_setting_is(const char* text, size_t bytes, const char* name) {
    return bytes == strlen(name) && memcmp(text, name, bytes) == 0;
}

/* 0: not a value of the knob. */
GPSTI_PRIVATE uint32_t gpsti_setting_value(int knob, const char* text, size_t bytes) {
    const bool is_loop = knob == (int)GPST_KNOB_LOOP;
    uint32_t value = 0;
    for (uint32_t named = 1; is_loop && named < GPSTI_LOOP_NAMES; named++)
        if (gpsti_setting_is(text, bytes, gpsti_loop_names[named]))
            return named;
    if (is_loop || bytes > 5)
        return 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        value = value * 10 + (uint32_t)(text[i] - '0');
    }
    return value;
}

GPST_API gpst_result gpst_settings_parse(const char* text, gpst_settings* out) {
    gpst_settings settings;
    gpsti_setting_word word;
    GPSTI_FAIL_IF(!text || !out, GPST_ERROR_ARGUMENT, "gpst_settings_parse: %s=NULL: required", text ? "out" : "text");
    memset(&settings, 0, sizeof settings);
    word.line = 1;
    while (gpsti_setting_next(&text, &word)) {
        int knob = (int)GPST_KNOB_LOOP;
        while (knob < (int)GPST_KNOB_COUNT &&
               !gpsti_setting_is(word.text, word.name_bytes, gpst_knob_name((gpst_knob)knob)))
            knob++;
        GPSTI_FAIL_IF(knob == (int)GPST_KNOB_COUNT, GPST_ERROR_FORMAT,
                      "gpst_settings_parse: line %u: \"%.*s\": no such knob", word.line,
                      (int)(word.name_bytes < 40 ? word.name_bytes : 40), word.text);
        const size_t skipped = word.name_bytes < word.bytes ? word.name_bytes + 1 : word.bytes;
        settings.value[knob] = gpsti_setting_value(knob, word.text + skipped, word.bytes - skipped);
        GPSTI_FAIL_IF(
            settings.value[knob] == 0, GPST_ERROR_FORMAT, "gpst_settings_parse: line %u: \"%.*s\": %s is wanted",
            word.line, (int)(word.bytes < 60 ? word.bytes : 60), word.text,
            knob == (int)GPST_KNOB_LOOP ? "loop=engine, plain-serial or plain-inside" : "a number from 1 to 99999");
    }
    *out = settings;
    return GPST_OK;
}
