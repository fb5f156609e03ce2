/* tools/gpustage/interrupt.h -- Ctrl-C and SIGTERM: the first drains the pipeline, the second cancels it. */
#ifndef GPST_TOOL_INTERRUPT_H
#define GPST_TOOL_INTERRUPT_H

#include "../../gpustage.h"

void interrupt_open(void);                     /* installs the handlers; SIGPIPE is ignored */
void interrupt_watch(gpst_pipeline* pipeline); /* whom to stop; NULL = nobody any more */
bool interrupt_happened(void);

#endif
