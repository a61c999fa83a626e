"""Ops of programs: on NumPy, compiled, and in packages; every case, mask and pattern.

In: a ``Subject``.  Out: ``Notes``.
"""

from __future__ import annotations

import importlib
import itertools
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability.notes import Notes, difference, is_refusal
from benchmarks.reliability.points import Point
from benchmarks.reliability.subject import Subject
from benchmarks.reliability.truth import Truth, as_tuple
from benchmarks.reliability.watch import watched
from symgrad import compiler
from symgrad.emission import emit
from symgrad.errors import SymgradError
from symgrad.frontend.trace import trace
from symgrad.kernels import OpPlan, plan
from symgrad.numpy_op import NumpyOp
from symgrad.runtime.op import make_op
from symgrad.runtime.residuals import serves

DTYPES = {"f64": "float64", "f32": "float32"}
MOST_MASKS = 16
Made = Callable[[Subject, frozenset[str], str], Any]


def reference(subject: Subject, notes: Notes) -> None:
    """The op on NumPy, which says what a kernel must compute."""
    _check("reference", subject, notes, lambda s, a, d: NumpyOp(_planned(s, a, d)), "f64")


def compiled(subject: Subject, notes: Notes) -> None:
    """The op in C, as ``sg.compile`` makes it of what was planned."""
    for dtype in ("f64", "f32")[: 1 + (random.Random(subject.seed).random() < 0.25)]:
        _check(f"compiled {dtype}", subject, notes, _made, dtype)


def packaged(subject: Subject, notes: Notes) -> None:
    """The op in a package that ``sg.build`` wrote: it brings its own runtime.

    Not in a checkout that is not installed: a manifest states symgrad's version.
    """
    try:
        version("symgrad")
    except PackageNotFoundError:
        notes.counts["package: symgrad is not installed"] += 1
        return
    folder = Path(tempfile.mkdtemp(prefix="reliability-"))
    count = itertools.count()

    def made(subject: Subject, absent: frozenset[str], dtype: str) -> Any:
        name = f"package_{abs(hash((subject.seed, str(folder))))}_{next(count)}"
        compiler.build(
            [subject.defined], folder / name, specs=subject.program.specs(absent, dtype),
            allow=("UNDECIDED", "REFUTED"),
        )  # fmt: skip
        return importlib.import_module(f"{name}.program")

    sys.path.insert(0, str(folder))
    try:
        _check("package", subject, notes, made, "f64")
    finally:
        sys.path.remove(str(folder))
        shutil.rmtree(folder, ignore_errors=True)


def made_with(subject: Subject) -> Iterator[tuple[Any, OpPlan, list[Point]]]:
    """The compiled ops of a program, each with what was planned and where it is compared."""
    for absent, points in subject.points.items():
        with suppress(SymgradError):
            planned = _planned(subject, absent, "f64")
            yield _op_of(planned), planned, points


def _planned(subject: Subject, absent: frozenset[str], dtype: str) -> OpPlan:
    return plan(trace(subject.defined, *subject.program.specs(absent, dtype)))


def _made(subject: Subject, absent: frozenset[str], dtype: str) -> Any:
    return _op_of(_planned(subject, absent, dtype))


def _op_of(planned: OpPlan) -> Any:
    emitted = emit(planned, "")
    return make_op(emitted.wrapper(), emitted.texts, key_extra=planned.graphs.source)


def _check(route: str, subject: Subject, notes: Notes, make: Made, dtype: str) -> None:
    for absent, points in subject.points.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                op = make(subject, absent, dtype)
        except SymgradError as error:
            if any(point.truth is not None for point in points):
                notes.refuse(route, error)
            continue
        notes.counts[f"{route}: programs"] += 1
        check_op(route, op, subject, points, notes, dtype)


def check_op(
    route: str, op: Any, subject: Subject, points: list[Point], notes: Notes, dtype: str
) -> None:
    """Compare an op with torch at points."""
    cases = op.OP.cases if hasattr(op, "OP") else op.caller.op.cases
    met = set()
    for point in points:
        if not (dtype == "f32" and point.ties):
            met |= set(_check_point(route, op, subject, point, notes, dtype))
    notes.counts[f"{route}: cases"] += len(cases)
    reachable = {number for point in points if point.truth is not None
                 for number in _served(cases, subject, point)}  # fmt: skip
    notes.counts[f"{route}: cases met"] += len(met | reachable)


def _served(cases: Any, subject: Subject, point: Point) -> list[int]:
    """The cases whose conditions hold at a point, the first of them alone."""
    sizes = dict(point.sizes)
    for number, case in enumerate(cases):
        if set(case.sizes) <= set(sizes) and serves(case, sizes):
            return [number]
    return []


