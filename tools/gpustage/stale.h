/* tools/gpustage/stale.h -- outputs under -o that runs with other settings made and that this one does not write. Each
   is said as "BYTES MTIME_NS NAME", as it was when its run had finished it: what is another file by now is none. */
#ifndef GPST_TOOL_STALE_H
#define GPST_TOOL_STALE_H

#include "manifest.h"
#include "outputs.h"

/* Between manifest_open and manifest_start: those that are there, by what the list says. What this run reads is none.
   NULL, or why they are not known. */
const char* stale_find(const manifest* list, const outputs* names, const input_list* inputs, const options* asked,
                       text_list* out);
const char* stale_name(const char* stale); /* below the directory */
/* Removes them, and folders that are empty then. */
void stale_remove(const char* directory, const text_list* stale);

#endif
