/* core/tuning/tuner_internal.h -- the tuner as a pure policy: clocks and counts of a
   stretch of the run in, values of knobs out. Reads no clock, takes no lock, allocates nothing. */
#ifndef GPSTI_TUNER_INTERNAL_H
#define GPSTI_TUNER_INTERNAL_H

#include "../base/base_internal.h"
#include "../stats/profile.h"
#include "tuner.h"

/* What the engine in stages spends on an item of nothing, about; on a device on top of it calls, notifications and
   wake-ups. */
#define GPSTI_TUNER_ITEM_NS 2000
#define GPSTI_TUNER_DEVICE_ITEM_NS 30000
#define GPSTI_TUNER_BATCH_ITEM_NS 15000 /* where items share that */

/* What a run may use, and what of it is there to be tuned. */
typedef struct gpsti_tuner_budget {
    uint32_t cores;   /* allowed by affinity and quota */
    uint32_t workers; /* threads of the context */
    bool reads, writes, streams; /* the pipeline has such a stage; streams: on an asynchronous device */
    bool syncs;       /* what is written is brought to the disk */
    uint32_t outputs; /* of an item, which several workers can serve side by side */
    bool inside;      /* kernels run on the CPU and can use threads */
    uint32_t batch;   /* items that a submission to the device may have at most; 0 or 1: batches are not for it */
    uint64_t host_bytes, device_bytes;           /* ceilings; 0 = none */
    uint64_t item_host_bytes, item_device_bytes; /* what an item in flight takes; 0 = not known */
    uint32_t bunch;       /* brief items that a worker takes at once: known with the costs */
    uint32_t slots_worth; /* more take longer to make than they save; 0 = any number is */
    bool known;           /* what items take, from the last run of the job, whose memory is there */
    bool by_runs;         /* of such a job how many workers bring whole items is found from run to run */
    gpst_preset preset;
    gpst_settings fixed; /* non-zero: the user's, not to be moved */
} gpsti_tuner_budget;

/* One item's services, alone: of item 0, or the means of many. */
typedef struct gpsti_tuner_costs {
    int64_t service_ns[GPST_RESOURCE_COUNT];
    int64_t read_ns; /* of its CPU time: reading from the page cache, by workers for as long as that computes */
    int64_t played_ns; /* work of the host's cores as its device; 0 = that has its own */
    uint64_t read_bytes; /* from its file */
    uint32_t reads_enough; /* at once, of those of its file: more only wait for each other; 0 = not known */
    int64_t item_ns; /* its whole way in a plain loop, calls and waiting too; 0 = not known */
    bool writes_compute; /* its writing waits for a core at most: files that stay in memory for now */
    bool files_in_memory; /* its files are on no disk: making them in one directory is no matter of turns */
    bool is_first; /* of item 0 alone: a device that loads its kernels then does not say how few of anything will do */
} gpsti_tuner_costs;

/* A stretch of the run under one setting, from the end of one item to the end of another. */
typedef struct gpsti_tuner_window {
    uint64_t n_items;
    int64_t wall_ns;
    double noise;        /* standard error of the mean time an item, as a part of it */
    int64_t service_ns[GPST_RESOURCE_COUNT]; /* summed over all that ran at once */
    int64_t wait_ns[GPST_RESOURCE_COUNT];    /* summed, from runnable to running */
    int64_t busy_ns[GPST_RESOURCE_COUNT];    /* H2D, GPU, D2H: at least one at work */
    int64_t cpu_ns;      /* thread CPU time of everything */
    int64_t serial_ns;   /* busy time of the busiest stage that serves one at a time */
    int64_t starved_ns;  /* the source had inputs and no free slot */
    uint64_t n_left;     /* items of the run that have not begun by its end; 0 = nobody knows */
    int64_t slot_ns;     /* what the memory of another slot takes; 0 = not known */
} gpsti_tuner_window;

typedef enum gpsti_tuner_state {
    GPSTI_TUNER_BASE,   /* the next window says what the setting gives */
    GPSTI_TUNER_TRIAL,  /* the next window says whether the move was a win */
    GPSTI_TUNER_FROZEN
} gpsti_tuner_state;

