/* tools/gpustage/options_table.h -- one line an option: the same table reads the command line and writes the
   help. */
#ifndef GPST_TOOL_OPTIONS_TABLE_H
#define GPST_TOOL_OPTIONS_TABLE_H

#include "options.h"

#define OPTIONS_RULE_BYTES 256
#define OPTIONS_MASK_OUT "{name}.png"
#define OPTIONS_LATER "comes with a later version"

typedef struct option_choice {
    const char* name; /* NULL ends the list */
    int value;
} option_choice;

typedef struct option option;
/* Takes the value into self, or fills rule with what it must be. */
typedef bool (*option_take)(const option* spec, options* self, const char* value, char* rule);

struct option {
    const char* name; /* without dashes; NULL: help is a heading */
    char letter;      /* its short form, or 0 */
    unsigned commands;
    const char* value; /* how help calls it; NULL: a flag; "[=...]": may be left out */
    option_take take;  /* NULL: recognised, and refused: later */
    size_t offset;     /* of the member of options */
    double min, max;   /* counts: inclusive; angles: exclusive */
    const option_choice* choices;
    const char* help;
};

extern const option options_table[];
extern const size_t options_table_count;

#endif
