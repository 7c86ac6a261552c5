# SPDX-License-Identifier: BSL-1.0
"""What the checks share: walking the tree, and one way to report findings."""
import os
import re
import sys
from pathlib import Path

NOT_OURS = {"build", "out", "__pycache__"}  # ignored by git; dot folders too


def files(root, folders=None, suffixes=None):
    """Paths of files below root (or its given sub-folders), sorted, without what git ignores."""
    found = []
    for start in [root / f for f in folders] if folders else [root]:
        for folder, names, file_names in os.walk(start):
            names[:] = sorted(n for n in names if n not in NOT_OURS and (not n.startswith(".") or n == ".ci"))
            found += [Path(folder) / n for n in file_names]
    return sorted(p for p in found if suffixes is None or p.suffix in suffixes)


INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    """(line number, '<' or '"', name) of each #include."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def main(check, summary):
    """Run check(root) -> findings; print them; exit status 1 when there is one."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    findings = check(root)
    for finding in findings:
        print(finding)
    print(f"{len(findings)} finding(s): {summary}" if findings else f"ok: {summary}")
    sys.exit(1 if findings else 0)
