#!/usr/bin/env python3
"""bench/jobs.py -- jobs of seconds as users have them, each against the plain loop, a hand-tuned pool of threads, and
an older version of gpustage; interleaved, with a control.

Every run is a process of its own: run_job JOB --way engine|serial|pool (bench/jobs/). A round is one run each of

    base     the engine of the base version (git archive, built once)
    new      the engine as it is here
    control  the base once more: by how much it differs from itself, no other difference can be told
    serial   the plain loop on one thread, by hand; on a GPU a pipeline in plain mode
    pool     the same loop on as many threads as are best here, tried out once

and rounds begin with another one each time. Of two ways the ratio is taken round by round; what is printed is the mean
of the ratios and the half-width of its 95 % confidence interval (of three rounds 2.5 standard deviations, of five
1.2: take five). Where the control's half-width is above 3 % the job
gets twice as long and is measured again, up to --most-seconds. Ratios above 1 are in favour of new: of items/s, and for
cameras, whose rate is given, of the median latency.

A job is as long as the new engine takes --seconds for it. The plain loop has fewer items where it would take more than
three times that; its rate is compared all the same, and the hash that shows that all ways did the same work is of the
items that all of them had.

Efficiency is bound over measured time: N times the largest demand of one item as the plain loop's run had it, and one
item's way. Demands: CPU seconds over cores, time in reads and writes that nobody computed in, on a GPU the copies and
kernels, and what has one executor. A disk that serves several at once faster than one after another can lift it above
100 %. Cameras have none: they are not to be kept full.

Inputs lie on an ordinary file system, where users have them, and are read once before a run, so that they come from the
page cache (files in tmpfs would be read another way); those of `cold` are dropped from it. Outputs go to memory
(/dev/shm), or the disk would be measured in every job; those of `synced` and `overwrite` go to the disk, since that is
what these two are about.

usage: bench/jobs.py [--jobs a,b,c] [--rounds N] [--seconds S] [--backend cpu|cuda] [--base REV|none] [--json FILE]
                     [--dir DIR] [--new PROGRAM] [--base-bin PROGRAM]
       bench/jobs.py --table FILE...    prints the table of what --json has written; of several, one by one
Exit status: 0; 1 where a run failed or two ways had different results; 2 wrong usage.
"""
import argparse
import datetime
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_HALF_WIDTH = 0.03 # of the control
MOST_COLD_BYTES = 8 << 30
MOST_THREADS = 64
MOST_TRIES = 3 # to find a length
LEAST_OUT_BYTES = 4 << 30 # free in memory, for outputs to go there
# 97.5 % quantiles of Student's t, by degrees of freedom.
T_QUANTILE = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 15: 2.13,
              20: 2.09}


class Failed(Exception):
    pass


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- programs ------------------------------------------------------------------------------------------

def build(options, base):
    """Path of run_job, made by make: of the sources here, or with the gpustage.h of another revision."""
    gpu = [] if options.backend == "cpu" else ["GPU=" + options.backend]
    command = ["make", "-C", ROOT, "bench-jobs"] + gpu + (["BASE=" + base] if base else [])
    say("building: " + " ".join(command))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise Failed(done.stdout.decode("utf-8", "replace"))
    return os.path.join(ROOT, "build", *[options.backend] * bool(gpu), "jobs", *[base] * bool(base), "run_job")


class Bench:
    """Programs and folders, and one run of a job."""

    def __init__(self, options):
        self.options = options
        self.new = options.new or build(options, None)
        self.base = options.base_bin or (None if options.base == "none" else build(options, options.base))
        self.inputs = os.path.join(options.dir, "inputs-%d" % options.shrink if options.shrink > 1 else "inputs")
        os.makedirs(self.inputs, exist_ok=True)
        self.memory = options.dir
        if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free >= LEAST_OUT_BYTES:
            self.memory = "/dev/shm"
        listed = subprocess.run([self.new, "--list"], stdout=subprocess.PIPE, check=True).stdout
        self.jobs = {job["name"]: job for job in json.loads(listed)}
        self.cores = len(os.sched_getaffinity(0))
        self.wrong = []

    def files(self, job, items):
        """How many different inputs: of cold files one an item, in tests few."""
        if job["cold"]:
            return max(items, 1)
        return min(job["files"], 8) if self.options.shrink > 1 else max(job["files"], 1)

    def call(self, program, job, items, flags):
        command = [program, job["name"], "--dir", self.inputs, "--files", str(self.files(job, items)),
                   "--shrink", str(self.options.shrink)] + flags
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
        except subprocess.TimeoutExpired as error:
            raise Failed("%s: no end within 600 s" % " ".join(command)) from error
        if done.returncode:
            said = (done.stdout + done.stderr).decode("utf-8", "replace")
            raise Failed("%s: status %d\n%s" % (" ".join(command), done.returncode, said))
        return done.stdout

    def make(self, job, items):
        self.call(self.new, job, items, ["--make"])

    def run(self, program, job, way, items, threads=0, check=0):
        out = tempfile.mkdtemp(prefix="gpustage-jobs-", dir=self.options.dir if job["output_on_disk"] else self.memory)
        try:
            flags = ["--way", way, "--items", str(items), "--out", out, "--backend", self.options.backend,
                     "--threads", str(threads), "--check", str(check)]
            return json.loads(self.call(program, job, items, flags))
        finally:
            shutil.rmtree(out)


