/* tools/gpustage/remarks.h -- what a run leaves out, drops or changes without being asked to: said once on stderr,
   counted, and listed in --stats, with --quiet, too. */
#ifndef GPST_TOOL_REMARKS_H
#define GPST_TOOL_REMARKS_H

#include "json.h"

/* kind: a constant, its stable name in --stats. item: of which file it is; "": of none. The first remark of a kind is
   printed, "note: ITEM: TEXT", and its item and text are listed; true of it. From any thread. */
bool remarks_add(const char* kind, const char* item, const char* format, ...) GPSTI_PRINTF(3, 4);
void remarks_json(json* out); /* the list "remarks", a member for each kind */

#endif
