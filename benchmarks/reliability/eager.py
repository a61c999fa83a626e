"""Programs on tensors: the tape, ``apply``, ``sg.jit``, ``sg.vmap``, derivatives of derivatives.

In: a ``Subject``.  Out: ``Notes``.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import torch

import symgrad as sg
from benchmarks.reliability.notes import Notes, difference
from benchmarks.reliability.points import Point
from benchmarks.reliability.subject import Subject
from benchmarks.reliability.truth import RAISED, as_tuple, plain, tensor

MOST_POINTS = 6  # of those that are generic; the others ask about sizes of 1 and ties
ELEMENTS = 3  # of a vmap
REFUSED = (sg.SymgradError, NotImplementedError, AttributeError)
_SECOND_ORDER = 1e4  # how much farther off a second derivative may lie than a value


def tape(subject: Subject, notes: Notes) -> None:
    """The plain function, recorded operation by operation."""
    _tensors("eager", subject, notes, subject.function)


def applied(subject: Subject, notes: Notes) -> None:
    """The Function, by ``apply``: its own backward, or the derived one."""
    if subject.program.written:
        _tensors("apply", subject, notes, subject.defined.apply)


def jitted(subject: Subject, notes: Notes) -> None:
    """The plain function under ``sg.jit``."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        _tensors("jit", subject, notes, sg.jit(subject.function))
    for one in said:
        if issubclass(one.category, sg.JitWarning):
            notes.refuse("jit", one.message)  # type: ignore[arg-type]


def _tensors(route: str, subject: Subject, notes: Notes, function: Callable[..., Any]) -> None:
    notes.counts[f"{route}: programs"] += 1
    choice = random.Random(f"{subject.seed} {route}")
    for found in subject.points.values():
        there = [point for point in found if point.truth is not None]
        for point in there[:2] + choice.sample(there[2:], min(MOST_POINTS, len(there[2:]))):
            assert point.truth is not None
            mask = [choice.random() < 0.7 for _ in subject.floats(point.absent)]
            taken = [choice.random() < 0.6 for _ in point.truth.outputs]
            whole = [True] * len(taken)
            for wanted, pattern in (([True] * len(mask), whole), (mask, whole), (mask, taken)):
                try:
                    _at(route, subject, notes, function, point, wanted, pattern)
                except REFUSED as error:
                    if point.empty or "is not" in str(error):
                        notes.refuse(f"{route}{', empty' * point.empty}", error)
                    else:
                        notes.fail(route, f"refused: {type(error).__name__}: {error}", point)


def _at(
    route: str, subject: Subject, notes: Notes, function: Callable[..., Any], point: Point,
    mask: Sequence[bool], pattern: Sequence[bool],
) -> None:  # fmt: skip
    """``mask``: the inputs whose gradients are wanted; ``pattern``: the outputs with cotangents."""
    truth = point.truth
    assert truth is not None
    inputs = {name: _tensor(value) for name, value in point.arrays.items()}
    floats = subject.floats(point.absent)
    wanted = [name for name, asked in zip(floats, mask, strict=True) if asked]
    for name in wanted:
        inputs[name].requires_grad_()
    outputs = as_tuple(function(*inputs.values()))
    notes.counts[f"{route}: calls"] += 1
    for number, value in enumerate(truth.outputs):
        problem = difference(_array(outputs[number]), value, truth.tolerance(number, "float64"))
        if problem:
            notes.fail(route, f"output {number}: {problem}", point)
    pairs = [
        (number, one) for number, one in enumerate(outputs)
        if truth.outputs[number].dtype.kind == "f" and one.requires_grad and pattern[number]
    ]  # fmt: skip
    if not pairs or not wanted:
        return
    cotangents = [_tensor(point.cotangent(number, tuple(one.shape))) for number, one in pairs]
    gradients = sg.autograd.grad(
        [one for _, one in pairs], [inputs[name] for name in wanted], cotangents, allow_unused=True
    )
    for name, gradient in zip(wanted, gradients, strict=True):
        keys = [(number, name) for number, _ in pairs]
        total = sum((truth.gradients[key] for key in keys), np.zeros_like(point.arrays[name]))
        found = np.zeros_like(total) if gradient is None else _array(gradient)
        tolerance = sum(truth.tolerance(key, "float64") for key in keys)
        problem = difference(found, total, tolerance)
        if problem:
            notes.fail(route, f"gradient of {name}: {problem}", f"{point}; wanted {wanted}")


def _tensor(value: Any) -> Any:
    return None if value is None else sg.from_numpy(np.array(value, copy=True))


def _array(value: Any) -> Any:
    return value.detach().numpy()


# -- many at once


