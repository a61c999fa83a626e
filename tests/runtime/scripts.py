"""Other processes, for what one process cannot show: kills, forks, concurrent builds.

In: a script's text.  Out: a finished or a running process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 120

# A compiler that logs what it compiles, and waits while a file named "wait" lies beside it.
COMPILER = """\
#!/bin/sh
here=$(dirname "$0")
for word in "$@"; do
    case "$word" in softplus.c) echo "$word" >> "$here/log" ;; esac
done
case " $* " in *" softplus.c "*)
    echo $$ > "$here/started"
    while [ -e "$here/wait" ]; do sleep 0.05; done ;;
esac
exec {compiler} "$@"
"""

USE_SOFTPLUS = """
import numpy
from tests.runtime.examples import SOFTPLUS
op = SOFTPLUS.op()
x = numpy.linspace(-2, 2, 6, dtype="f4").reshape(2, 3)
assert numpy.allclose(op(x), numpy.log1p(numpy.exp(x)), atol=1e-6)
print(op.library_path)
"""


def start(script: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start a script that can import symgrad and the tests; warnings are errors."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **variables}
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env=env,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """What the process printed; AssertionError with all of it where it failed."""
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    return said


def run(script: str, *arguments: str, **variables: str) -> str:
    """Start a script and wait for it."""
    return finish(start(script, *arguments, **variables))


def fake_compiler(folder: Path, compiler: str) -> Path:
    """A compiler in ``folder`` that can be made to wait, and logs."""
    path = folder / "cc"
    path.write_text(COMPILER.format(compiler=compiler), encoding="utf-8")
    path.chmod(0o755)
    return path
