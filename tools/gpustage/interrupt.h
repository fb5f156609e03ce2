/* tools/gpustage/interrupt.h -- Ctrl-C, SIGTERM and SIGHUP: the first drains the pipeline, the second cancels it. */
#ifndef GPST_TOOL_INTERRUPT_H
#define GPST_TOOL_INTERRUPT_H

#include "../../gpustage.h"

/* Installs the handlers, and ignores SIGPIPE. works: there is something to be ended well from now on; else from the
   first pipeline that is watched on, and before it a signal ends the process with EXIT_INTERRUPTED. */
void interrupt_open(bool works);
void interrupt_watch(gpst_pipeline* pipeline); /* whom to stop; NULL = nobody any more */
bool interrupt_happened(void);

#endif
