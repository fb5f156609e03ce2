/* core/device/graph_internal.h -- what graphs and their cache share, and when a graph pays: a pure policy. */
#ifndef GPSTI_GRAPH_INTERNAL_H
#define GPSTI_GRAPH_INTERNAL_H

#include "device_internal.h"
#include "graph.h"

/* Ends the recording, which stays in stream->commands. STATE; what a recorded call has failed with. */
GPSTI_INTERN gpst_result gpsti_graph_stop(gpst_stream* stream, const char* function);
/* A graph of the commands, by way of a stream that is not recording; *graph as gpsti_backend_i.graph_end has it. */
GPSTI_INTERN gpst_result gpsti_graph_capture(gpst_stream* stream, const gpsti_commands* commands, gpsti_graph** graph);
/* Puts the recorded commands on their stream, piece by piece. */
GPSTI_INTERN gpst_result gpsti_graph_put(gpst_stream* stream);

/* A stream that records runs what it has and records no more; another one goes on as it is. */
GPSTI_INTERN gpst_result gpsti_graph_flush(gpst_stream* stream);
/* Calls of the allocator for graphs that were made. */
GPSTI_INTERN uint64_t gpsti_graph_cache_n_allocations(gpst_graph_cache* cache);
/* gpst_graph_cache_run of a recording that has stopped. */
GPSTI_INTERN gpst_result gpsti_graph_cache_run(gpst_graph_cache* cache, gpst_stream* stream);

/* ---- when a graph pays: graph_gate.c ------------------------------------------------ */

/* Runs with the same kernels and sizes, whatever their addresses. Zeroed, but for topology, none was seen. */
typedef struct gpsti_graph_family {
    uint64_t topology;
    uint64_t n_runs;
    uint64_t used_at;  /* the cache's clock */
    int64_t latest_ns; /* when the latest run began */
    int64_t period_ns; /* from one to the next, about; 0 = not known */
    int64_t pieces_ns; /* the least that the calling thread has taken piece by piece; 0 = not known; */
    int64_t graph_ns;  /* and as a graph; */
    int64_t move_ns;   /* and as one that took new addresses, */
    uint32_t n_moves;  /* of so many */
    uint32_t n_new;    /* runs, one after the other until now, whose addresses came for the first time */
    bool failed;       /* no graph can be made */
} gpsti_graph_family;

/* A run begins. */
GPSTI_INTERN void gpsti_graph_family_begin(gpsti_graph_family* family, int64_t now_ns);
/* The calling thread took so long for it. */
GPSTI_INTERN void gpsti_graph_family_end(gpsti_graph_family* family, bool as_graph, int64_t took_ns);
/* Would a graph of n commands save enough? */
GPSTI_INTERN bool gpsti_graph_family_pays(const gpsti_graph_family* family, uint32_t n_commands);
/* The addresses of this run came for the first time, or not: true where that is so run after run. Then they will not
   come again, and a graph is to take each of them. */
GPSTI_INTERN bool gpsti_graph_family_moves(gpsti_graph_family* family, bool is_new);
/* The calling thread took so long for a graph that took new addresses, its launch included. */
GPSTI_INTERN void gpsti_graph_family_moved(gpsti_graph_family* family, int64_t took_ns);
/* Would another one save enough? Some have to be tried. */
GPSTI_INTERN bool gpsti_graph_family_move_pays(const gpsti_graph_family* family, uint32_t n_commands);
/* Is this run, which a graph is there for, one to be measured piece by piece? */
GPSTI_INTERN bool gpsti_graph_family_measures(const gpsti_graph_family* family);

#endif
