/* core/tuning/codec_choice.c -- who decodes the next file, a core or the device's JPEG engines: pure functions of what
   is measured. */
#include "../base/platform_internal.h"

#include "codec_choice_internal.h"

#define GPSTI_CODEC_OPEN_NS 1000000000 /* of the cores' work: opening nvJPEG takes about as long */
#define GPSTI_CODEC_TRY_EVERY 64       /* the slower form is measured again: what it competes for changes */

GPSTI_PRIVATE uint64_t gpsti_codec_times(uint64_t n, uint64_t ns) {
    return ns != 0 && n > UINT64_MAX / ns ? UINT64_MAX : n * ns;
}

GPSTI_INTERN bool gpsti_codec_is_worth_opening(const gpsti_codec_load* load) {
    return load->core_ns > 0 && gpsti_codec_times(load->n_items, load->core_ns) / load->n_cores > GPSTI_CODEC_OPEN_NS;
}

/* Both forms are a thread's: the faster one, but each must have been measured. */
GPSTI_PRIVATE gpsti_codec_choice gpsti_codec_choose_by_time(const gpsti_codec_choice_input* input) {
    if (input->only_device || input->device_ns == 0)
        return GPSTI_CODEC_DEVICE;
    if (input->core_ns == 0)
        return GPSTI_CODEC_CORES;
    const bool device = (input->device_ns <= input->core_ns) != (input->n_before % GPSTI_CODEC_TRY_EVERY == 0);
    return device ? GPSTI_CODEC_DEVICE : GPSTI_CODEC_CORES;
}

GPSTI_INTERN gpsti_codec_choice gpsti_codec_choose(const gpsti_codec_choice_input* input) {
    if (!input->has_engines)
        return gpsti_codec_choose_by_time(input);
    if (!input->busy)
        return GPSTI_CODEC_DEVICE;
    /* What waits goes with the next batch; or the engines would be through with all the rest before a core is with
       this one. */
    if (input->only_device || input->n_queued <= input->batch)
        return GPSTI_CODEC_WAIT;
    if (input->device_ns == 0 || gpsti_codec_times(input->n_to_come, input->device_ns) > input->core_ns)
        return GPSTI_CODEC_CORES;
    return GPSTI_CODEC_WAIT;
}

GPSTI_INTERN void gpsti_codec_learn(gpsti_a64* mean_ns, int64_t ns) {
    const uint64_t before = gpsti_a64_load(mean_ns), now = ns > 0 ? (uint64_t)ns : 1;
    gpsti_a64_store(mean_ns, before == 0 ? now : before - before / 8 + now / 8);
}
