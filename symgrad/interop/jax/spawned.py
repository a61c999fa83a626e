"""Functions of JAX run in a process of their own: JAX's threads do not live on in a fork.

In: a function, its layout, calls.  Out: what ``measuring`` finds for each, or why nothing is known.

The process imports the function by its module and name, with JAX's 64 bits switched on for all of
it, and has limits on its time.  What no import finds (it is made inside a function, or in the
script that runs) is run in this process, in 64 bits for this thread.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symgrad.budgets import REPLAY_REST, REPLAY_SECONDS, REPLAY_WAIT
from symgrad.children import ChildEnded, limit_processor_time, said_by
from symgrad.frontend.guests import Call, Measured, NotMeasured
from symgrad.interop.jax.containers import Layout, laid_out
from symgrad.interop.jax.measuring import measured

_MARK = b"symgrad:"
"""Begins the answer of a process."""


@dataclass(frozen=True)
class Real:
    """A function as the user calls it, and how leaves are grouped into its arguments."""

    function: Any
    layout: Layout


def measured_all(real: Real, calls: Sequence[Call]) -> list[Measured | str]:
    """What each call shows, or why it shows nothing."""
    place = _place(real.function)
    task = None if place is None else _task(real, place, calls)
    if task is None:
        return [_one(real.function, real.layout, call) for call in calls]
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"},
    )  # fmt: skip
    try:
        said = said_by(process, task, cpu=REPLAY_SECONDS, wall=REPLAY_WAIT, rest=REPLAY_REST)
    except ChildEnded as error:
        return [str(error)] * len(calls)
    if not said.startswith(_MARK):
        return ["it ended the process without an answer"] * len(calls)
    found: list[Measured | str] | str = pickle.loads(said[len(_MARK) :])
    return [found] * len(calls) if isinstance(found, str) else found


def _one(function: Any, layout: Layout, call: Call) -> Measured | str:
    try:
        return measured(function, layout.grouped, call)
    except NotMeasured as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"


# -- what is asked


@dataclass(frozen=True)
class _Place:
    """Where a function is imported from."""

    module: str
    file: str
    name: str


def _place(function: Any) -> _Place | None:
    """Where an import finds the function; None where none does."""
    name, module = known_as(function), _module(function)
    file = getattr(module, "__file__", None)
    if name is None or file is None or module.__name__ == "__main__":
        return None
    return _Place(module.__name__, file, name)


def known_as(function: Any) -> str | None:
    """The name of the function in its module; None where it has none."""
    module = _module(function)
    if module is None:
        return None
    if _reached(module, function.__qualname__) is function:
        return str(function.__qualname__)
    return next((name for name, value in vars(module).items() if value is function), None)


def _module(function: Any) -> Any:
    """The module that has the function: that of its rule, or of the plain function."""
    for one in (getattr(function, "fwd", None), function):
        module = sys.modules.get(getattr(one, "__module__", None) or "")
        if module is not None and any(value is function for value in vars(module).values()):
            return module
    return sys.modules.get(function.__module__)


def _reached(module: Any, name: str) -> Any:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _task(real: Real, place: _Place, calls: Sequence[Call]) -> bytes | None:
    """The text that the process reads; None for values that cannot be sent."""
    declared = "symgrad_surrogate" in vars(real.function)
    if not declared and any(one.meant is not None for one in calls):
        return None  # it is declared in a file
    plain = [
        Call(one.arguments, one.asked, one.cotangents, one.wanted, one.at,
             None if one.meant is None else bool)
        for one in calls
    ]  # fmt: skip
    try:
        inner = pickle.dumps((real.layout.names, real.layout.examples(), plain))
        return pickle.dumps((list(sys.path), place, _code(real.function), inner))
    except Exception:  # of a function, say
        return None


def _code(function: Any) -> list[Any]:
    """What tells the text of a function from another one."""
    found = (getattr(one, "__code__", None) for one in (function.fun, function.fwd, function.bwd))
    return [None if one is None else (one.co_code, one.co_names) for one in found]


# -- in the process


def _loaded(place: _Place) -> Any:
    """The module, by its name or from its file."""
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(place.module)
        if spec is not None and spec.origin and Path(spec.origin) == Path(place.file):
            return importlib.import_module(place.module)
    spec = importlib.util.spec_from_file_location(place.module, place.file)
    if spec is None or spec.loader is None:
        raise NotMeasured(f"{place.file} is not found")
    module = importlib.util.module_from_spec(spec)
    sys.modules[place.module] = module
    sys.path.insert(0, str(Path(place.file).parent))
    spec.loader.exec_module(module)
    return module


def _answers(task: bytes) -> list[Measured | str] | str:
    path, place, code, inner = pickle.loads(task)
    sys.path[:] = path
    try:
        function = _reached(_loaded(place), place.name)
        if _code(function) != code:
            return "its text has changed since it was imported"
        names, examples, calls = pickle.loads(inner)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return [_one(function, laid_out(names, examples), call) for call in calls]


def _main() -> None:
    limit_processor_time(REPLAY_SECONDS)
    answer, nowhere = os.dup(1), os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    found = _answers(sys.stdin.buffer.read())
    with os.fdopen(answer, "wb") as file:
        file.write(_MARK + pickle.dumps(found))


if __name__ == "__main__":
    _main()