def _check_point(
    route: str, op: Any, subject: Subject, point: Point, notes: Notes, dtype: str
) -> Iterator[int]:  # fmt: skip
    arrays = [
        value.astype(DTYPES[dtype]) if value.dtype.kind == "f" else value
        for value in point.arrays.values() if value is not None
    ]  # fmt: skip
    truth = point.truth
    kept = [value.copy() for value in arrays]
    try:
        with watched(op):
            outputs, residuals = op.forward(*arrays)
            alone = op.inference(*arrays)
    except Exception as error:
        if not is_refusal(error):
            raise
        if truth is not None and point.empty:
            notes.refuse(f"{route}, empty", error)
        elif truth is not None:
            notes.fail(route, f"refused: {type(error).__name__}: {error}", point)
        return
    notes.counts[f"{route}: calls"] += 2
    if truth is None:
        notes.fail(f"{route}{', empty' * point.empty}", "a value where torch raises", point)
        return
    for name, found in (("forward", as_tuple(outputs)), ("inference", as_tuple(alone))):
        for number, wanted in enumerate(truth.outputs):
            problem = difference(found[number], wanted, truth.tolerance(number, DTYPES[dtype]))
            if problem:
                notes.fail(route, f"{name}, output {number}: {problem}", point)
    _check_backward(route, op, subject, point, notes, dtype, truth, residuals)
    if any(a.tobytes() != b.tobytes() for a, b in zip(arrays, kept, strict=True)):
        notes.fail(route, "an input was written to", point)
    yield 0


def _check_backward(
    route: str, op: Any, subject: Subject, point: Point, notes: Notes, dtype: str, truth: Truth,
    residuals: Any,
) -> None:  # fmt: skip
    """Every set of wanted gradients, with every set of cotangents that are there."""
    given = [name for name, value in point.arrays.items() if value is not None]
    floats = subject.floats(point.absent)
    cotangents = [
        point.cotangent(number, value.shape).astype(DTYPES[dtype])
        if value.dtype.kind == "f" else None
        for number, value in enumerate(truth.outputs)
    ]  # fmt: skip
    masks = list(itertools.product([True, False], repeat=len(floats)))
    # Nothing instead of a cotangent is a zero, and that times an infinity is no number.
    patterns = list(itertools.product([True, False], repeat=len(cotangents)))
    patterns = patterns if truth.finite else [(True,) * len(cotangents)]
    pairs = [(masks[0], pattern) for pattern in patterns]
    pairs += [(mask, patterns[0]) for mask in masks[1:]]
    choice = random.Random(f"{subject.seed} {point}")
    rest = [(mask, pattern) for mask in masks[1:] for pattern in patterns[1:]]
    pairs += choice.sample(rest, min(len(rest), MOST_MASKS))
    for number, (mask, pattern) in enumerate(pairs):
        chosen = [one if there else None for one, there in zip(cotangents, pattern, strict=True)]
        wanted = dict(zip(floats, mask, strict=True))
        needs = tuple(wanted.get(name, False) for name in given)
        where = f"{point}; needs {needs}, cotangents {pattern}"
        try:
            with watched(op):
                asked = None if number == 0 else needs
                found = op.backward(residuals, *chosen, needs_input_grad=asked)
        except Exception as error:
            if not is_refusal(error):
                raise
            notes.fail(route, f"backward refused: {type(error).__name__}: {error}", where)
            continue
        notes.counts[f"{route}: calls"] += 1
        for name, gradient in zip(given, found, strict=True):
            if not wanted.get(name):
                if gradient is not None:
                    notes.fail(route, f"a gradient of {name}, which nobody wants", where)
                continue
            _compare(route, notes, truth, name, gradient, pattern, chosen, dtype, where)


def _compare(
    route: str, notes: Notes, truth: Truth, name: str, gradient: Any, pattern: Any, chosen: Any,
    dtype: str, where: str,
) -> None:  # fmt: skip
    taken = [number for number, one in enumerate(chosen) if one is not None]
    keys = [(number, name) for number in taken]
    every = [key for key in truth.gradients if key[1] == name]
    if not every:
        return
    zero = np.zeros_like(truth.gradients[every[0]])
    total = sum((truth.gradients[key] for key in keys), zero)
    tolerance = sum(truth.tolerance(key, DTYPES[dtype]) for key in every)
    problem = difference(zero if gradient is None else gradient, total, tolerance)
    if problem:
        notes.fail(route, f"gradient of {name}: {problem}", where)
