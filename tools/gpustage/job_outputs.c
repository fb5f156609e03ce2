/* tools/gpustage/job_outputs.c -- what must be so of the place that outputs go to before a run begins: the directory
   with its list of what is whole, or the one file of all tensors. */
#include "job.h"

#include "console.h"
#include "files.h"
#include "remarks.h"
#include "stale.h"

#include <string.h>

/* A stacked file may take the name of an output that a list there has. */
static const char* job_withdraw(const job* self) {
    const char* const path = self->desc.asked->output;
    gpst_context_info info;
    text parent = files_parent(path), stem = GPST_ZERO;
    const char* problem = text_out_of_memory;
    gpst_context_query_info(self->context, &info);
    text_append(&stem, files_base_name(path), strlen(files_base_name(path)) - strlen(".npy"));
    if (parent.data && stem.data) {
        run_lock_clean(parent.data);
        problem = manifest_withdraw(parent.data, info.temporary_tag, stem.data);
    }
    text_free(&stem);
    text_free(&parent);
    return problem;
}

int job_open_stacked(job* self) {
    const options* const asked = self->desc.asked;
    file_info info;
    if (asked->resume)
        return console_usage(asked->command_name, "--resume: needs -o DIR: one .npy file is whole or absent");
    if (asked->clean)
        return console_usage(asked->command_name, "--clean: needs -o DIR");
    if (!files_query(asked->output, &info) && !info.is_regular)
        return console_usage(asked->command_name, "-o=%s: is no regular file", asked->output);
    const int status = outputs_check_parent("-o", asked->output, asked->command_name);
    if (status != EXIT_DONE)
        return status;
    const char* const problem = job_withdraw(self);
    if (problem)
        console_error("-o=%s: %s", asked->output, problem);
    return problem ? EXIT_MACHINE : EXIT_DONE;
}

/* What the manifest lists under the same settings, of an input that has not changed, and whose files are all
   there. */
static void job_skip_whole(job* self) {
    for (size_t i = 0; i < self->inputs.count; i++) {
        input* const in = &self->inputs.items[i];
        inputs_refresh(in, self->desc.asked);
        const char* const listed = manifest_find(&self->manifest, in);
        text sizes = GPST_ZERO;
        if (listed)
            sizes = outputs_sizes(&self->names, in, NULL);
        in->skip = sizes.data && !sizes.failed && !strcmp(sizes.data, listed);
        self->counts.skipped += in->skip ? 1 : 0;
        text_free(&sizes);
    }
}

/* What other settings left there is said, or removed. Another run may just be making a file of such a name. */
static int job_look_for_stale(const job* self, text_list* stale) {
    const options* const asked = self->desc.asked;
    const bool clean = asked->clean && self->lock.alone;
    if (stale_find(&self->manifest, &self->names, &self->inputs, asked, stale))
        return console_memory();
    if (stale->count > 0)
        remarks_add("stale_outputs", asked->output, "%s %zu file%s of runs with other settings%s: %s%s",
                    clean ? "removed" : "there are still", stale->count, stale->count == 1 ? "" : "s",
                    clean          ? ""
                    : asked->clean ? ", kept while another run is at work there"
                                   : " (see --clean)",
                    stale_name(stale->items[0]), stale->count > 1 ? ", ..." : "");
    if (clean) {
        stale_remove(asked->output, stale);
        text_list_free(stale);
    }
    return EXIT_DONE;
}

int job_open_directory(job* self) {
    const options* const asked = self->desc.asked;
    gpst_context_info info;
    manifest_desc desc;
    text_list stale = GPST_ZERO;
    desc.directory = asked->output;
    desc.settings = self->desc.settings;
    desc.resume = asked->resume;
    desc.sync = asked->fsync != (int)GPST_FSYNC_NONE;
    desc.command = asked->command_name;
    desc.no_jpeg = asked->falls_back ? self->no_jpeg : NULL;
    gpst_context_query_info(self->context, &info);
    int status = outputs_open_directory(asked->output, asked->command_name);
    if (status == EXIT_DONE)
        status = run_lock_open(&self->lock, asked->output, info.temporary_tag, desc.settings);
    desc.tag = info.temporary_tag;
    if (status == EXIT_DONE)
        status = manifest_open(&self->manifest, &desc);
    if (status == EXIT_DONE)
        status = job_look_for_stale(self, &stale);
    if (status == EXIT_DONE)
        status = manifest_start(&self->manifest, &desc, &stale);
    if (status == EXIT_DONE)
        status = manifest_say_others(&self->manifest, run_lock_is_alone(&self->lock, asked->output));
    text_list_free(&stale);
    if (status == EXIT_DONE && asked->resume)
        job_skip_whole(self);
    const char* const problem = status == EXIT_DONE ? outputs_make_mask_folders(&self->names, &self->inputs) : NULL;
    if (problem) {
        console_error("-o=%s: %s", asked->output, problem);
        status = EXIT_MACHINE;
    }
    return status;
}
