/* tools/gpustage/console.h -- what the user sees: error lines, notes, the progress bar, the closing line. */
#ifndef GPST_TOOL_CONSOLE_H
#define GPST_TOOL_CONSOLE_H

#include "text.h"

/* Exit statuses of the command. */
enum { EXIT_DONE = 0, EXIT_FAILED_ITEMS = 1, EXIT_USAGE = 2, EXIT_MACHINE = 3, EXIT_INTERRUPTED = 130 };

/* Looks at the terminal once. quiet: no notes, no bar, no closing line; errors always. */
void console_open(bool quiet);
bool console_is_quiet(void);

/* "gpustage: ..." on stderr; from any thread. */
void console_error(const char* format, ...) GPSTI_PRINTF(1, 2);
void console_note(const char* format, ...) GPSTI_PRINTF(1, 2);
/* The error, and where to read more. Returns EXIT_USAGE. */
int console_usage(const char* command, const char* format, ...) GPSTI_PRINTF(2, 3);
/* The same for a problem that a function returned as a sentence, which `format` ends in. Out of memory it is no wrong
   usage: EXIT_MACHINE. */
int console_refuse(const char* command, const char* problem, const char* format, ...) GPSTI_PRINTF(3, 4);
int console_memory(void); /* "out of memory"; returns EXIT_MACHINE */

/* The bar on stderr, when that is a terminal. */
void console_progress(uint64_t done, uint64_t total, uint64_t failed, int64_t elapsed_ns);
void console_progress_end(void);

/* Logger of the library. */
void console_log(void* user_data, gpst_log_level level, uint64_t item_index, const char* message,
                 const char* file, int line);

#endif
