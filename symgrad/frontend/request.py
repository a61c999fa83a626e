"""Which argument of forward is a tensor of which shape, and which is a plain value.

In: a Function, shape specs in the order of its tensor arguments, values by name.
Out: ``Argument`` records in call order.

A spec may also be None (an absent optional tensor) or a number (a value for a plain argument).
Parameters named in ``static``, and those whose default is a plain value, take no spec; a
``TensorSpec`` in ``static`` is one all the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symgrad.errors import SpecError
from symgrad.frontend.annotations import annotated_spec
from symgrad.frontend.function import Function, class_of, init_parameters, raw_method
from symgrad.frontend.spec import TensorSpec, as_spec
from symgrad.plain import PlainArgument

Kind = inspect._ParameterKind
_EMPTY = inspect.Parameter.empty


@dataclass(frozen=True)
class Argument:
    """One argument of forward: a tensor (``spec``) or a plain ``value``.

    ``keyword``: it is passed by name.  ``given``: it was stated, not taken from a default.
    """

    name: str
    spec: TensorSpec | None = None
    value: Any = None
    keyword: bool = False
    given: bool = True

    @property
    def is_tensor(self) -> bool:
        """Is it a tensor, and not a plain value?"""
        return self.spec is not None


@dataclass(frozen=True)
class Binding:
    """The arguments of forward, less trailing defaults that PyTorch would not pass; and of init."""

    arguments: tuple[Argument, ...]
    init: tuple[tuple[str, Any], ...] = ()

    @property
    def static(self) -> tuple[tuple[str, Any], ...]:
        """The plain arguments and their values."""
        plain = [(arg.name, arg.value) for arg in self.arguments if not arg.is_tensor]
        return (*self.init, *plain)


def bind(
    function: type[Function] | Function,
    specs: Sequence[Any] = (),
    static: Mapping[str, Any] | None = None,
) -> Binding:
    """Match specs and values with the parameters of forward.  Raises SpecError."""
    values = dict(static or {})
    init = tuple((name, values.pop(name)) for name in init_parameters(function) if name in values)
    binder = _Binder(function, list(specs), values)
    for parameter in parameters(function):
        binder.take(parameter)
    return Binding(binder.finish(), init)


def positions(
    function: type[Function] | Function,
    specs: Sequence[Any] = (),
    static: Mapping[str, Any] | None = None,
) -> dict[str, int]:
    """Where in backward's result the gradient of each argument stands."""
    found = bind(function, specs, static).arguments
    positional = (argument.name for argument in found if not argument.keyword)
    return {name: position for position, name in enumerate(positional)}


def plain_values(
    function: type[Function] | Function,
    specs: Sequence[Any] = (),
    static: Mapping[str, Any] | None = None,
) -> tuple[PlainArgument, ...]:
    """What each argument that is no tensor is.

    The defaults that are used are among them, and what an instance was made with.
    """
    bound = bind(function, specs, static)
    known = {argument.name for argument in bound.arguments}
    left = [
        Argument(one.name, value=one.default, keyword=one.kind is Kind.KEYWORD_ONLY)
        for one in parameters(function) if one.name not in known and one.default is not _EMPTY
    ]  # fmt: skip
    passed = [*bound.arguments, *left]
    positional = [argument.name for argument in passed if not argument.keyword]
    found = [
        PlainArgument(one.name, one.value, None if one.keyword else positional.index(one.name))
        for one in passed if not one.is_tensor
    ]  # fmt: skip
    names = {*known, *(argument.name for argument in left)}
    return (*_made_with(function, bound, names), *found)


def _made_with(
    function: type[Function] | Function, bound: Binding, names: Collection[str]
) -> Iterator[PlainArgument]:
    """What an instance was made with, or is to be: all but what an argument is called, too."""
    made = dict(bound.init)
    if isinstance(function, type):
        for name, parameter in init_parameters(function).items():
            if parameter.default is not _EMPTY:
                made.setdefault(name, parameter.default)
    else:
        made |= vars(function)
    for name, value in made.items():
        if name not in names and not name.startswith("_"):
            yield PlainArgument(name, value)


