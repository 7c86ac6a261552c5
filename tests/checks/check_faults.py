# SPDX-License-Identifier: BSL-1.0
"""Every case of parts A and E of the reported faults stands in the name of a test. Cases are those that docs/reported_faults.md lists."""
import re
from pathlib import Path

from source_tree import files, main

CASE = re.compile(r"^\| ([AE]\d+) \|", re.MULTILINE)
NAME = re.compile(r'TEST_CASE\(\s*"((?:[^"\\]|\\.)*)"')


def check(root):
    cases = CASE.findall((root / "docs/reported_faults.md").read_text(encoding="utf-8"))
    named = set()
    for path in files(root, ["tests", "adapters"], {".cpp"}):
        for name in NAME.findall(path.read_text(encoding="utf-8")):
            named.update(re.findall(r"\b[AE]\d+\b", name))
    findings = [f"docs/reported_faults.md: case {c} stands in no test's name" for c in cases if c not in named]
    if len(cases) != len(set(cases)) or not cases:
        findings.append("docs/reported_faults.md: cases are missing or listed twice")
    return findings


if __name__ == "__main__":
    main(check, "each reported fault of parts A and E has a test of its name")
