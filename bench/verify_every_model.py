# SPDX-License-Identifier: BSL-1.0
"""Captures, plans and verifies every model that docs name: a small instance of each runs under its plan's layouts on 2 to 8 thread ranks,
and loss and all gradients are compared with one rank's. Prints one row per plan.

usage: python3 bench/verify_every_model.py [--quick] [--only TEXT] [--bin build/release/bin] [--keep DIR]
Exit status 1 where something fails or differs. Graphs and plans go to DIR and are taken from there if they are there."""
import argparse
import json
import sys
import tempfile
from pathlib import Path

from plan_every_model import MODELS, TWO, run

# (mesh of the plan, axis names, ranks); the meshes of plan_every_model, and one of three axes
ON = [("8", "tp", 8), ("8", "tp", 2), ("4x8", "dp,tp", 8), ("4x8", "dp,tp", 4), ("2x2x2", "dp,fsdp,tp", 8)]


def runs_of(meshes, quick):
    if meshes is TWO:
        return [on for on in ON if on[0] == "4x8" and on[2] == 8] if quick else ON
    return [(sizes, names, 8) for sizes, names in meshes]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models whose name holds this text")
    parser.add_argument("--quick", action="store_true", help="one run per model: planned on 4x8, run as 2x4")
    parser.add_argument("--bin", default=str(Path(__file__).resolve().parents[1] / "build/release/bin"))
    parser.add_argument("--keep", default="")
    options = parser.parse_args()
    cantle = str(Path(options.bin) / "cantle")
    failed = 0
    print("| model | plan of | ran as | vertices | gradients | worst relative difference | collectives | s | |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.keep or scratch)

        def attempt(row, command, status=(0,)):
            nonlocal failed
            done, seconds = run(command)
            if done.returncode in status:
                return done, seconds
            failed += 1
            print(f"| {row} | failed: {done.stderr.strip()[:400]} |", flush=True)
            return None, seconds

        for name, batch, sequence, meshes in MODELS:
            if options.only not in name:
                continue
            stem = folder / (name.replace(":", "-") + f"-{batch}")
            graph = Path(f"{stem}.graph.json")
            if not graph.exists() and not attempt(name, [cantle, "capture", name, "--batch", str(batch), "--seq", str(sequence),
                                                         "-o", str(graph)])[0]:
                continue
            for sizes, names, ranks in runs_of(meshes, options.quick):
                plan = Path(f"{stem}-{sizes}.plan.json")
                row = f"{name} | {sizes} | {ranks}"
                if not plan.exists() and not attempt(row, [cantle, "plan", str(graph), "--mesh", sizes, "--names", names,
                                                           "-o", str(plan)])[0]:
                    continue
                done, seconds = attempt(row, [cantle, "verify", str(plan), str(graph), "--ranks", str(ranks), "--json"], (0, 1))
                if not done:
                    continue
                report = json.loads(done.stdout)
                failed += not report["passed"]
                gradients = [s for s in report["sinks"] if s["role"] == "gradient"]
                worst = max((s["relative"] for s in report["sinks"]), key=lambda r: float("inf") if r is None else r)
                ran = sum(c["ran"] for c in report["collectives"])
                print(f"| {name} | {sizes} | {report['mesh']['run'].split(' ')[0]} | {report['vertices']} | {len(gradients)} | "
                      f"{'not finite' if worst is None else f'{worst:.1e}'} | {ran}"
                      f"{'' if report['collectives_match'] else ', OTHERS THAN PLANNED'} | {seconds:.1f} | "
                      f"{'equal' if report['passed'] else 'DIFFERS'} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
