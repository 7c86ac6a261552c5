# SPDX-License-Identifier: BSL-1.0
"""docs/errors.md has one row per code of base/error.hpp, with the same number, name and meaning; numbers are unique and in order.

check_errors.py ROOT --missing prints rows to paste for codes that the page lacks."""
import re
import sys
from pathlib import Path

from source_tree import main

ENUMERATOR = re.compile(r"^\s*(\w+)\s*=\s*(\d+),\s*///<\s*(.*?)\s*$")
ROW = re.compile(r"^\|\s*(\d+)\s*\|\s*`?(\w+)`?\s*\|(.*)\|\s*$")


def codes_of(header):
    """[(number, name, meaning)] in the order of the enumeration."""
    body = header.read_text(encoding="utf-8").split("enum class error_code", 1)[1].split("};", 1)[0]
    found = [(int(m[2]), m[1], m[3]) for m in map(ENUMERATOR.match, body.splitlines()) if m]
    if len(found) != len(re.findall(r"^\s*\w+\s*=\s*\d+", body, re.MULTILINE)):
        raise SystemExit("base/error.hpp: each code needs a line of its own with a ///< meaning")
    return found


def rows_of(page):
    """[(line number, number, name, [meaning, typical message, remedy])]"""
    for line_number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        match = ROW.match(line)
        if match:
            yield line_number, int(match[1]), match[2], [c.strip() for c in re.split(r"(?<!\\)\|", match[3])]


def check(root):
    codes = codes_of(root / "include/cantle/base/error.hpp")
    findings = []
    numbers = [number for number, _, _ in codes]
    if numbers != sorted(set(numbers)):
        findings.append("base/error.hpp: numbers are not unique and ascending")

    wanted = {number: (name, meaning) for number, name, meaning in codes}
    seen = set()
    for line, number, name, cells in rows_of(root / "docs/errors.md"):
        where = f"docs/errors.md:{line}: {number}"
        if number in seen:
            findings.append(f"{where} stands there twice")
        seen.add(number)
        if number not in wanted:
            findings.append(f"{where} is not in base/error.hpp")
            continue
        if name != wanted[number][0]:
            findings.append(f"{where} is called {wanted[number][0]} in base/error.hpp, not {name}")
        if len(cells) != 3 or not all(cells):
            findings.append(f"{where}: a row has five filled cells: code, name, meaning, typical message, remedy")
        elif cells[0] != wanted[number][1]:
            findings.append(f"{where}: the meaning differs from the comment in base/error.hpp: '{wanted[number][1]}'")
    for number in sorted(set(wanted) - seen):
        findings.append(f"docs/errors.md: no row for {number} {wanted[number][0]}; check_errors.py --missing drafts it")
    return findings


if __name__ == "__main__":
    if "--missing" in sys.argv:
        tree = Path(sys.argv[1])
        there = {number for _, number, _, _ in rows_of(tree / "docs/errors.md")}
        for code, code_name, text in codes_of(tree / "include/cantle/base/error.hpp"):
            if code not in there:
                print(f"| {code} | `{code_name}` | {text} |  |  |")
        sys.exit(0)
    main(check, "docs/errors.md and base/error.hpp name the same codes")
