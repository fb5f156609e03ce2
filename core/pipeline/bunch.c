/* core/pipeline/bunch.c -- what a worker has had of the source at once, until its slot is free for each: inputs with
   copies of
   their strings. Pictures are too large for that. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

GPSTI_PRIVATE size_t gpsti_bunch_text_bytes(const char* text) { return text ? strlen(text) + 1 : 0; }

/* NULL stays NULL. */
GPSTI_PRIVATE const char* gpsti_bunch_copy_text(gpsti_bunch* self, const char* text) {
    const size_t bytes = gpsti_bunch_text_bytes(text);
    char* const copy = self->text + self->text_bytes;
    if (bytes == 0)
        return NULL;
    memcpy(copy, text, bytes);
    self->text_bytes += bytes;
    return copy;
}

GPSTI_INTERN void gpsti_bunch_empty(gpsti_bunch* self) {
    self->n = 0;
    self->text_bytes = 0;
}

GPSTI_INTERN bool gpsti_bunch_keep(gpsti_bunch* self) {
    gpsti_given* const given = &self->given[self->n];
    gpst_input* const input = &given->input;
    const size_t bytes = gpsti_bunch_text_bytes(input->path) + gpsti_bunch_text_bytes(input->name) +
                         gpsti_bunch_text_bytes(given->reason);
    if (input->frame.data || bytes > sizeof self->text - self->text_bytes)
        return false;
    input->path = gpsti_bunch_copy_text(self, input->path);
    input->name = gpsti_bunch_copy_text(self, input->name);
    given->reason = gpsti_bunch_copy_text(self, given->reason);
    self->n++;
    return true;
}
