/* core/stats/timing_internal.h -- which groups on a device are timed by events, and what the
   resources' busy time is where not all are. A pure policy: nanoseconds in, nanoseconds out. */
#ifndef GPSTI_TIMING_INTERNAL_H
#define GPSTI_TIMING_INTERNAL_H

#include "profile_internal.h"

/* Recording a group's events and asking for their times takes as many calls of the driver as its copies and launch do,
   one thread after the other. So of items that are brief, one soon after the other and all alike, only a few in a row
   are timed, again and again; what the resources were busy for each of those is taken for the others, too. */
typedef struct gpsti_timing {
    gpsti_a64 n_submitted; /* groups */
    gpsti_a64 from, to;    /* those with these numbers are timed, to excluded; to = 0: all are */
    /* the rest: locked */
    uint64_t item_bytes; /* of the latest item, up and down; */
    uint32_t n_beside;   /* and how many could be on the device at once */
    int64_t device_ns;   /* a timed group's, about */
    int64_t period_ns;   /* from group to group, about: back and forth where some are entered late */
    int64_t latest_ns;   /* when the latest one ended */
    uint32_t n_wanted;   /* groups alike are timed before some are not; 0 = nothing was entered yet */
    uint32_t n_groups;   /* of them that were, */
    uint64_t n_items;    /* and items in their second half */
    uint64_t latest;     /* group to have been entered */
    bool open;           /* one of the latest few has been entered: */
    uint64_t first;      /* that group; */
    int64_t first_ns;    /* when it ended */
    uint64_t n_since;    /* items entered since, timed or not, */
    uint64_t n_known;    /* and up to the latest timed one */
    int64_t before_ns[GPST_RESOURCE_COUNT]; /* busy time then; while all are timed, after the first half of n_wanted */
    int64_t rate_ns[GPST_RESOURCE_COUNT];   /* busy time an item, of the few before */
} gpsti_timing;

/* An item that has ended. */
typedef struct gpsti_timing_item {
    uint64_t number;   /* of its group */
    uint64_t bytes;    /* up and down */
    int64_t device_ns; /* of its whole group; 0 = it was not timed */
    int64_t now_ns;
    uint32_t n_beside; /* so many are side by side on the device, or could be */
} gpsti_timing_item;

/* What an item's intervals, where it is timed, are for the resources' busy time. */
typedef enum gpsti_timing_use {
    GPSTI_TIMING_NOTHING = 0, /* it is counted already */
    GPSTI_TIMING_COUNTS,
    GPSTI_TIMING_BEGINS /* their ends are where those of the next ones begin to count */
} gpsti_timing_use;

/* Is the group that is now submitted to be timed? *number: by which it is entered. Thread-safe. */
GPSTI_INTERN bool gpsti_timing_takes(gpsti_timing* timing, uint64_t* number);
/* Adds to busy what the item is taken for, where it is not counted by its own intervals. Those that are not timed may
   be entered late, but not after what the same worker is timed for next. */
GPSTI_INTERN gpsti_timing_use gpsti_timing_enter(gpsti_timing* timing, gpsti_busy* busy, const gpsti_timing_item* item);
/* Busy time so far, with what the items since the latest timed one are taken for. */
GPSTI_INTERN int64_t gpsti_timing_busy_ns(const gpsti_timing* timing, const gpsti_busy* busy, int resource);

#endif
