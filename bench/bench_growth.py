#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""How solving grows: with layers (clustered and not), with mesh axes, with strategies per node. Writes tables and out/bench_growth.svg.

    ./dev bench bench_growth                        (about 2 minutes)
    python3 bench/bench_growth.py --parts layers,axes,labels --limit 120 --memory 8

Layers and axes: LLaMA 3 8B at 16 x 2048 tokens with 2 to 64 layers, captured and planned by cantle's own rules and prices for H100.
Labels: factor graphs in the shape of a transformer (below) with seeded costs.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CANTLE = os.environ.get("CANTLE") or str(ROOT / "build/release/bin/cantle")
LAYERS = (2, 4, 8, 16, 32, 64)
MESHES = ("8", "4x8", "4x2x4", "2x2x2x4", "2x2x2x2x2")
LABELS = (4, 8, 16, 32, 64, 128, 256)


def run(command, limit, memory):
    """The JSON that it prints, or why there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory << 30, memory << 30)))
    except subprocess.TimeoutExpired:
        return f"more than {limit} s"
    if done.returncode == 0:
        return json.loads(done.stdout)
    return f"more than {memory} GiB" if "error 503" in done.stderr or done.returncode < 0 else done.stderr.strip()[:100]


def medians(command, a):
    """The report, its seconds being medians of `rounds` runs where one takes less than 2 s."""
    first = run(command, a.limit, a.memory)
    if isinstance(first, str):
        return first
    reports = [first] + [run(command, a.limit, a.memory) for _ in range(a.rounds - 1 if first["seconds"]["total"] < 2 else 0)]
    for key in first["seconds"]:
        first["seconds"][key] = statistics.median(r["seconds"][key] for r in reports)
    # On many mesh axes the search begins with seeds and a screen.
    first["seconds"]["solve"] += first["seconds"].get("seeds", 0) + first["seconds"].get("screen", 0)
    return first


def capture(layers, folder):
    path = folder / f"llama-{layers}.json"
    if not path.exists():
        subprocess.run([CANTLE, "capture", "llama3-8b", "--batch", "16", "--seq", "2048", "--set", f"layers={layers}", "-o", str(path)],
                       check=True, capture_output=True)
    return str(path)


def table(title, header, rows):
    print(f"\n{title}\n\n| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    sys.stdout.flush()


def plan_row(report):
    if isinstance(report, str):
        return [report] + [""] * 8
    c, s = report["counts"], report["seconds"]
    return [report["status"], f"{report['objective']:,.1f}", f"{report['gap']:.1e}", c["groups"], c["labels"], c["sweeps"],
            f"{s['rules'] + s['costs'] + s['build']:.4f}", f"{s['solve']:.4f}", f"{report['peak_bytes'] / 1e6:,.0f}"]


PLAN = ("status", "objective us", "gap", "groups", "labels", "sweeps", "build s", "solve s", "peak MB")


def layers(folder, a):
    rows, curves = [], {}
    for clustered in (True, False):
        name = "clustered" if clustered else "unclustered"
        for n in LAYERS:
            more = [] if clustered else ["--no-clustering"]
            report = medians([CANTLE, "plan", capture(n, folder), "--mesh", "4x8", "--json", *more], a)
            rows.append([name, n, *plan_row(report)])
            if not isinstance(report, str):
                curves.setdefault(name, []).append((n, report["seconds"]["solve"]))
    table("LLaMA 3 8B on 4x8 with so many layers", ("copies", "layers", *PLAN), rows)
    return "layers", curves


def axes(folder, a):
    rows, curve = [], []
    for mesh in MESHES:
        report = medians([CANTLE, "plan", capture(32, folder), "--mesh", mesh, "--json"], a)
        rows.append([mesh, *plan_row(report)])
        if not isinstance(report, str):
            curve.append((mesh.count("x") + 1, report["seconds"]["solve"]))
    table("LLaMA 3 8B, 32 layers, clustered, on meshes of one to five axes", ("mesh", *PLAN), rows)
    return "mesh axes", {"clustered": curve}


def transformer_like(layers, labels, seed):
    """Forward: three products in a row with a weight each and a residual around them, twice a layer. Backward: a node per forward node,
    coupled to the gradients of its consumers and to what the forward node read. Labels are layouts on log2(labels) axes of two states. A
    label costs the sum of its axes' costs, uniform in [0, 100) for each node, axis and state, and up to 5 of its own; a pair costs 1 to
    31 for each axis on which they differ (drawn for each of four tables and pair of states), and a twentieth of all pairs is forbidden."""
    dice = random.Random(seed)
    bits = (labels - 1).bit_length()
    tables = []
    for _ in range(4):
        price = [[[0.0, 1 + 30 * dice.random()], [1 + 30 * dice.random(), 0.0]] for _ in range(bits)]
        costs = [None if r != c and dice.random() < 0.05 else round(sum(price[b][r >> b & 1][c >> b & 1] for b in range(bits)), 3)
                 for r in range(labels) for c in range(labels)]
        tables.append({"rows": labels, "cols": labels, "costs": costs})
    variables, edges = [], []

    def add(*producers):
        states = [[100 * dice.random() for _ in range(2)] for _ in range(bits)]
        costs = [sum(states[b][j >> b & 1] for b in range(bits)) + 5 * dice.random() for j in range(labels)]
        variables.append({"costs": [round(c, 3) for c in costs]})
        for p in producers:
            edges.append({"u": p, "v": len(variables) - 1, "table": dice.randrange(4)})
        return len(variables) - 1

    reads = {}

    def op(*producers):
        v = add(*producers)
        reads[v] = producers
        return v

    h = add()
    for _ in range(2 * layers):
        inner = h
        for _ in range(3):
            inner = op(inner, add())
        h = op(h, inner)
    gradient = {h: add(h)}
    for v in sorted(reads, reverse=True):
        for p in reads[v]:
            others = [q for q in reads[v] if q != p]
            gradient[p] = add(gradient[v], *others, *([gradient[p]] if p in gradient else []))
    return {"format": "cantle-factor-graph", "version": 1, "variables": variables, "tables": tables, "edges": edges}


def labels(folder, a):
    rows, curve = [], []
    for n in LABELS:
        path = folder / f"labels-{n}.json"
        path.write_text(json.dumps(transformer_like(8, n, n)))
        r = medians([CANTLE, "solve", str(path), "--json", "--time-limit", str(a.limit / 2)], a)
        if isinstance(r, str):
            rows.append([n, r])
            continue
        rows.append([n, r["variables"], r["edges"], r["status"], f"{r['gap']:.1e}", r["sweeps"], f"{r['seconds']['solve']:.4f}",
                     f"{r['peak_bytes'] / 1e6:,.0f}"])
        curve.append((n, r["seconds"]["solve"]))
    table("Transformer-like factor graphs of 8 layers with so many labels per node",
          ("labels", "variables", "edges", "status", "gap", "sweeps", "solve s", "peak MB"), rows)
    return "labels per node", {"seeded costs": curve}


def svg(charts, path):
    """One log-log chart per part, side by side."""
    import math
    wide, high, edge = 300, 240, 45
    colours = ("#1f77b4", "#d62728")
    text = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide * len(charts)}" height="{high}" '
            'font-family="sans-serif" font-size="11">',
            '<rect width="100%" height="100%" fill="white"/>']
    for i, (title, curves) in enumerate(charts):
        points = [p for c in curves.values() for p in c]
        if not points:
            continue
        low = [min(math.log10(p[d]) for p in points) for d in (0, 1)]
        size = [max(max(math.log10(p[d]) for p in points) - low[d], 0.1) for d in (0, 1)]

        def place(p):
            x = i * wide + edge + (math.log10(p[0]) - low[0]) / size[0] * (wide - 2 * edge)
            return x, high - edge - (math.log10(p[1]) - low[1]) / size[1] * (high - 2 * edge)

        text.append(f'<text x="{i * wide + wide / 2}" y="{high - 8}" text-anchor="middle">{title} (log)</text>')
        for x in sorted({p[0] for p in points}):
            at = place((x, points[0][1]))[0]
            text.append(f'<text x="{at:.1f}" y="{high - edge + 18}" text-anchor="middle">{x}</text>')
        for k, (name, curve) in enumerate(curves.items()):
            if not curve:
                continue
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, curve))
            text.append(f'<polyline points="{line}" fill="none" stroke="{colours[k]}" stroke-width="2"/>')
            for p in (curve[0], curve[-1]):
                x, y = place(p)
                text.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colours[k]}"/>'
                            f'<text x="{x:.1f}" y="{y - 7:.1f}" text-anchor="middle">{p[1]:.2g} s</text>')
            text.append(f'<text x="{i * wide + edge}" y="{16 + 14 * k}" fill="{colours[k]}">{name}</text>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(text) + "\n</svg>\n")


def main():
    parts = {"layers": layers, "axes": axes, "labels": labels}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(parts))
    parser.add_argument("--limit", type=float, default=120, help="seconds for each run")
    parser.add_argument("--memory", type=int, default=8, help="GiB of address space for each run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of what takes less than 2 s")
    parser.add_argument("--svg", type=pathlib.Path, default=ROOT / "out/bench_growth.svg")
    a = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} when it began; medians of {a.rounds}; at most {a.limit:g} s and "
          f"{a.memory} GiB for each run")
    with tempfile.TemporaryDirectory() as folder:
        charts = [parts[p](pathlib.Path(folder), a) for p in a.parts.split(",")]
    svg(charts, a.svg)


if __name__ == "__main__":
    main()
