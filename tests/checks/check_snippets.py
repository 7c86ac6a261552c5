# SPDX-License-Identifier: BSL-1.0
"""Snippets in README.md and docs/ are compiled code, and console output is real.

A C++ block names the file it comes from, and optionally a region of it:
    ```cpp file=examples/own_graph.cpp region=plan
A region lies between the lines `// [plan]` and `// [/plan]` of a file that the build compiles; it is compared without its indentation.

Console output stands in the fenced block after a comment that holds its command:
    <!-- output of: ./dev cantle plan out/llama3-8b.graph.json --mesh 4x8 -->
It is compared only with --run (the command may need the demo's files), and written with --update (snippets too). A line `...` stands for
any number of lines. Times (a number before s or ms) and sizes of memory used now (`peak ... MB`) are not compared.
"""
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from source_tree import files, main

FENCE = re.compile(r"^(```+)\s*(\S*)\s*(.*)$")
OUTPUT_OF = re.compile(r"^<!--\s*output of:\s*(.*?)\s*-->\s*$")
COMPILED = re.compile(r"^(examples|tests|bench|adapters)/.*\.(cpp|hpp)$|^include/cantle/.*\.hpp$")
VOLATILE = re.compile(r"\d+(\.\d+)?(e-?\d+)?\s*(s|ms)\b|peak \S+ \S+")


def blocks(lines):
    """(index of the opening fence, index of the closing fence, language, attributes, command or None)"""
    index, command = 0, None
    while index < len(lines):
        match = FENCE.match(lines[index])
        if match:
            end = next((j for j in range(index + 1, len(lines)) if lines[j].strip() == match[1]), len(lines))
            attributes = dict(a.split("=", 1) for a in match[3].split() if "=" in a)
            yield index, end, match[2], attributes, command
            command, index = None, end + 1
            continue
        found = OUTPUT_OF.match(lines[index])
        if found:
            command = found[1]
        elif lines[index].strip():
            command = None
        index += 1


def region_of(path, name):
    """The lines of a region, or of the whole file when name is None; None when there is no such region."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if name is None:
        return lines
    marks = [i for i, line in enumerate(lines) if line.strip() in (f"// [{name}]", f"// [/{name}]")]
    if len(marks) != 2 or lines[marks[1]].strip() != f"// [/{name}]":
        return None
    return textwrap.dedent("\n".join(lines[marks[0] + 1:marks[1]])).splitlines()


def matches(shown, real):
    """Whether real output is what the page shows."""
    def normal(line):
        return re.sub(r"\s+", " ", VOLATILE.sub("#", line.rstrip()))

    pattern = "".join(r"(.*\n)*?" if line.strip() == "..." else re.escape(normal(line)) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(normal(line) + "\n" for line in real)) is not None


def check_page(root, page, run, update):
    lines = page.read_text(encoding="utf-8").splitlines()
    shown_name = page.relative_to(root).as_posix()
    findings, replacements = [], []
    for start, end, language, attributes, command in blocks(lines):
        where, body = f"{shown_name}:{start + 1}", lines[start + 1:end]
        if end == len(lines):
            findings.append(f"{where}: the block is never closed")
        elif language in ("cpp", "c++", "C++"):
            name = attributes.get("file")
            if name is None or not COMPILED.match(name) or not (root / name).is_file():
                findings.append(f"{where}: a C++ block names the compiled file it comes from: ```cpp file=examples/... region=...")
                continue
            wanted = region_of(root / name, attributes.get("region"))
            if wanted is None:
                findings.append(f"{where}: {name} has no region '{attributes['region']}' (lines // [name] and // [/name])")
            elif update:
                replacements.append((start, end, wanted))
            elif body != wanted:
                findings.append(f"{where}: differs from {name}; remedy: check_snippets.py --update")
        elif command and (run or update):
            result = subprocess.run(command, shell=True, cwd=root, text=True, capture_output=True)
            real = result.stdout.splitlines()
            if result.returncode != 0:
                findings.append(f"{where}: `{command}` ended with status {result.returncode}: {result.stderr.strip()[-500:]}")
            elif not matches(body, real):
                if update:
                    replacements.append((start, end, real))
                else:
                    findings.append(f"{where}: the output of `{command}` is another one; remedy: check_snippets.py --update")
    for start, end, new in reversed(replacements):
        lines[start + 1:end] = new
    if replacements:
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return findings


def check(root, run=False, update=False):
    pages = [root / "README.md"] * (root / "README.md").is_file() + files(root, ["docs"], {".md"})
    return [finding for page in pages for finding in check_page(root, page, run, update)]


if __name__ == "__main__":
    options = {a for a in sys.argv if a in ("--run", "--update")}
    sys.argv = [a for a in sys.argv if a not in options]
    main(lambda root: check(root, "--run" in options, "--update" in options), "snippets in README.md and docs/ are compiled files")
