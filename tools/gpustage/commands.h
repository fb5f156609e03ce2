/* tools/gpustage/commands.h -- the commands: each takes its options and returns the exit status. */
#ifndef GPST_TOOL_COMMANDS_H
#define GPST_TOOL_COMMANDS_H

#include "options.h"

int command_probe(const options* asked);
int command_reproject(const options* asked);
int command_preprocess(const options* asked);
int command_bench(const options* asked);

#endif