def mapped(subject: Subject, notes: Notes) -> None:
    """``sg.vmap`` over an axis of some of the inputs, against one element at a time."""
    choice = random.Random(f"{subject.seed} vmap")
    function = plain(subject.program)
    for point in choice.sample(subject.generic, min(3, len(subject.generic))):
        names = [name for name, value in point.arrays.items() if value is not None]
        over = [name for name in names if choice.random() < 0.7] or names[:1]
        axes = {name: choice.randint(0, point.arrays[name].ndim) for name in over}
        several = [
            Point(subject.program, point.sizes, point.absent, False, 100 + element).arrays
            for element in range(ELEMENTS)
        ]
        wanted = _each(function, point, several, axes)
        if wanted is None:
            continue
        given = {
            name: _tensor(np.stack([one[name] for one in several], axes[name]))
            if name in axes else _tensor(value)
            for name, value in point.arrays.items()
        }  # fmt: skip
        dims = tuple(axes.get(name) for name in given)
        notes.counts["vmap: calls"] += 1
        try:
            found = as_tuple(sg.vmap(subject.function, in_dims=dims)(*given.values()))
        except REFUSED as error:
            notes.refuse("vmap", error)
            continue
        for number, value in enumerate(wanted):
            problem = difference(_array(found[number]), value, 1e-9 * (1 + _largest(value)))
            if problem:
                notes.fail("vmap", f"output {number}: {problem}", f"{point}; in_dims {dims}")
    notes.counts["vmap: programs"] += 1


def _each(
    function: Callable[..., Any], point: Point, several: Sequence[dict[str, Any]],
    axes: dict[str, int],
) -> list[Any] | None:  # fmt: skip
    rows = []
    for one in several:
        arrays = {
            name: one[name] if name in axes else value for name, value in point.arrays.items()
        }
        try:
            rows.append(as_tuple(function(*map(tensor, arrays.values()))))
        except RAISED:
            return None
    return [np.stack([one.numpy() for one in column]) for column in zip(*rows, strict=True)]


def _largest(value: Any) -> float:
    finite = value[np.isfinite(value)] if value.dtype.kind == "f" else value
    return float(np.max(np.abs(finite), initial=0.0))


# -- derivatives of derivatives


def nested(subject: Subject, notes: Notes) -> None:
    """Second derivatives in every order of modes, by arguments and by what a closure holds."""
    _nested(subject, notes, _WAYS, 2)


def nested_jit(subject: Subject, notes: Notes) -> None:
    """The same under ``sg.jit``."""
    _nested(subject, notes, _COMPILED_WAYS, 1)


def _nested(
    subject: Subject, notes: Notes, ways: dict[str, Callable[[_Loss], Any]], count: int
) -> None:
    choice = random.Random(f"{subject.seed} nested")
    for point in choice.sample(subject.generic, min(count, len(subject.generic))):
        floats = [name for name in subject.floats(point.absent) if point.arrays[name].size]
        if not floats or point.truth is None or not point.truth.finite:
            continue
        inner, outer = choice.choice(floats), choice.choice(floats)
        outputs = range(len(point.truth.outputs))
        pattern = frozenset(number for number in outputs if choice.random() < 0.6) or {*outputs}
        wanted = _second_by_torch(subject, point, inner, outer, pattern)
        if wanted is None:
            continue
        value, size = wanted
        for name, way in ways.items():
            notes.counts["nested: calls"] += 1
            where = f"{point}; {name}, inner {inner}, outer {outer}, outputs {sorted(pattern)}"
            try:
                found = way(_Loss(subject, point, inner, outer, pattern))
            except REFUSED as error:
                notes.refuse(f"nested {name}", error)
                continue
            problem = difference(_array(found), value, _SECOND_ORDER * 1e-13 * (1 + size))
            if problem:
                notes.fail("nested", f"{name}: {problem}", where)
    notes.counts["nested: programs"] += 1


class _Loss:
    """The weighted sum of the outputs in ``pattern``, as a function of two of the inputs.

    Where both are the same input, it stands for the sum of the two.
    """

    def __init__(
        self, subject: Subject, point: Point, inner: str, outer: str, pattern: Collection[int]
    ) -> None:
        self.subject, self.point, self.pattern = subject, point, pattern
        self.names = inner, outer
        self.at = _tensor(point.arrays[inner]), _tensor(point.arrays[outer])
        self.along = _tensor(point.cotangent(50, point.arrays[inner].shape))
        self.against = _tensor(point.cotangent(51, point.arrays[outer].shape))
        if inner == outer:
            self.at = self.at[0] * 0.5, self.at[1] * 0.5

    def __call__(self, inner: Any, outer: Any) -> Any:
        inputs = {name: _tensor(value) for name, value in self.point.arrays.items()}
        inputs |= _placed(self.names, inner, outer)
        outputs = as_tuple(self.subject.function(*inputs.values()))
        total = (inner * 0).sum() + (outer * 0).sum()
        for number, value in enumerate(outputs):
            kind = np.asarray(self.point.truth.outputs[number]).dtype.kind  # type: ignore[union-attr]
            if kind == "f" and number in self.pattern:
                total = (
                    total
                    + (value * _tensor(self.point.cotangent(number, tuple(value.shape)))).sum()
                )
        return total


