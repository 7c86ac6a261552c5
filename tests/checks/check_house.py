# SPDX-License-Identifier: BSL-1.0
"""House rules that a compiler does not see: what lies where, first lines, lengths, names, costly or unusable includes."""
import re

from source_tree import files, includes, main

TOP_LEVEL = {"CMakeLists.txt", "CMakePresets.json", "dev", "include", "examples", "adapters", "tests", "bench", "docs", "README.md",
             "LICENSE"}
IGNORED_BY_GIT = {"build", "out"}
CODE = {".hpp", ".cpp", ".py", ".sh", ".cmake"}
MAX_LINES = 500
MAX_COLUMNS = 140
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "misc", "common"}

# Includes that are forbidden, with the reason; the second field says where they are allowed all the same.
FORBIDDEN_INCLUDES = {
    "range/v3/all.hpp": (None, "costs 2.3 s per file; include the views you use"),
    "torch/torch.h": (r"examples/models/|adapters/libtorch/capture_models", "costs 20 s and 1.3 GB per file; only models need it"),
    "torch/all.h": (r"examples/models/|adapters/libtorch/capture_models", "costs 20 s and 1.3 GB per file; only models need it"),
    "format": (None, "g++ 12 has no std::format"),
    "expected": (None, "g++ 12 has no std::expected"),
}
ONCE_ONLY_INCLUDE = "boost/graph/adjacency_list.hpp"  # 2.8 s per translation unit: behind one header only
FORBIDDEN_TEXT = {
    r"\bstd::(views|ranges::views)\b": "std::views pipelines do not compile with clang 14; use range-v3",
    r"\bstd::(format|expected)\b": "g++ 12 does not have it",
}


def first_line_wanted(path):
    return {".hpp": "// ", ".cpp": "// "}.get(path.suffix, "# ") + "SPDX-License-Identifier: BSL-1.0"


def check_text(path, shown, findings):
    lines = path.read_text(encoding="utf-8").splitlines()
    head = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
    if head != [first_line_wanted(path)]:
        findings.append(f"{shown}:1: the first line (after #!) must be '{first_line_wanted(path)}'")
    if path.suffix == ".hpp" and "#pragma once" not in lines[:3]:
        findings.append(f"{shown}:2: #pragma once is missing")
    if len(lines) > MAX_LINES:
        findings.append(f"{shown}: {len(lines)} lines; above {MAX_LINES} a file is split by idea")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            findings.append(f"{shown}:{number}: {len(line)} columns, more than {MAX_COLUMNS}")
    if path.suffix in {".hpp", ".cpp"}:
        if not re.fullmatch(r"[a-z0-9_]+\.(hpp|cpp)", path.name):
            findings.append(f"{shown}: file names are snake_case")
        if path.stem in VAGUE_NAMES or path.parent.name in VAGUE_NAMES:
            findings.append(f"{shown}: a name that says nothing; name the role")
        for number, line in enumerate(lines, 1):
            code = line.split("//")[0]
            for pattern, why in FORBIDDEN_TEXT.items():
                if re.search(pattern, code):
                    findings.append(f"{shown}:{number}: {why}")


def check(root):
    findings = []
    for entry in sorted(root.iterdir()):
        if not entry.name.startswith(".") and entry.name not in TOP_LEVEL | IGNORED_BY_GIT:
            findings.append(f"{entry.name}: not in the list of what lies at the top level")

    once = []
    for path in files(root):
        shown = path.relative_to(root).as_posix()
        if path.suffix not in CODE and path.name != "CMakeLists.txt" and shown not in ("dev", ".ci/run"):
            continue
        check_text(path, shown, findings)
        if path.suffix not in {".hpp", ".cpp"}:
            continue
        for line, _, target in includes(path):
            allowed, why = FORBIDDEN_INCLUDES.get(target, ("", ""))
            if why and not (allowed and re.match(allowed, shown)):
                findings.append(f"{shown}:{line}: {target}: {why}")
            if target == ONCE_ONLY_INCLUDE and shown.startswith("include/"):
                once.append(f"{shown}:{line}")
    if len(once) > 1:
        findings.append(f"{ONCE_ONLY_INCLUDE} in more than one header: {', '.join(once)}")
    return findings


if __name__ == "__main__":
    main(check, "house rules")
