/* examples/00_folder.c -- a folder of 360-degree frames to eight views each, in ten lines.

   cc -std=c11 -O2 -I. examples/00_folder.c -o folder -pthread
   ./folder FILE|FOLDER...
*/
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <stdio.h>

int main(int argc, char** argv) {
    gpst_reproject_desc job = GPST_ZERO;
    gpst_report report;
    job.inputs = (const char* const*)argv + 1;
    job.n_inputs = (size_t)argc - 1; /* files or folders */
    job.n_views = 8;                 /* around the horizon, 90 degrees each, 1920x1080, JPEG: all defaults */
    job.output_dir = "views";
    const gpst_result result = gpst_reproject_files(&job, &report);
    printf("%s\n", GPST_FAILED(result)   ? gpst_last_reason()
                   : report.first_failure[0] ? report.first_failure
                                             : report.stats.verdict.text);
    return result != GPST_OK;
}