def check_static(function: type[Function] | Function, static: Mapping[str, Any]) -> None:
    """Is each name of ``static`` an argument, and is a tensor left?  Raises SpecError."""
    own, name = parameters(function), class_of(function).__name__
    known = [*init_parameters(function), *(one.name for one in own)]
    if not any(one.kind is Kind.VAR_KEYWORD for one in own):
        for given in static:
            if given not in known:
                raise _no_argument(name, given, known)
    scope, left = _scope(function), not static
    for one in own:
        spec = annotated_spec(one.annotation, scope)
        if spec is not None and static.get(one.name) is not None:
            raise SpecError(
                f"{name}: {one.name} is a tensor, annotated {spec}, and static gives it a value",
                hint=f"leave {one.name} out of static",
            )
        plain = one.default is not _EMPTY and one.default is not None and spec is None
        left = left or (one.name not in static and not plain)
    if not left:
        raise SpecError(
            f"{name}: static gives values to {', '.join(static)}, and nothing is left that is a"
            f" tensor; its arguments: {', '.join(known)}",
            hint="leave the tensors out of static",
        )


def _scope(function: type[Function] | Function) -> dict[str, Any]:
    """The names that annotations of forward may use."""
    plain, _ = raw_method(function, "forward")
    found: dict[str, Any] = getattr(inspect.unwrap(plain), "__globals__", {})
    return found


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _no_argument(function: str, name: str, known: Sequence[str]) -> SpecError:
    return SpecError(
        f"{function} has no argument {name!r}", hint=f"its arguments: {', '.join(known) or 'none'}"
    )


def parameters(function: type[Function] | Function) -> list[inspect.Parameter]:
    """The parameters of forward that are the user's: without ctx, self and cls."""
    plain, hidden = raw_method(function, "forward")
    found = list(inspect.signature(plain).parameters.values())
    if found and found[0].kind is Kind.VAR_POSITIONAL:
        return found
    return found[hidden:]


class _Binder:
    """Goes through the parameters once, taking specs and values away as they are used."""

    def __init__(
        self, function: type[Function] | Function, specs: list[Any], values: dict[str, Any]
    ) -> None:
        self.name = class_of(function).__name__
        self.scope = _scope(function)
        self.annotated = not specs
        self.specs = specs
        self.values = values
        self.found: list[Argument] = []

    def take(self, parameter: inspect.Parameter) -> None:
        """Find what one parameter is given."""
        if parameter.kind is Kind.VAR_POSITIONAL:
            for number, spec in enumerate(self.specs):
                self._add(f"{parameter.name}_{number}", spec, keyword=False)
            self.specs = []
        elif parameter.kind is Kind.VAR_KEYWORD:
            for name in list(self.values):
                self.found.append(Argument(name, value=self.values.pop(name), keyword=True))
        else:
            self._take_one(parameter, parameter.kind is Kind.KEYWORD_ONLY)

    def _take_one(self, parameter: inspect.Parameter, keyword: bool) -> None:
        name, default = parameter.name, parameter.default
        if name in self.values:
            value = self.values.pop(name)
            if isinstance(value, TensorSpec):
                self._add(name, value, keyword=keyword)
            else:
                self.found.append(Argument(name, value=value, keyword=keyword))
            return
        spec = annotated_spec(parameter.annotation, self.scope) if self.annotated else None
        if spec is not None:
            self.found.append(Argument(name, spec.with_own_axes(name), keyword=keyword))
        elif self.specs and not keyword and self._takes_spec(default):
            self._add(name, self.specs.pop(0), keyword=False)
        elif default is not _EMPTY:
            self.found.append(Argument(name, value=default, keyword=keyword, given=False))
        else:
            raise SpecError(
                f"{self.name}: nothing says what the argument {name!r} is",
                hint="give a shape spec for a tensor, or annotate it in forward, as in "
                f'{name}: "f32[n m]"; for what is no tensor static={{"{name}": value}}',
            )

    def _takes_spec(self, default: Any) -> bool:
        """Is the next spec meant for this parameter?  A plain default takes numbers only."""
        return default is _EMPTY or default is None or _is_number(self.specs[0])

    def _add(self, name: str, spec: Any, *, keyword: bool) -> None:
        if spec is None or _is_number(spec):
            self.found.append(Argument(name, value=spec, keyword=keyword))
        else:
            own = as_spec(spec).with_own_axes(name)
            self.found.append(Argument(name, own, keyword=keyword))

    def finish(self) -> tuple[Argument, ...]:
        """The arguments; trailing ones that were left to their defaults are not passed."""
        if self.specs:
            raise SpecError(
                f"{self.name}: {_counted(len(self.specs), 'shape spec')} too many; "
                f"its arguments: {', '.join(arg.name for arg in self.found) or 'none'}"
            )
        if self.values:
            known = [arg.name for arg in self.found]
            raise _no_argument(self.name, next(iter(self.values)), known)
        positional = [arg for arg in self.found if not arg.keyword]
        while positional and not positional[-1].given:
            positional.pop()
        return (*positional, *(arg for arg in self.found if arg.keyword and arg.given))


def _is_number(spec: Any) -> bool:
    return isinstance(spec, (bool, int, float))
