/* core/steps/steps_internal.h -- what a kind of step is to the engine: a table. The engine calls it, and asks for no
   kinds; a step is run on a batch, says what came of it, and calls nothing of the engine. */
#ifndef GPSTI_STEPS_INTERNAL_H
#define GPSTI_STEPS_INTERNAL_H

#include "../items/pipeline_internal.h"

/* Who may begin with the head of a step's queue. */
typedef struct gpsti_next {
    uint32_t most;  /* items that go together; 0: nobody now */
    bool enters;    /* they take a place in the step */
    bool on_device; /* it is not the cores that they go to */
} gpsti_next;

typedef struct gpsti_step_kind {
    gpst_resource resource; /* of its clock */
    bool joins;             /* stages of this kind that follow one another are one step, with clocks for its copies */
    bool calls;             /* its service is a function on a thread, which computes or waits */
    /* Is the desc of stage number s right? */
    gpst_result (*check_desc)(const gpst_pipeline_desc* desc, uint32_t s);
    /* What is special about the step: concurrency, gated, repeatable. */
    void (*plan)(const gpst_pipeline* pipeline, gpsti_step* step, bool asynchronous);
    /* Must the item come through the queue, though nothing gates the step? NULL: no. Not locked. */
    bool (*queues)(gpsti_item* item, const gpsti_step* step);
    /* NULL: the engine's own rule. */
    gpsti_next (*next)(gpsti_locked locked, const gpsti_step* step, const gpsti_item* head);
    bool (*goes_along)(const gpsti_item* item);                              /* with others; NULL: all do. Locked */
    void (*formed)(gpsti_locked locked, gpsti_batch* batch, bool on_device); /* NULL: nothing is to be done */
    /* Of a per_picture step, all pictures of an item at once, which is done then; OTHER FORM: it is split. NULL: that.
       */
    gpsti_outcome (*run_all)(gpsti_run* run, gpsti_item* item);
    gpsti_outcome (*run)(gpsti_run* run, gpsti_batch* batch);
    gpsti_outcome (*returned)(gpsti_run* run, gpsti_batch* batch); /* it was PARKED, and is back; NULL: it never is */
    bool (*count)(gpst_pipeline* pipeline, const gpsti_service* service); /* as gpsti_step's */
} gpsti_step_kind;

/* Each in the file of its name. */
GPSTI_INTERN const gpsti_step_kind* gpsti_step_read(void);
GPSTI_INTERN const gpsti_step_kind* gpsti_step_write(void);
GPSTI_INTERN const gpsti_step_kind* gpsti_step_host(void);
GPSTI_INTERN const gpsti_step_kind* gpsti_step_decode(void);
GPSTI_INTERN const gpsti_step_kind* gpsti_step_encode(void);
GPSTI_INTERN const gpsti_step_kind* gpsti_step_device(void);
GPSTI_INTERN const gpsti_step_kind* gpsti_step_finish(void);
/* That a stage is; NULL: none has that number. */
GPSTI_INTERN const gpsti_step_kind* gpsti_kind_of(gpst_stage_kind kind);

/* ---- common.c ------------------------------------------------------------------------------------ */

GPSTI_INTERN gpst_stage_desc* gpsti_step_stage(const gpst_pipeline* pipeline, const gpsti_step* step); /* the first */
/* Keeps the item's failure, whichever of its parts says it first. Not locked. */
GPSTI_INTERN void gpsti_batch_fail(const gpsti_batch* batch, gpst_result result, const char* reason);

#endif
