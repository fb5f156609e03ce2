/* core/device/graph_gate.c -- when a graph pays: what runs take piece by piece, as a graph, and from one to the next.
   Pure: the same times give the same answers everywhere. */
#include "../base/platform_internal.h"

#include "graph_internal.h"

#define GPSTI_GRAPH_MIN_SAVING 50      /* a graph saves more than 1/50 of the period, or is not used */
#define GPSTI_GRAPH_PERIOD_WEIGHT 8    /* the period is a mean over about so many runs */
#define GPSTI_GRAPH_PAUSE 4            /* a gap is a pause beyond so many periods, and counts as so many */
#define GPSTI_GRAPH_NEW_RUNS 16        /* whose addresses are new, one after the other: they do not come again */
#define GPSTI_GRAPH_TRIED_MOVES 4      /* of graphs to new addresses, before their least time is judged */
#define GPSTI_GRAPH_RUNS_A_MEASURE 128 /* every so many runs one is measured piece by piece */

GPSTI_INTERN void gpsti_graph_family_begin(gpsti_graph_family* family, int64_t now_ns) {
    const int64_t since_ns = now_ns - family->latest_ns, period_ns = family->period_ns;
    if (family->n_runs == 1)
        family->period_ns = since_ns > 0 ? since_ns : 1;
    else if (family->n_runs > 1)
        family->period_ns += ((since_ns < GPSTI_GRAPH_PAUSE * period_ns ? since_ns : GPSTI_GRAPH_PAUSE * period_ns) -
                              period_ns) / GPSTI_GRAPH_PERIOD_WEIGHT;
    family->latest_ns = now_ns;
    family->n_runs++;
}

/* The least of all: what else the thread did meanwhile is no cost of the run's. */
GPSTI_PRIVATE void gpsti_graph_family_least(int64_t* least, int64_t took_ns) {
    const int64_t ns = took_ns > 0 ? took_ns : 1;
    if (*least == 0 || ns < *least)
        *least = ns;
}

GPSTI_INTERN void gpsti_graph_family_end(gpsti_graph_family* family, bool as_graph, int64_t took_ns) {
    gpsti_graph_family_least(as_graph ? &family->graph_ns : &family->pieces_ns, took_ns);
}

GPSTI_INTERN void gpsti_graph_family_moved(gpsti_graph_family* family, int64_t took_ns) {
    gpsti_graph_family_least(&family->move_ns, took_ns);
    family->n_moves++;
}

GPSTI_INTERN bool gpsti_graph_family_moves(gpsti_graph_family* family, bool is_new) {
    family->n_new = is_new ? family->n_new + 1 : 0;
    return family->n_new > GPSTI_GRAPH_NEW_RUNS;
}

/* Before there was a graph: it is one launch, so it takes what one piece takes. */
GPSTI_INTERN bool gpsti_graph_family_pays(const gpsti_graph_family* family, uint32_t n_commands) {
    if (n_commands < 2 || family->pieces_ns == 0 || family->period_ns == 0)
        return false;
    const int64_t graph_ns = family->graph_ns ? family->graph_ns : family->pieces_ns / (int64_t)n_commands;
    return (family->pieces_ns - graph_ns) > family->period_ns / GPSTI_GRAPH_MIN_SAVING;
}

GPSTI_INTERN bool gpsti_graph_family_move_pays(const gpsti_graph_family* family, uint32_t n_commands) {
    if (n_commands < 2 || family->pieces_ns == 0 || family->period_ns == 0)
        return false;
    return family->n_moves < GPSTI_GRAPH_TRIED_MOVES ||
           family->pieces_ns - family->move_ns > family->period_ns / GPSTI_GRAPH_MIN_SAVING;
}

GPSTI_INTERN bool gpsti_graph_family_measures(const gpsti_graph_family* family) {
    return family->n_runs % GPSTI_GRAPH_RUNS_A_MEASURE == 0;
}
