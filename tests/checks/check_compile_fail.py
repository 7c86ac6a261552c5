# SPDX-License-Identifier: BSL-1.0
"""check_compile_fail.py FILE COMPILER ARGS...: FILE must not compile; the compiler prints the sentence of each `// expect: ...` line."""
import re
import subprocess
import sys
from pathlib import Path


def check(source, command):
    sentences = re.findall(r"^// expect: (.*)$", Path(source).read_text(encoding="utf-8"), re.MULTILINE)
    if not sentences:
        return f"{source}: no line '// expect: SENTENCE'"
    result = subprocess.run([*command, str(source)], text=True, capture_output=True)
    if result.returncode == 0:
        return f"{source} compiles, but must not"
    missing = [s for s in sentences if s not in result.stderr]
    if missing:
        return f"{source}: the compiler's message lacks '{missing[0]}'. It says:\n{result.stderr[:3000]}"
    return None


if __name__ == "__main__":
    finding = check(sys.argv[1], sys.argv[2:])
    print(finding or "ok: it does not compile, and says why")
    sys.exit(1 if finding else 0)