typedef struct gpsti_tuner {
    gpsti_tuner_budget budget;
    gpst_settings now, kept; /* in force; the last that held its ground */
    gpst_settings least, most;
    gpsti_tuner_state state;
    bool whole;              /* each worker brings its items through every step: what serves single steps has no use */
    bool waits_far;          /* reads wait, but not for their bytes to come */
    int64_t alone_ns;        /* whole: what an item took while nobody else was at work */
    uint64_t n_items;        /* of all windows and what passed between them */
    double kept_rate;        /* items a second under `kept` */
    gpsti_tuner_window kept_window; /* that measured it */
    gpst_knob knob;          /* of the trial */
    uint32_t tried[GPST_KNOB_COUNT]; /* moves that brought nothing: GPSTI_TUNER_UP, GPSTI_TUNER_DOWN */
    uint32_t direction;
    bool leaps;              /* the last move up paid in full: the next one of the knob goes twice as far */
    bool has_reference;      /* what the frozen setting gives is known */
    double reference_rate;
    double reference_service[GPST_RESOURCE_COUNT];
    uint32_t n_drifted, patience; /* windows in a row that differ, and how many are believed */
    uint32_t n_decisions;
    gpst_tuner_decision decisions[GPST_MAX_DECISIONS];
} gpsti_tuner;

/* Starts from the model. costs NULL: nothing is known of an item yet. */
GPSTI_INTERN void gpsti_tuner_init(gpsti_tuner* tuner, const gpsti_tuner_budget* budget,
                                   const gpsti_tuner_costs* costs);
GPSTI_INTERN uint32_t gpsti_tuner_clamp(uint64_t value, uint32_t least, uint32_t most); /* a value within two others */
GPSTI_INTERN int64_t gpsti_tuner_total_ns(const gpsti_tuner_costs* costs); /* an item's services; 0 of NULL */
/* By the model: the time an item takes of the run at best, all resources side by side. */
GPSTI_INTERN int64_t gpsti_tuner_period_ns(const gpsti_tuner_costs* costs, uint32_t workers);
/* Starts from settings that were found before, and looks again only when the clocks drift. */
GPSTI_INTERN void gpsti_tuner_load(gpsti_tuner* tuner, const gpst_settings* settings);
/* A value of the knob as text, in a gpst_settings's. False: it is none. */
GPSTI_INTERN bool gpsti_setting_format(int knob, uint32_t value, char* out, size_t out_bytes);
/* What is known of the size of an item has changed: the budgets may now hold fewer. True: `now` has changed. */
GPSTI_INTERN bool gpsti_tuner_resize(gpsti_tuner* tuner, uint64_t item_host_bytes, uint64_t item_device_bytes);
/* How many slots are worth making; 0 = any number. */
GPSTI_INTERN void gpsti_tuner_afford(gpsti_tuner* tuner, uint32_t slots_worth);
/* The first read, of so many bytes (0 = not known yet), has waited for so long and goes on. 0: too long for a disk, and
   others are to wait beside it; else so much is missing. */
GPSTI_INTERN int64_t gpsti_tuner_expect_waits(gpsti_tuner* tuner, int64_t waits_ns, uint64_t bytes);
/* By what reads cost after the first, which took alone_ns: do they wait, not for a disk, and are twice as many to do so
   at once as the model had; or are workers not to bring items whole, since they do not wait for each other either? */
GPSTI_INTERN bool gpsti_tuner_finds_waits(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs, int64_t alone_ns);
/* In tuner_slots.c. How many slots n_left items of so much time each are worth, where a slot's memory takes slot_ns to
   make: 3 at the least; 0 = any number, nothing is known of the one or the other. */
GPSTI_INTERN uint32_t gpsti_tuner_slots_worth(uint64_t n_left, int64_t item_ns, int64_t slot_ns);
/* What the memory of a slot that holds slot_bytes on the host takes, where made_bytes took growth_ns by now. */
GPSTI_INTERN int64_t gpsti_tuner_slot_ns(int64_t growth_ns, uint64_t made_bytes, uint64_t slot_bytes);
/* The same of a slot that took so much before its item came to the device. */
GPSTI_INTERN int64_t gpsti_tuner_unseen_slot_ns(int64_t slot_ns);
/* What the slots of an engine would have to save, where one took slot_ns to make. */
GPSTI_INTERN int64_t gpsti_tuner_setups_ns(int64_t slot_ns);
/* Does an item's memory take so long to make, and its work, so far, so little that the first items are to tell what
   others would gain? */
GPSTI_INTERN bool gpsti_tuner_is_dear(int64_t slot_ns, int64_t work_ns);
/* An item's way by what is known of it, for the question that follows. */
GPSTI_INTERN int64_t gpsti_tuner_filling_way_ns(const gpsti_tuner_costs* costs);
/* How many slots, whose memory takes slot_ns each, are to get it at once, of items that long on their way; 0 = any. */
GPSTI_INTERN uint32_t gpsti_tuner_filling(int64_t way_ns, int64_t slot_ns);
/* How many keep a device busy, of items that took way_ns so far, the last on_device_ns of them there. */
GPSTI_INTERN uint32_t gpsti_tuner_slots_beside(int64_t way_ns, int64_t on_device_ns);
/* After this window, are so many slots more, each with an item in hand, worth making on trial? in_turns: items wait
   for each other in the calls of a device's driver. */
