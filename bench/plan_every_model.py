# SPDX-License-Identifier: BSL-1.0
"""Captures every model that docs name, plans it on its meshes without a fallback, and prints one row per plan.

usage: python3 bench/plan_every_model.py [--only TEXT] [--bin build/release/bin] [--keep DIR]
Exit status 1 where a capture or a plan fails. Graphs go to DIR, else to a folder that is removed again."""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# name, batch, sequence, [(mesh, axis names)]
TWO = [("8", "tp"), ("4x8", "dp,tp")]
MODELS = [
    ("llama3-8b", 16, 2048, TWO),
    ("llama3-70b", 16, 2048, TWO),
    ("gpt2", 16, 1024, TWO),
    ("bert-base", 16, 512, TWO),
    ("t5-small", 16, 4096, TWO),
    ("t5-base", 16, 4096, TWO),
    ("qwen3-32b", 16, 4096, TWO),
    ("hybrid-30b", 16, 4096, TWO),
    ("deepseek-16b", 16, 4096, [("1x8", "dp,ep")]),
    ("deepseek-16b", 32, 4096, [("8", "ep"), ("4x8", "dp,ep")]),
    ("deepseek-16b", 64, 4096, [("8x8", "dp,ep")]),
    ("deepseek-16b", 128, 4096, [("4x4x8", "dp,fsdp,ep")]),
    ("llama3-8b-cp", 16, 16384, [("4x4x2x4", "dp,fsdp,cp,tp")]),
] + [
    ("hf:" + name, 16, sequence, TWO)
    for name, sequence in [
        ("bloom-560m", 4096), ("bloom-7b1", 4096), ("stablelm-2-1.6b", 4096), ("phi-1", 4096), ("phi-2", 4096), ("gpt-neo-2.7b", 2048),
        ("falcon-7b", 4096), ("pythia-6.9b", 4096), ("pythia-160m", 4096), ("distilbert", 512), ("bert-base", 512), ("roberta-base", 512),
        ("gpt2", 1024), ("gpt2-medium", 1024), ("gpt2-xl", 1024), ("t5-small", 4096), ("t5-base", 4096), ("gpt-j-6b", 2048),
        ("opt-1.3b", 2048), ("qwen2-1.5b", 4096), ("mistral-7b", 4096), ("mixtral", 4096),
    ]
]


def run(command):
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    return done, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models whose name holds this text")
    parser.add_argument("--bin", default=str(Path(__file__).resolve().parents[1] / "build/release/bin"))
    parser.add_argument("--keep", default="")
    options = parser.parse_args()
    cantle = str(Path(options.bin) / "cantle")
    failed = 0
    print("| model | batch x sequence | vertices | capture s | mesh | plan s | objective us | gap | status | peak MB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.keep or scratch)
        for name, batch, sequence, meshes in MODELS:
            if options.only not in name:
                continue
            graph = folder / (name.replace(":", "-") + f"-{batch}.graph.json")
            done, capture = run([cantle, "capture", name, "--batch", str(batch), "--seq", str(sequence), "-o", str(graph)])
            if done.returncode:
                failed += 1
                print(f"| {name} | {batch} x {sequence} | capture failed: {done.stderr.strip()[:300]} |")
                continue
            for sizes, names in meshes:
                done, _ = run([cantle, "plan", str(graph), "--mesh", sizes, "--names", names, "--cluster", "h100", "--json"])
                if done.returncode:
                    failed += 1
                    print(f"| {name} | {batch} x {sequence} | | {capture:.1f} | {sizes} | failed: {done.stderr.strip()[:300]} |")
                    continue
                report = json.loads(done.stdout)
                seconds = sum(v for k, v in report["seconds"].items() if k not in ("total", "read"))
                assert not report.get("fallback"), f"{name} on {sizes} took a fallback"
                print(f"| {name} | {batch} x {sequence} | {report['counts']['vertices']} | {capture:.1f} | {sizes} | {seconds:.3f} | "
                      f"{report['objective']:,.1f} | {report['gap']:.1e} | {report['status']} | {report['peak_bytes'] / 1e6:.0f} |")
                sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
