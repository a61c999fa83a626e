"""A function run in order to be differentiated: pulled back, pushed forward, row by row.

In: a function, its arguments, and which of them it is differentiated by.  Out: ``Run``, ``Linear``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.frontend.table import FUNCTIONS
from symgrad.interpreters import interpreter_of
from symgrad.tensor import errors
from symgrad.tensor.functional.forward_mode import honouring_jvp
from symgrad.tensor.functional.level import Level, leads_out, settled
from symgrad.tensor.gradients import grad_where_recorded
from symgrad.tensor.modes import enable_grad, lifted, state
from symgrad.tensor.pytree import each, leaves, leaves_like
from symgrad.tensor.tensor import Tensor, wrap
from symgrad.tensor.trace.symbolic import is_symbolic, is_tensor

Places = int | Sequence[int]


@dataclass
class Run:
    """A function that was run at a level of its own.

    ``inner``: its value as it is inside; ``outputs``: the tensors of that; ``wanted``: the tensors
    that it is differentiated by, and ``arguments``: the arguments that hold them.
    """

    name: str
    level: Level
    inner: Any
    aux: Any
    wanted: list[Any]
    arguments: Any
    outputs: list[Any]

    @property
    def value(self) -> Any:
        """The value as it is outside."""
        return each(settled, self.inner)

    def check_outputs(self, strict: bool = False) -> None:
        """Raises TensorTypeError where a part of the value is no tensor.

        Raises AutogradError, if ``strict``, where an output does not depend on an input.
        """
        for one in self.outputs:
            if not is_tensor(one):
                raise errors.TensorTypeError(
                    f"{self.name}: the function returned a {type(one).__name__} where a Tensor is "
                    "needed"
                )
        for number, one in enumerate(self.outputs if strict else ()):
            for place, found in enumerate(self.pulled([one], [_zeros(one)], True, True)):
                if found is None:
                    raise errors.AutogradError(
                        f"Output {number} of the user-provided function is independent of input "
                        f"{place}. This is not allowed in strict mode."
                    )

    def shaped(self, found: Sequence[Any]) -> Any:
        """One thing for each input, in the structure of the arguments."""
        parts = iter(found)
        return each(lambda _: next(parts), self.arguments)

    def like_value(self, found: Sequence[Any]) -> Any:
        """One thing for each output, in the structure of the value."""
        parts = iter(found)
        return each(lambda _: next(parts), self.inner)

    def pull(
        self, outputs: Sequence[Any], vectors: Sequence[Any], *, keep: bool = False
    ) -> list[Any]:
        """The gradients of outputs for these vectors, as they are outside; zeros for none."""
        deep = _deep([*outputs, *(one for one in vectors if one is not None)])
        found = self.pulled(outputs, vectors, keep, deep)
        return [
            _zeros(one) if gradient is None else settled(gradient)
            for one, gradient in zip(self.wanted, found, strict=True)
        ]

    def pulled(
        self, outputs: Sequence[Any], vectors: Sequence[Any], keep: bool, deep: bool
    ) -> Sequence[Any]:
        """The same with their histories, if ``deep``; None for none."""
        pairs = zip(outputs, vectors, strict=True)
        return grad_where_recorded(pairs, self.wanted, keep=keep or deep, create=deep)


def run(
    name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Any, argnums: Places,
    has_aux: bool, forward: bool = False,
) -> Run:  # fmt: skip
    """Run the function; ``forward``: in order to be differentiated along tangents."""
    places = _places(argnums, len(args))
    wanted: list[Any] = []
    moved = list(args)
    with Level() as level, honouring_jvp(forward):

        def begin(value: Any) -> Any:
            wanted.append(level.begin(_tensor(value)))
            return wanted[-1]

        for place in places:
            moved[place] = each(begin, args[place])
        result = func(*moved, **kwargs)
        value, aux = _with_aux(name, result) if has_aux else (result, None)
    arguments = args[places[0]] if isinstance(argnums, int) else tuple(args[n] for n in places)
    aux = each(settled, aux)
    return Run(name, level, value, aux, wanted, arguments, leaves(value))


def _places(argnums: Places, count: int) -> list[int]:
    """The places of arguments.  Raises AutogradError, TensorTypeError for wrong ones."""
    places = [argnums] if isinstance(argnums, int) else list(argnums)
    for place in places:
        if not isinstance(place, int):
            raise errors.TensorTypeError(f"argnum must be int, got: {type(place)}")
        if not -count <= place < count:
            raise errors.AutogradError(f"Got argnum={place}, but only {count} positional inputs")
    found = [place % count for place in places]
    if len(set(found)) < len(found):
        raise errors.AutogradError(f"argnums elements must be unique, got {argnums}")
    return found


def _tensor(value: Any) -> Any:
    """The tensor, one of the trace in progress where that lifts tensors."""
    if not is_tensor(value):
        raise errors.TensorValueError(
            f"Thing passed to transform API must be Tensor, got {type(value)}"
        )
    return lifted(value) if state.lifting and isinstance(value, Tensor) else value


def vectors_like(structure: Any, given: Any, what: str, of: str) -> list[Any]:
    """Cotangents or tangents, in the order of what they are of.  Raises AutogradError."""
    known = leaves(structure)
    single = is_tensor(given) and len(known) == 1
    found = [given] if single else leaves_like(structure, given)
    if found is None:
        raise errors.AutogradError(
            f"Expected pytree structure of {what} to be the same as pytree structure of {of}"
        )
    found = list(map(_tensor, found))
    for one, vector in zip(known, found, strict=True):
        if not is_symbolic(one) and not is_symbolic(vector) and one.shape != vector.shape:
            raise errors.AutogradError(
                f"{what}: a tensor of shape {list(vector.shape)} stands for one of {of} of shape "
                f"{list(one.shape)}"
            )
    return found


def _deep(values: Sequence[Any]) -> bool:
    """May what is computed of these values be differentiated outside?"""
    inside = bool(state.levels)  # of another derivative, to which nothing may be lost
    return state.grad_enabled and (inside or leads_out(values, perhaps=True))


def _with_aux(name: str, result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise errors.AutogradError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


@dataclass
class Linear:
    """``pulled``: v·J as a linear function of vectors v, which transposed is J·t.

    ``vectors``: one for each output, None for one that has no derivative.
    """

    run: Run
    vectors: list[Any]
    pulled: Sequence[Any]

    def push(self, pulled: Sequence[Any], directions: Sequence[Any]) -> list[Any]:
        """The derivative of each output along directions of these inputs."""
        pairs = [
            pair for pair in zip(pulled, directions, strict=True)
            if pair[0] is not None and pair[0].requires_grad
        ]  # fmt: skip
        vectors = [one for one in self.vectors if one is not None]
        deep = _deep([one for pair in pairs for one in pair])
        found = iter(grad_where_recorded(pairs, vectors, create=deep))
        along = [None if one is None else next(found) for one in self.vectors]
        return [
            _zeros(output) if one is None else settled(one)
            for output, one in zip(self.run.outputs, along, strict=True)
        ]


def linear(
    name: str, func: Callable[..., Any], args: Sequence[Any], argnums: Places, has_aux: bool,
    kwargs: Any = None,
) -> Linear:  # fmt: skip
    """Run the function, and its backward on vectors that stand for any."""
    made = run(name, func, args, kwargs or {}, argnums, has_aux, forward=True)
    made.check_outputs()
    with enable_grad():
        vectors = [
            made.level.begin(_zeros(one)) if one.is_floating_point() else None
            for one in made.outputs
        ]
        pulled = made.pulled(made.outputs, vectors, True, True)
    return Linear(made, vectors, pulled)


def filled(like: Any, number: int) -> Any:
    """A constant in the shape and dtype of a tensor."""
    return interpreter_of((like,)).filled(like, number)


def _zeros(like: Any) -> Any:
    return filled(like, 0)


def _basis(tensor: Any) -> list[Any]:
    found: list[Any] = interpreter_of((tensor,)).basis(tensor)
    return found


def _stacked(tensors: Sequence[Any], axis: int, shape: Sequence[int], like: Any) -> Any:
    if not tensors:
        return wrap(np.zeros(tuple(shape), str(like.dtype)))
    return FUNCTIONS["stack"](list(tensors), axis).reshape(tuple(shape))


def rows(made: Run) -> list[list[Any]]:
    """For each output and input, one backward for each element of the output."""
    blocks = []
    for output in made.outputs:
        found = [made.pull([output], [vector], keep=True) for vector in _basis(output)]
        blocks.append([
            _stacked([row[place] for row in found], 0, (*output.shape, *one.shape), one)
            for place, one in enumerate(made.wanted)
        ])  # fmt: skip
    return blocks


def columns(along: Linear) -> list[list[Any]]:
    """For each output and input, one derivative along each element of the input."""
    wanted, outputs = along.run.wanted, along.run.outputs
    blocks: list[list[Any]] = [[] for _ in outputs]
    for one, pulled in zip(wanted, along.pulled, strict=True):
        steps = [along.push([pulled], [direction]) for direction in _basis(one)]
        for number, output in enumerate(outputs):
            shape = (*output.shape, *one.shape)
            column = [found[number] for found in steps]
            blocks[number].append(_stacked(column, output.ndim, shape, output))
    return blocks
