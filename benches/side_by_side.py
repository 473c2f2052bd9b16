"""Runs every measurement of `make bench` one after the other, and writes results/bench/.

side_by_side.py BINARIES: the folder with headway, headway-bench-workload and headway-bench-peers;
simpy is importable. CPU time is measured wherever threads are not the point, so that another program
beside it disturbs caches and nothing else; the best of several runs counts. `--quick` does a tenth of
everything once: to see that it works, not how fast it is.
"""

import argparse
import csv
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RUNS = 3
SCENARIOS = ["openclaw", "areal-math", "verl-fully-async"]
# Slots, replicas, inputs of a run.
SLOTS = [(64, 1, 1_500_000), (256, 1, 1_500_000), (10_000, 40, 1_500_000), (100_000, 400, 1_500_000)]
OUTSTANDING = [(100, 200_000), (100_000, 600_000)]
IN_FLIGHT = 1_000_000


class Failed(Exception):
    pass


def run(words, **more):
    """Runs a program; gives what it printed, its CPU seconds, its wall seconds and its peak MB."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([str(word) for word in words], stdout=out, stderr=err, **more)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - began
        out.seek(0)
        err.seek(0)
        text, errors = out.read().decode(), err.read().decode()
    if child.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))}\n{errors}")
    return text, errors, usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def measured(words, **more):
    """What a program printed as JSON; its own CPU time, else that of its process."""
    text, _, cpu, _, peak = run(words, **more)
    values = json.loads(text)
    values["cpu_sec"] = values.get("cpu_sec") or cpu
    values["peak_mb"] = peak
    return values


def best(programs, runs, key="cpu_sec"):
    """The best of some runs of each program, taken in turns."""
    found = {}
    for _ in range(runs):
        for name, words in programs.items():
            values = measured(words)
            if name not in found or values[key] < found[name][key]:
                found[name] = values
    return found


class Bench:
    def __init__(self, binaries, quick):
        self.quick = quick
        self.runs = 1 if quick else RUNS
        self.workload = binaries / "headway-bench-workload"
        self.peers = binaries / "headway-bench-peers"
        self.headway = binaries / "headway"
        self.rows = []

    def few(self, count):
        return count // 10 if self.quick else count

    def best(self, programs):
        return best(programs, self.runs)

    def add(self, part, case, what, value, unit, beside="", ratio=None, goal=""):
        self.rows.append((part, case, what, value, unit, beside, ratio, goal))
        shown = f"{value:.4g}" if isinstance(value, float) else value
        print(f"{part}: {case}: {what}: {shown} {unit}", file=sys.stderr)

    def kernel(self):
        for model, case in [("queue", "M/M/1"), ("network", "closed network")]:
            programs = {
                "bare BinaryHeap": [self.workload, "heap", model, self.few(20_000_000)],
                "Headway": [self.workload, "kernel", model, self.few(20_000_000)],
                "simcore 0.1": [self.peers, "simcore", model, self.few(10_000_000)],
                "nexosim 1.0": [self.peers, "nexosim", model, self.few(2_000_000)],
                "simpy 4": [sys.executable, HERE / "peers/kernel.py", model, self.few(500_000)],
            }
            found = self.best(programs)
            rate = {name: run["events"] / run["cpu_sec"] for name, run in found.items()}
            goals = {"bare BinaryHeap": ">= 0.6", "simcore 0.1": "> 1"}
            for name in programs:
                ratio = rate["Headway"] / rate[name] if name != "Headway" else None
                self.add("kernel", case, name, rate[name] / 1e6, "M events/s",
                         "" if ratio is None else f"Headway / {name}", ratio, goals.get(name, ""))

    def scenarios(self):
        for name in SCENARIOS:
            file = ROOT / f"scenarios/{name}.toml"
            found = self.best({name: [self.workload, "run", file, 0]})[name]
            trained, cpu = found["trained"], found["cpu_sec"]
            things = found["world_events"] + found["inputs"] + found["actions"]
            self.add("scenario", name, "trained samples per CPU second", trained / cpu / 1e3, "k/s")
            self.add("scenario", name, "simulated hours per CPU second",
                     found["simulated_sec"] / 3600 / cpu, "h/s")
            self.add("scenario", name, "events per trained sample", things / trained, "")
            self.add("scenario", name, "events per CPU second", things / cpu / 1e6, "M/s")

    def slots(self, slots, replicas, *more):
        return [
            f"world.clients.slots={slots}",
            f"world.serving.replicas={replicas}",
            f"policy_training.batch_size={slots}",
            *more,
        ]

    def pipeline(self):
        for slots in (64, 1024):
            batch, eta = slots, 2
            ours = [self.workload, "run", HERE / "slots.toml", self.few(1_000_000),
                    *self.slots(slots, 1)]
            theirs = [sys.executable, HERE / "peers/pipeline.py", slots, batch, eta,
                      self.few(40_000)]
            found = self.best({"Headway": ours, "simpy 4": theirs})
            rate = {name: run["trained"] / run["cpu_sec"] for name, run in found.items()}
            case = f"{slots} slots"
            self.add("pipeline", case, "Headway", rate["Headway"] / 1e3, "k samples/s")
            self.add("pipeline", case, "simpy 4", rate["simpy 4"] / 1e3, "k samples/s",
                     "Headway / simpy 4", rate["Headway"] / rate["simpy 4"], ">= 60")

    def shares(self):
        """What the parts of a run take: the least of several runs, each."""
        for name in SCENARIOS:
            file = ROOT / f"scenarios/{name}.toml"
            runs = [measured([self.workload, "shares", file, 0]) for _ in range(self.runs)]
            least = {part: min(run[part] for run in runs)
                     for part in ("world_sec", "core_sec", "both_sec", "cpu_sec")}
            both = least["both_sec"]
            self.add("shares", name, "world and core", both, "s")
            self.add("shares", name, "world alone, decisions from a record", least["world_sec"], "s",
                     "of world and core", least["world_sec"] / both, ">= 0.6")
            self.add("shares", name, "core alone, inputs from a record", least["core_sec"], "s",
                     "of world and core", least["core_sec"] / both)
            self.add("shares", name, "a whole run, with metrics", least["cpu_sec"], "s",
                     "which is not the core's", 1 - least["core_sec"] / least["cpu_sec"], ">= 0.6")

    def scale(self):
        goals = {64: 8, 256: 7, 10_000: 4.5, 100_000: 1.4}
        for slots, replicas, inputs in SLOTS:
            words = [self.workload, "run", HERE / "slots.toml", self.few(inputs),
                     *self.slots(slots, replicas)]
            found = self.best({"run": words})["run"]
            things = found["world_events"] + found["inputs"] + found["actions"]
            rate = things / found["cpu_sec"] / 1e6
            self.add("scale", f"{slots} slots", "events per CPU second", rate, "M/s",
                     "of the skeleton", rate / goals[slots], ">= 1")
            self.add("scale", f"{slots} slots", "of these due in the world",
                     found["world_events"] / found["cpu_sec"] / 1e6, "M/s")
            self.add("scale", f"{slots} slots", "trained samples per CPU second",
                     found["trained"] / found["cpu_sec"] / 1e3, "k/s")

    def decisions(self):
        for outstanding, inputs in OUTSTANDING:
            with tempfile.TemporaryDirectory() as folder:
                words = [
                    "valgrind", "--tool=callgrind", "--collect-atstart=no",
                    "--toggle-collect=*decide_and_count*", f"--callgrind-out-file={folder}/out",
                    self.workload, "decisions", HERE / "slots.toml", self.few(inputs),
                    *self.slots(outstanding, max(outstanding // 256, 1)),
                ]
                text, errors, *_ = run(words)
            counts = json.loads(text)
            instructions = int(re.search(r"Collected : (\d+)", errors)[1])
            case = f"{outstanding} outstanding"
            self.add("decisions", case, "instructions per decision",
                     instructions / counts["actions"], "")
            self.add("decisions", case, "instructions per input", instructions / counts["inputs"], "")

    def size(self):
        in_flight = self.few(self.few(IN_FLIGHT))
        for samples in (2 * in_flight, 10 * in_flight):
            steps = samples // in_flight
            words = [self.workload, "run", HERE / "slots.toml", 0,
                     *self.slots(in_flight, 400, f"scenario.steps={steps}")]
            found = measured(words)
            case = f"{in_flight / 1e6:g} M in flight, {samples / 1e6:g} M trained"
            self.add("size", case, "peak memory", found["peak_mb"], "MB")
            self.add("size", case, "CPU", found["cpu_sec"], "s")

    def sweep(self):
        """17 points of 32 replications: by one thread, and by two."""
        taken = {}
        for jobs in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                words = [
                    self.headway, "sweep", ROOT / "scenarios/openclaw.toml",
                    "--over", "max_head_off_policyness=" + ",".join(map(str, range(17))),
                    "--replications", self.few(32), "--jobs", jobs, "--out", folder,
                ]
                _, _, cpu, wall, _ = run(words)
            taken[jobs] = wall
            case = f"openclaw, 17 points of {self.few(32)} runs"
            speedup = taken[1] / wall if jobs == 2 else None
            self.add("sweep", case, f"wall, {jobs} thread" + "s" * (jobs > 1), wall, "s",
                     "two threads against one" if jobs == 2 else "", speedup,
                     ">= 1.9" if jobs == 2 else "")
            self.add("sweep", case, f"CPU, {jobs} thread" + "s" * (jobs > 1), cpu, "s")


def number(value):
    if value is None:
        return ""
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


TABLES = {
    "kernel": "Event loop alone",
    "scenario": "Shipped scenarios, whole",
    "pipeline": "The same pipeline in simpy",
    "shares": "What the parts of a run take",
    "scale": "Closed loop of slots",
    "decisions": "Instructions of the core (callgrind)",
    "size": "A million samples in flight",
    "sweep": "A sweep",
}


def tables(rows):
    lines = []
    parts = {row[0] for row in rows}
    for part, title in TABLES.items():
        if part not in parts:
            continue
        lines += [f"### {title}", "", "| case | what | value | unit | ratio | | goal |",
                  "|---|---|---:|---|---:|---|---|"]
        for row_part, case, what, value, unit, beside, ratio, goal in rows:
            if row_part == part:
                lines.append(f"| {case} | {what} | {number(value)} | {unit} | {number(ratio)} "
                             f"| {beside} | {goal} |")
        lines.append("")
    return "\n".join(lines)


def machine(quick):
    def of(path, pattern):
        try:
            found = re.search(pattern, Path(path).read_text(), re.M)
        except OSError:
            found = None
        return found[1].strip() if found else "unknown"

    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)
    cpu = of("/proc/cpuinfo", r"^model name\s*:(.*)")
    cache = of("/proc/cpuinfo", r"^cache size\s*:(.*)")
    memory = of("/proc/meminfo", r"^MemTotal:\s*(\d+)")
    return "\n".join([
        *(["a quick run: it shows that everything works, not how fast it is"] if quick else []),
        f"CPU: {cpu}",
        f"cores: {os.cpu_count()}",
        f"cache: {cache}",
        f"memory: {int(memory) / (1 << 20):.0f} GiB" if memory.isdigit() else "memory: unknown",
        f"OS: {platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        f"rustc: {rustc.stdout.split()[1]}",
        f"Python: {platform.python_version()}",
    ]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "results/bench")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/performance.md")
    parser.add_argument("--only", nargs="*", choices=list(TABLES))
    parser.add_argument("--quick", action="store_true")
    words = parser.parse_args()
    bench = Bench(words.binaries, words.quick)
    parts = {
        "kernel": bench.kernel, "scenario": bench.scenarios, "pipeline": bench.pipeline,
        "shares": bench.shares, "scale": bench.scale, "decisions": bench.decisions,
        "size": bench.size, "sweep": bench.sweep,
    }
    for part in words.only or parts:
        parts[part]()
    if words.only:
        print(tables(bench.rows))
        return
    words.out.mkdir(parents=True, exist_ok=True)
    with open(words.out / "bench.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["part", "case", "what", "value", "unit", "ratio", "ratio_of", "goal"])
        for part, case, what, value, unit, beside, ratio, goal in bench.rows:
            writer.writerow([part, case, what, number(value), unit, number(ratio), beside, goal])
    about = machine(words.quick)
    (words.out / "machine.txt").write_text(about)
    text = words.page.read_text()
    begin, end = "<!-- bench: begin -->\n", "<!-- bench: end -->"
    head, rest = text.split(begin)
    _, tail = rest.split(end)
    page = f"{head}{begin}\n```text\n{about}```\n\n{tables(bench.rows)}\n{end}{tail}"
    words.page.write_text(page)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(str(failure))