GPSTI_INTERN bool gpsti_tuner_slots_pay(const gpsti_tuner_window* window, uint32_t before, uint32_t after,
                                        bool in_turns);
/* Do items that take way_ns alone, brought whole, spend much of that in the calls of a device's driver? */
GPSTI_INTERN bool gpsti_tuner_in_turns(const gpsti_tuner* tuner, int64_t way_ns);
/* How many items begin to share a submission: 1 where each keeps a device busy. */
GPSTI_INTERN uint32_t gpsti_tuner_start_batch(const gpsti_tuner_costs* costs);
/* How many workers that each bring an item through all of its steps are as fast as the engine at its best; 0: none are,
   or items take too long. */
GPSTI_INTERN uint32_t gpsti_tuner_whole_workers(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs);
/* So many of them, or fewer, or none, where n_left items are left. Each is to have two, and four where several could
   share an item's outputs at the end of the list; but brief ones are over before others are there, and rather have few
   workers. costs: NULL = not known. */
GPSTI_INTERN uint32_t gpsti_tuner_fit_whole(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs,
                                            uint32_t n_workers, uint64_t n_left);
/* What an item takes of the run where so many bring each its own. */
GPSTI_INTERN int64_t gpsti_tuner_whole_period_ns(const gpsti_tuner_costs* costs, uint32_t n_workers);
/* What a file would take by itself, which takes file_ns as one of n_at_once, and took before_ns when the model was
   made. */
GPSTI_INTERN int64_t gpsti_tuner_file_alone_ns(int64_t file_ns, int64_t before_ns, uint32_t n_at_once);
/* How many reads at once keep a disk as busy as n_at_once did, each of which took read_ns, and alone_ns alone; 0 = not
   known. */
GPSTI_INTERN uint32_t gpsti_tuner_reads_enough(int64_t read_ns, int64_t alone_ns, uint32_t n_at_once);
/* Starts with so many; waits_for_turns: items that have come to their end may wait there in their slots. */
GPSTI_INTERN void gpsti_tuner_set_whole(gpsti_tuner* tuner, const gpsti_tuner_costs* costs, uint32_t n_workers,
                                        bool waits_for_turns);
/* The same with the knobs as they are. */
GPSTI_INTERN void gpsti_tuner_set_items(gpsti_tuner* tuner, gpst_items items);
/* No longer: starts again from the model. */
GPSTI_INTERN void gpsti_tuner_set_staged(gpsti_tuner* tuner, const gpsti_tuner_costs* costs);
/* More slots than these are never asked for, whatever items turn out to be. */
GPSTI_INTERN uint32_t gpsti_tuner_slots_ever(const gpsti_tuner* tuner);
/* How many items have room in so much memory, by the largest that was seen; 0: none was, and it may be a large one. */
GPSTI_INTERN uint32_t gpsti_tuner_n_fit(uint64_t host_bytes, uint64_t item_host_bytes);
/* Before anything is tried: do so many whole items show by now that there are too many workers for them? Of a device
   only a whole window tells whether it is what they wait for. */
GPSTI_INTERN bool gpsti_tuner_crowds(const gpsti_tuner* tuner, uint64_t n_items, int64_t wall_ns);
/* On trial: do so many items, in so much time, show by now that the move has lost? noise: as a window's. */
GPSTI_INTERN bool gpsti_tuner_loses(const gpsti_tuner* tuner, uint64_t n_items, int64_t wall_ns, double noise);
/* Takes a window; n_items: done since the run began. True: `now` has changed, and the next window is to begin when
   what was in flight has left. */
GPSTI_INTERN bool gpsti_tuner_judge(gpsti_tuner* tuner, const gpsti_tuner_window* window, uint64_t n_items);
/* The resource that holds a window up; NONE: none is busy enough to. */
GPSTI_INTERN gpst_resource gpsti_tuner_bottleneck(const gpst_settings* now, const gpsti_tuner_window* window,
                                                  uint32_t cores);
/* Enters a line. */
GPSTI_INTERN gpst_tuner_decision* gpsti_tuner_note(gpsti_tuner* tuner, gpst_knob knob, uint32_t before, uint32_t after);

#endif
