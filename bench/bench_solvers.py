#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""cantle and its rivals on the same files: HiGHS (exact 0-1 program), toulbar2 (weighted CSP) and plain bucket elimination, each in a
process of its own, with the time limit, memory limit and machine of the others. All solve the graph of `cantle solve`; every labelling
found is priced by cantle (`--evaluate`), so that objectives are comparable. Rounds are interleaved; figures are medians.

    ./dev bench bench_solvers                       (all of ../shared/instances; about 6 minutes)
    python3 bench/bench_solvers.py --time-limit 60 --only '8b_2d' FOLDER_OR_FILES...

Needs build/release/bin/cantle (or $CANTLE) and the Debian package toulbar2; a solver that is missing is left out and said so.
"""
import argparse
import json
import lzma
import os
import pathlib
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CANTLE = os.environ.get("CANTLE") or str(ROOT / "build/release/bin/cantle")
MEMORY = 12 << 30       # bytes of address space for each process
FAST = 1.5              # seconds: a run below this is repeated


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(command, limit):
    """Runs to the end or `limit` seconds: (exit status, None when killed; stdout; stderr; wall seconds; peak bytes).

    The limit is of processor time, so that a busy machine ends no run early; a run ends after four times as much wall time, too. The
    peak is looked up every 10 ms: what wait4 tells contains this interpreter's memory before the exec.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start, peak, killed = time.perf_counter(), 0, False
        process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
        while process.poll() is None:
            try:
                high = re.search(r"VmHWM:\s*(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())
                used = processor_seconds(process.pid)
            except OSError:
                continue  # it has just ended
            peak = max(peak, int(high[1]) * 1024 if high else 0)
            if not killed and (used > limit or time.perf_counter() - start > 4 * limit):
                process.kill()
                killed = True
            time.sleep(0.01)
        wall = time.perf_counter() - start
        out.seek(0)
        err.seek(0)
        return (None if killed else process.returncode), out.read(), err.read(), wall, peak


class CantleSolver:
    """One of `cantle solve`'s solvers."""

    def __init__(self, name, *options):
        self.name, self.options = name, options

    def solve(self, problem, limit):
        command = [CANTLE, "solve", problem.path, "--json", "--time-limit", str(limit), *self.options]
        status, out, err, wall, peak = run(command, limit + max(15, limit / 2) + problem.slack)
        row = {"wall": wall, "peak_bytes": peak, "objective": None, "bound": None}
        if status is None:
            return dict(row, status="killed", solve=None, note=f"did not end {limit} s after its limit began")
        if status != 0:
            number = re.match(r"cantle error (\d+)", err)
            what = {"503": "does not fit", "501": "infeasible", "702": "missing"}.get(number and number[1], "failed")
            return dict(row, status=what, solve=None, note=err.strip()[:200])
        j = json.loads(out)
        s = j["seconds"]
        return dict(row, status=j["status"], objective=j["objective"], bound=j["bound"], solve=s["solve"], build=s["build"], read=s["read"],
                    until_best=s["until_best"], peak_bytes=j["peak_bytes"])


class Toulbar2:
    """toulbar2 on the export of the problem. Its solving time is the CPU time it prints, without reading the file."""

    def __init__(self, name, *options):
        self.name, self.options = name, options

    def solve(self, problem, limit):
        network, seconds = problem.network()
        answer = problem.folder / "answer.sol"
        answer.unlink(missing_ok=True)
        command = [shutil.which("toulbar2"), str(network), f"-timer={int(limit)}", f"-w={answer}", *self.options]
        # Its limit begins after reading, which takes half a minute for 400 MB.
        status, out, err, wall, peak = run(command, limit + 15 + 2 * problem.slack)
        row = {"wall": wall, "peak_bytes": peak, "objective": None, "bound": None, "build": seconds, "solve": None}
        bounds = re.findall(r"(?:Optimality gap|lower and upper bounds): \[([-\d.]+),", out)
        if bounds:
            row["bound"] = float(bounds[-1])
        if answer.exists() and answer.read_text().split():
            labels = problem.folder / "labels.json"
            labels.write_text(json.dumps({"labels": [int(x) for x in answer.read_text().split()]}))
            priced = subprocess.run([CANTLE, "solve", problem.path, "--evaluate", str(labels), "--json"], capture_output=True, text=True)
            if priced.returncode == 0:  # else it was killed while it wrote
                row["objective"] = json.loads(priced.stdout)["objective"]
        end = re.search(r"Optimum: ([-\d.]+) in .* and ([\d.]+) seconds", out)
        if end:
            return dict(row, status="optimal", bound=float(end[1]), solve=float(end[2]), read=wall - float(end[2]))
        return dict(row, status="killed" if status is None else "stopped", note=(out + err).strip()[-200:])


class Problem:
    def __init__(self, path, folder):
        self.path, self.folder = str(path), folder
        self.name = path.name.replace(".json", "").replace(".xz", "")
        self.network_ = None
        with (lzma.open(path, "rt") if path.suffix == ".xz" else open(path)) as f:
            data = json.load(f)
        known = [r["objective"] for r in data.get("reference", {}).values() if r.get("objective") is not None]
        self.optimum = min(known, default=None)
        self.slack = path.stat().st_size / 3e4  # seconds of reading that a large problem is granted beyond the limit

    def network(self):
        """Path of the exported network and the seconds that the export took; made once."""
        if not self.network_:
            path, start = self.folder / "problem.cfn", time.perf_counter()
            subprocess.run([CANTLE, "solve", self.path, "--export", str(path)], check=True, capture_output=True)
            self.network_ = path, time.perf_counter() - start
        return self.network_


def solvers():
    found = [CantleSolver("cantle"), CantleSolver("HiGHS", "--solver", "highs"),
             CantleSolver("HiGHS, reduced", "--solver", "highs", "--reduce"),
             CantleSolver("elimination, reduced", "--solver", "elimination", "--reduce")]
    if shutil.which("toulbar2"):
        found += [Toulbar2("toulbar2"), Toulbar2("toulbar2 -A", "-A")]
    else:
        print("toulbar2 is not installed: left out (./dev bench bench_solvers installs it)", file=sys.stderr)
    return found


def measure(problem, rivals, limit, rounds):
    runs = {s.name: [] for s in rivals}
    for i in range(rounds):
        for s in rivals:
            done = runs[s.name]
            if i and (done[0]["wall"] > FAST or done[0]["status"] not in ("optimal", "within_gap")):
                continue
            print(f"  {problem.name}: {s.name}, run {i + 1}", file=sys.stderr, flush=True)
            done.append(s.solve(problem, limit))
    rows = []
    for s in rivals:
        done = runs[s.name]
        row = dict(done[0], solver=s.name, instance=problem.name, runs=len(done), optimum=problem.optimum)
        for key in ("solve", "build", "read", "wall", "until_best"):
            values = [r[key] for r in done if r.get(key) is not None]
            row[key] = statistics.median(values) if values else None
        row["peak_bytes"] = max(r["peak_bytes"] for r in done)
        objective, bound = row["objective"], row["bound"]
        row["gap"] = (objective - bound) / abs(objective) if objective and bound is not None else None
        rows.append(row)
    own = rows[0]["solve"]
    for row in rows:
        row["ratio"] = row["solve"] / own if row["solve"] and own else None
    return rows


def text(row, limit):
    def number(x, form):
        return "" if x is None else format(x, form)

    def ratio(x):
        return "" if x is None else f"{x:.2g}" if x < 99.5 else f"{x:,.0f}"

    # A run that its limit ended has no solving time.
    ended, done = row["status"] in ("stopped", "killed"), row["status"] in ("optimal", "within_gap")
    seconds = number(row["solve"], ".4f") if done else f"> {limit:g}" if ended else ""
    times = ratio(row["ratio"]) if done else ""
    gap = "" if row["gap"] is None else "0" if abs(row["gap"]) < 1e-12 else f"{row['gap']:.1e}"
    cells = (row["instance"], row["solver"], row["status"], number(row["objective"], ",.3f"), number(row["bound"], ",.3f"), gap, seconds,
             times, number(row.get("build"), ".3f"), f"{row['peak_bytes'] / 1e6:,.0f}")
    return "| " + " | ".join(cells) + " |"


def summary(rows, limit):
    """Seconds of solving to the proven optimum, a row per instance."""
    names = list(dict.fromkeys(r["solver"] for r in rows))
    print("\n| instance | optimum | " + " | ".join(names) + " |\n" + "|---" * (2 + len(names)) + "|")
    for instance in dict.fromkeys(r["instance"] for r in rows):
        of = {r["solver"]: r for r in rows if r["instance"] == instance}
        cells = []
        for r in of.values():
            done = r["status"] in ("optimal", "within_gap")
            ended = f"> {limit:g}" + (f", gap {r['gap']:.1g}" if r["gap"] is not None else "") if r["solve"] or r["status"] in (
                "killed", "stopped") else r["status"]
            cells.append(f"{r['solve']:.4f}" if done else ended)
        optimum = next(iter(of.values()))["optimum"]
        print(f"| {instance} | " + ("" if optimum is None else f"{optimum:,.3f}") + " | " + " | ".join(cells) + " |")


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores of {model}, load {load:.1f} when it began"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instances", nargs="*", type=pathlib.Path, default=[ROOT.parent / "shared/instances"])
    parser.add_argument("--time-limit", type=float, default=10, help="seconds of solving for each run (default 10)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of what is fast (default 5)")
    parser.add_argument("--only", default="", help="regular expression on names of instances")
    parser.add_argument("--solvers", default="", help="regular expression on names of solvers; cantle always runs")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "out/bench_solvers.json")
    a = parser.parse_args()
    files = []
    for p in a.instances:
        files += sorted([*p.glob("*.json"), *p.glob("*.json.xz")]) if p.is_dir() else [p]
    files = [f for f in files if re.search(a.only, f.name)]
    if not files:
        print(f"no instances at {', '.join(map(str, a.instances))}: nothing is measured", file=sys.stderr)
        return
    rivals = [s for s in solvers() if s.name == "cantle" or re.search(a.solvers, s.name)]
    described = machine()
    print(f"{described}; at most {a.time_limit:g} s, {MEMORY >> 30} GiB; medians of {a.rounds} where one takes less than {FAST} s\n")
    print("| instance | solver | status | objective | bound | gap | solve s | times cantle's | build s | peak MB |\n" + "|---" * 10 + "|")
    rows = []
    for f in files:
        with tempfile.TemporaryDirectory() as folder:
            for row in measure(Problem(f, pathlib.Path(folder)), rivals, a.time_limit, a.rounds):
                print(text(row, a.time_limit), flush=True)
                rows.append(row)
        optimum, own = rows[-1]["optimum"], next(r for r in rows if r["instance"] == rows[-1]["instance"])
        if optimum is not None and (own["objective"] is None or own["objective"] > optimum * (1 + 1e-9)):
            print(f"{own['instance']}: cantle is above the stored solution of {optimum:.3f}", file=sys.stderr)
    summary(rows, a.time_limit)
    a.json.parent.mkdir(parents=True, exist_ok=True)
    a.json.write_text(json.dumps({"machine": described, "time_limit": a.time_limit, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
