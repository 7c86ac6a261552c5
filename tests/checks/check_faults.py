# SPDX-License-Identifier: BSL-1.0
"""Every case of the reported faults that docs/reported_faults.md lists with tests stands in the name of a test: parts A and E, and of the
others those that can be run. Cases of part D that cannot are listed apart, with the reason."""
import re
from pathlib import Path

from source_tree import files, main

CASE = re.compile(r"^\| ([A-E]\d+) \|", re.MULTILINE)
ELSEWHERE = re.compile(r"^- ([A-E]\d+): \S", re.MULTILINE)
PART_D = [f"D{n}" for n in (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20)]
NAME = re.compile(r'TEST_CASE\(\s*"((?:[^"\\]|\\.)*)"')


def check(root):
    page = (root / "docs/reported_faults.md").read_text(encoding="utf-8")
    cases, elsewhere = CASE.findall(page), ELSEWHERE.findall(page)
    named = set()
    for path in files(root, ["tests", "adapters"], {".cpp"}):
        for name in NAME.findall(path.read_text(encoding="utf-8")):
            named.update(re.findall(r"\b[A-E]\d+\b", name))
    findings = [f"docs/reported_faults.md: case {c} stands in no test's name" for c in cases if c not in named]
    if len(cases) != len(set(cases)) or not cases:
        findings.append("docs/reported_faults.md: cases are missing or listed twice")
    findings += [f"docs/reported_faults.md: nothing is said of case {c}" for c in PART_D if (c in cases) == (c in elsewhere)]
    return findings


if __name__ == "__main__":
    main(check, "each reported fault of the page has a test of its name")