def _placed(names: tuple[str, str], inner: Any, outer: Any) -> dict[str, Any]:
    if names[0] == names[1]:
        return {names[0]: inner + outer}
    return dict(zip(names, (inner, outer), strict=True))


def _grad_of_grad(f: _Loss) -> Any:
    def gap(outer: Any) -> Any:
        return (sg.grad(lambda inner: f(inner, outer))(f.at[0]) * f.along).sum()

    return sg.grad(gap)(f.at[1])


def _grad_of_vjp(f: _Loss) -> Any:
    def gap(outer: Any) -> Any:
        _, pull = sg.vjp(lambda inner: f(inner, outer), f.at[0])
        return (pull(sg.ones_like(f(f.at[0], outer)))[0] * f.along).sum()

    return sg.grad(gap)(f.at[1])


def _grad_of_jvp(f: _Loss) -> Any:
    def gap(outer: Any) -> Any:
        return sg.jvp(lambda inner: f(inner, outer), (f.at[0],), (f.along,))[1]

    return sg.grad(gap)(f.at[1])


def _tape_of_grad(f: _Loss) -> Any:
    outer = f.at[1].clone().requires_grad_()
    (sg.grad(lambda inner: f(inner, outer))(f.at[0]) * f.along).sum().backward()
    return outer.grad


def _tape_of_tape(f: _Loss) -> Any:
    inner, outer = f.at[0].clone().requires_grad_(), f.at[1].clone().requires_grad_()
    (found,) = sg.autograd.grad(f(inner, outer), inner, create_graph=True)
    found = sg.autograd.grad((found * f.along).sum(), outer, allow_unused=True)[0]
    return sg.zeros_like(outer) if found is None else found


def _by_arguments(f: _Loss) -> Any:
    def gap(inner: Any, outer: Any) -> Any:
        return (sg.grad(f)(inner, outer) * f.along).sum()

    return sg.grad(gap, argnums=1)(*f.at)


def _jit_of_grad(f: _Loss) -> Any:
    def gap(outer: Any) -> Any:
        return (sg.grad(lambda inner: f(inner, outer))(f.at[0]) * f.along).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sg.jit(sg.grad(gap))(f.at[1])


_WAYS: dict[str, Callable[[_Loss], Any]] = {
    "grad of grad": _grad_of_grad,
    "grad of vjp": _grad_of_vjp,
    "grad of jvp": _grad_of_jvp,
    "tape of grad": _tape_of_grad,
    "tape of tape": _tape_of_tape,
    "grad of grad by arguments": _by_arguments,
}
_COMPILED_WAYS: dict[str, Callable[[_Loss], Any]] = {"jit of grad of grad": _jit_of_grad}


def _second_by_torch(
    subject: Subject, point: Point, inner: str, outer: str, pattern: Collection[int]
) -> tuple[Any, float] | None:
    """The mixed derivative along a direction, and the size of what it is made of."""
    function = plain(subject.program)
    halves = 0.5 if inner == outer else 1.0
    at = [tensor(point.arrays[name]) * halves for name in (inner, outer)]
    for one in at:
        one.requires_grad_()
    inputs = {name: tensor(value) for name, value in point.arrays.items()}
    inputs |= _placed((inner, outer), *at)
    try:
        outputs = as_tuple(function(*inputs.values()))
        total = (at[0] * 0).sum() + (at[1] * 0).sum()
        for number, value in enumerate(outputs):
            if value.dtype.is_floating_point and number in pattern:
                weights = torch.from_numpy(point.cotangent(number, tuple(value.shape)))
                total = total + (value * weights).sum()
        (found,) = torch.autograd.grad(total, at[0], create_graph=True)
        along = torch.from_numpy(point.cotangent(50, point.arrays[inner].shape))
        (second,) = torch.autograd.grad((found * along).sum(), at[1], allow_unused=True)
    except RAISED:
        return None
    value = np.zeros_like(point.arrays[outer]) if second is None else second.numpy(force=True)
    return value, max(_largest(value), _largest(found.numpy(force=True)))
