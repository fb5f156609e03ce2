/* tools/gpustage/interrupt.h -- Ctrl-C, SIGTERM and SIGHUP: the first drains the pipeline, the second cancels it. */
#ifndef GPST_TOOL_INTERRUPT_H
#define GPST_TOOL_INTERRUPT_H

#include "../../gpustage.h"

/* Installs the handlers, and ignores SIGPIPE. Before, a signal ends the process at once, as is right while nothing has
   been made yet. */
void interrupt_open(void);
void interrupt_watch(gpst_pipeline* pipeline); /* whom to stop; NULL = nobody any more */
bool interrupt_happened(void);

#endif
