# SPDX-License-Identifier: BSL-1.0
"""A folder of include/cantle may include only what stands in its row; so may planner.hpp and cantle.hpp. No cycle of headers."""
from source_tree import files, includes, main

BELOW_PLANNER = "base mesh graph rules cost mrf problem plan"
STUDY = BELOW_PLANNER + " program planner planner.hpp"
ROWS = {  # a folder may always include itself
    "base": "",
    "mesh": "base",
    "graph": "base",
    "mrf": "base",
    "rules": "base mesh graph",
    "cost": "base mesh graph",
    "problem": "base mesh graph rules cost mrf",
    "plan": "base mesh graph cost",
    "program": "base mesh graph rules cost plan",
    "planner": BELOW_PLANNER,
    "planner.hpp": BELOW_PLANNER + " planner",
    "study": STUDY,
    "report": STUDY + " study",
    "cantle.hpp": STUDY + " study report",
}
# The library names no framework; the program `cantle` must not load LibTorch.
FRAMEWORKS = ("torch/", "ATen/", "c10/", "caffe2/", "cuda", "nccl")


def part_of(name):
    """The row that a header belongs to: the folder, or the file itself at the top. `name` is cantle/..."""
    pieces = name.split("/")
    return pieces[1] if len(pieces) > 1 else name


def cycles(edges):
    """One message per cycle of includes that a depth-first search closes."""
    state, found = {}, []

    def visit(node, path):
        state[node] = "open"
        for to in edges.get(node, ()):
            if state.get(to) == "open":
                found.append("cycle of includes: " + " -> ".join(path[path.index(to):] + [to]))
            elif to not in state:
                visit(to, path + [to])
        state[node] = "done"

    for node in sorted(edges):
        if node not in state:
            visit(node, [node])
    return found


def check(root):
    findings, edges = [], {}
    for path in files(root, ["include/cantle"], {".hpp"}):
        name = path.relative_to(root / "include").as_posix()
        shown = path.relative_to(root).as_posix()
        own = part_of(name)
        if own not in ROWS:
            findings.append(f"{shown}: '{own}' has no row in tests/checks/check_layers.py; remedy: decide what it may include, in an ADR")
            continue
        allowed = set(ROWS[own].split()) | {own}
        edges[name] = []
        for line, kind, target in includes(path):
            if target.startswith(FRAMEWORKS):
                findings.append(f"{shown}:{line}: the library includes a framework: {target}")
            if kind == '"':
                findings.append(f'{shown}:{line}: "{target}"; remedy: write <cantle/folder/file.hpp>')
            if not target.startswith("cantle/"):
                continue
            edges[name].append(target)
            if not (root / "include" / target).is_file():
                findings.append(f"{shown}:{line}: {target} does not exist")
            elif part_of(target) not in allowed:
                findings.append(f"{shown}:{line}: {own} may not include {part_of(target)} ({target}); "
                                f"it may: {ROWS[own] or 'nothing but itself'}")
    findings += cycles(edges)

    for path in files(root, ["adapters/cli"], {".hpp", ".cpp"}):
        for line, _, target in includes(path):
            if target.startswith(FRAMEWORKS) or "libtorch/" in target:
                findings.append(f"{path.relative_to(root).as_posix()}:{line}: adapters/cli does not link LibTorch: {target}")
    return findings


if __name__ == "__main__":
    main(check, "each folder includes only what stands in its row")