# ---- how long a job is, and how many threads its pool has ------------------------------------------------

def most_items(bench, job):
    if not job["cold"]:
        return 100000000
    bench.make(job, 1)
    size = max(os.path.getsize(os.path.join(bench.inputs, name)) for name in os.listdir(bench.inputs)
               if name.startswith(job["name"] + "_"))
    return max(1, min(MOST_COLD_BYTES, shutil.disk_usage(bench.inputs).free // 2) // size)


def size_engine(bench, job, seconds):
    """Items for which the new engine takes about so long."""
    if bench.options.items:
        return bench.options.items
    if job["items_per_s"]: # a camera's
        return max(1, round(job["items_per_s"] * seconds))
    most = most_items(bench, job)
    items = min(job["first_items"], most)
    while True:
        bench.make(job, items)
        taken = bench.run(bench.new, job, "engine", items)["wall_s"]
        if taken >= seconds / 2 or items == most:
            return min(most, max(1, round(items * seconds / taken)))
        items = min(most, max(items + 1, round(items * min(10, seconds / taken))))


def size_serial(bench, job, items, seconds):
    """Items of the plain loop: all of them, or as many as it does in three times the engine's seconds."""
    if job["items_per_s"] or bench.options.items:
        return items
    few = max(1, min(items, round(items / bench.cores / 4)))
    taken = bench.run(bench.new, job, "serial", few)["wall_s"]
    return max(1, min(items, round(few * 3 * seconds / taken)))


def merit(run):
    """The higher the better: items/s, or of a camera the median latency turned over."""
    return 1e3 / run["p50_ms"] if "p50_ms" in run else run["items_per_s"]


def tune_pool(bench, job, items, serial_items):
    """The number of threads that is best, and what was tried: powers of two up to twice the cores, the cores, and on
    from there while twice as many gain more than 2 %. Few threads have fewer items: tries take about as long."""
    tried = {}
    wanted = sorted({1 << k for k in range(7) if 1 << k <= 2 * bench.cores} | {bench.cores})
    while wanted:
        threads = wanted.pop(0)
        some = items if job["items_per_s"] else min(items, max(serial_items // 3, 1) * threads)
        tried[threads] = merit(bench.run(bench.new, job, "pool", some, threads))
        others = [rate for n, rate in tried.items() if n != threads]
        if not wanted and threads * 2 <= MOST_THREADS and tried[threads] > 1.02 * max(others):
            wanted.append(threads * 2)
    return max(tried, key=tried.get), tried


# ---- rounds ------------------------------------------------------------------------------------------------

def interval(ratios):
    """Mean of ratios, and half the width of its 95 % confidence interval as a part of it; of one there is none."""
    logs = [math.log(ratio) for ratio in ratios]
    mean, n = statistics.mean(logs), len(logs)
    if n < 2:
        return {"mean": math.exp(mean), "half_width": None, "ratios": ratios}
    quantile = T_QUANTILE[max(k for k in T_QUANTILE if k <= n - 1)]
    return {"mean": math.exp(mean), "half_width": math.expm1(quantile * statistics.stdev(logs) / math.sqrt(n)),
            "ratios": ratios}


def run_rounds(bench, job, plan):
    """Way -> its runs, one a round."""
    ways = {"base": (bench.base, "engine", plan["items"], 0), "new": (bench.new, "engine", plan["items"], 0),
            "control": (bench.base, "engine", plan["items"], 0),
            "serial": (bench.new, "serial", plan["serial_items"], 0),
            "pool": (bench.new, "pool", plan["items"], plan["threads"])}
    ways = {name: way for name, way in ways.items() if way[0]}
    names, runs = list(ways), {name: [] for name in ways}
    for turn in range(bench.options.rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            program, way, items, threads = ways[name]
            runs[name].append(bench.run(program, job, way, items, threads, plan["serial_items"]))
    return runs


def ratios(runs, above, below):
    """Round by round. What is compared with the base is compared with both of its runs."""
    pairs = zip(runs[above], *[runs[name] for name in below])
    return interval([merit(over) / statistics.mean(merit(run) for run in under) for over, *under in pairs])


def efficiency(runs, way):
    """Bound over measured, and the resource that sets the bound: demands are the plain loop's."""
    if "p50_ms" in runs[way][0]:
        return None, ""
    demands = {}
    for run in runs["serial"]:
        for name, seconds in run["demands_s"].items():
            demands.setdefault(name, []).append(seconds / run["items"])
    demands = {name: statistics.median(values) for name, values in demands.items()}
    largest = max(demands, key=demands.get)
    items = runs[way][0]["items"]
    bound_s = items * demands[largest] + statistics.median(run["wall_s"] / run["items"] for run in runs["serial"])
    return bound_s / statistics.median(run["wall_s"] for run in runs[way]), largest


def measure(bench, job):
    """Everything about one job."""
    seconds = bench.options.seconds
    bench.make(job, 1)
    longer = tries = 0
    items = size_engine(bench, job, seconds)
    while True:
        bench.make(job, items)
        plan = {"items": items, "serial_items": size_serial(bench, job, items, seconds)}
        if not longer and not tries: # the best number does not depend on the length
            threads, tried = tune_pool(bench, job, items, plan["serial_items"])
        plan.update(threads=threads, tried=tried)
        say("%s: %d items (plain loop: %d), pool of %d" % (job["name"], items, plan["serial_items"], threads))
        runs = run_rounds(bench, job, plan)
        control = ratios(runs, "control", ["base"]) if bench.base else None
        wide = control and (control["half_width"] or 0) > MOST_HALF_WIDTH
        most = most_items(bench, job)
        taken = statistics.median(run["wall_s"] for run in runs["new"])
        if taken < seconds / 2 and items < most and tries < MOST_TRIES and not bench.options.items:
            tries += 1 # something else ran while the length was sought
            items = min(most, round(items * seconds / taken))
            say("%s: took %.1f s only: again" % (job["name"], taken))
            continue
        if not wide or bench.options.items or seconds * 2 > bench.options.most_seconds or items == most:
            break
        say("%s: control %s: twice as long" % (job["name"], ratio_text(control)))
        longer += 1
        seconds *= 2
        items = min(most, items * 2)
    figures = {"text": job["text"], "plan": plan, "longer": longer, "wide": bool(wide), "control": control,
               "runs": runs, "new_over_serial": ratios(runs, "new", ["serial"]),
               "new_over_pool": ratios(runs, "new", ["pool"])}
    if bench.base:
        figures["new_over_base"] = ratios(runs, "new", ["base", "control"])
    figures["efficiency"], figures["bound_by"] = efficiency(runs, "new")
    hashes = sorted({run["hash"] for done in runs.values() for run in done})
    figures["same_results"] = len(hashes) == 1
    if len(hashes) > 1:
        bench.wrong.append("%s: the ways had different results: %s" % (
            job["name"], {name: sorted({run["hash"] for run in done}) for name, done in runs.items()}))
    return figures


# ---- what is printed --------------------------------------------------------------------------------------------

COLUMNS = ["job", "items", "s", "items/s", "new/base", "control", "new/serial", "new/pool (threads)", "efficiency",
           "CPU s new (base)", "MiB new (base)", "p50/p99 ms new (base)", "notes"]


def median(runs, name, key):
    return statistics.median(run[key] for run in runs[name])


def ratio_text(value):
    if not value:
        return "-"
    if value["half_width"] is None:
        return "%.2f" % value["mean"]
    if value["half_width"] >= 1: # too few rounds, or too busy a machine: nothing can be said
        return "%.2f ±>100 %%" % value["mean"]
    return "%.3f ±%.1f %%" % (value["mean"], 100 * value["half_width"])


def with_base(runs, form, *keys):
    text = form % tuple(median(runs, "new", key) for key in keys)
    return text + " (" + form % tuple(median(runs, "base", key) for key in keys) + ")" if "base" in runs else text


def peak_text(runs):
    peak = {name: max(run["peak_rss_bytes"] for run in done) / (1 << 20) for name, done in runs.items()}
    return "%.0f (%.0f)" % (peak["new"], peak["base"]) if "base" in runs else "%.0f" % peak["new"]


def row(name, figures):
    runs, plan, notes = figures["runs"], figures["plan"], []
    if figures["longer"]:
        notes.append("made %d times as long" % (1 << figures["longer"]))
    if figures["wide"]:
        notes.append("control too wide, at the cap of length")
    if not figures["same_results"]:
        notes.append("DIFFERENT RESULTS")
    reached = "-"
    if figures["efficiency"] is not None:
        reached = "%.0f %% of %s" % (100 * figures["efficiency"], figures["bound_by"])
    return [name, str(plan["items"]), "%.1f" % median(runs, "new", "wall_s"),
            "%.5g" % median(runs, "new", "items_per_s"), ratio_text(figures.get("new_over_base")),
            ratio_text(figures["control"]), ratio_text(figures["new_over_serial"]),
            ratio_text(figures["new_over_pool"]) + " (%d)" % plan["threads"], reached,
            with_base(runs, "%.2f", "cpu_s"), peak_text(runs),
            with_base(runs, "%.1f/%.1f", "p50_ms", "p99_ms") if "p50_ms" in runs["new"][0] else "-", "; ".join(notes)]


def print_table(results):
    done = {name: figures for name, figures in results["jobs"].items() if "runs" in figures}
    print("%(machine)s, %(cores)d cores%(gpu)s, %(memory_gib).0f GiB; backend %(backend)s; new %(new)s, base %(base)s; "
          "%(rounds)d rounds; %(when)s" % results)
    print("    " + results["command"] + "\n")
    print("| " + " | ".join(COLUMNS) + " |\n" + "| --- " * len(COLUMNS) + "|")
    for name, figures in done.items():
        print("| " + " | ".join(row(name, figures)) + " |")
    print()
    for name, figures in done.items():
        print("%s: %s" % (name, figures["runs"]["new"][-1].get("verdict", "")))
    sys.stdout.flush()


# ---- the machine --------------------------------------------------------------------------------------------------

def first_line(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, check=False)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace").split("\n")[0].strip() if done.returncode == 0 else ""


def machine_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            names = [line.split(":", 1)[1].strip() for line in stream if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def describe(options):
    commit = first_line(["git", "rev-parse", "--short", "HEAD"])
    if commit and first_line(["git", "status", "--porcelain", "--untracked-files=no"]):
        commit += " with changes"
    gpu = first_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    return {"machine": machine_name(), "cores": len(os.sched_getaffinity(0)), "gpu": ", " + gpu if gpu else "",
            "memory_gib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30),
            "system": platform.release(), "backend": options.backend, "new": options.new or commit,
            "base": options.base_bin or options.base,
            "rounds": options.rounds, "seconds": options.seconds,
            "when": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "command": " ".join([os.path.relpath(sys.argv[0])] + sys.argv[1:]), "jobs": {}}


def print_tables(files):
    for file in files:
        with open(file, encoding="utf-8") as stream:
            print_table(json.load(stream))
    return 0


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--jobs", help="names, separated by commas; default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long the new engine takes for a job")
    parser.add_argument("--most-seconds", type=float, default=12.0, help="how long it may take at most")
    parser.add_argument("--items", type=int, default=0, help="so many, however long they take: for tests")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--dir", default=os.path.join(ROOT, "build", "jobs", "data"), help="of inputs, on a disk")
    parser.add_argument("--base", default="1af6187", help="a revision, or none")
    parser.add_argument("--new", help="run_job, already built")
    parser.add_argument("--base-bin", help="run_job with the base's gpustage.h, already built")
    parser.add_argument("--json", help="where everything is written, after each job")
    parser.add_argument("--table", nargs="+", metavar="FILE", help="written by --json: printed, nothing is run")
    parser.add_argument("--shrink", type=int, default=1, help="divides the sides of pictures: for tests")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.seconds <= 0 or options.shrink < 1:
        parser.error("--rounds, --seconds and --shrink must be above 0")
    return parser, options


def main(arguments):
    parser, options = parse(arguments)
    if options.table:
        return print_tables(options.table)
    bench = Bench(options)
    names = options.jobs.split(",") if options.jobs else list(bench.jobs)
    unknown = [name for name in names if name not in bench.jobs]
    if unknown:
        parser.error("--jobs: %s: must be of %s" % (",".join(unknown), ",".join(bench.jobs)))
    results = describe(options)
    for name in names:
        if not bench.jobs[name]["available"]:
            say("%s: left out: this build has no libjpeg-turbo" % name)
            continue
        try:
            results["jobs"][name] = measure(bench, bench.jobs[name])
        except Failed as error:
            bench.wrong.append("%s: %s" % (name, error))
            results["jobs"][name] = {"failed": str(error)}
        if options.json:
            with open(options.json + ".tmp", "w", encoding="utf-8") as stream:
                json.dump(results, stream, indent=1)
            os.replace(options.json + ".tmp", options.json)
    print_table(results)
    for text in bench.wrong:
        say("failed: " + text)
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failed as problem:
        say("bench/jobs.py: %s" % problem)
        sys.exit(1)
