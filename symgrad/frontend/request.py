"""A Function, its arguments, the assumptions: what every stage is asked about, in one object.

In: a Function, shape specs, values by name, declared assumptions.  Out: a ``Request``.

Specs come in the order of the tensor arguments, or by name.  One may also be None (an absent
optional tensor) or a number (a value for a plain argument).  Parameters named in ``static``, and
those whose default is a plain value, take no spec by position.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from symgrad.budgets import MOST_OPTIONAL
from symgrad.errors import SpecError, counted
from symgrad.frontend.evidence import AnyFunction, Kind, asked_for_none, parameters
from symgrad.frontend.function import (
    Function,
    class_location,
    class_of,
    init_parameters,
    is_instance_style,
    raw_method,
    separate_setup,
)
from symgrad.frontend.guests import shaped
from symgrad.frontend.spec import TensorSpec, annotated_spec, as_spec
from symgrad.frontend.starred import is_one_of, starred_name
from symgrad.ir.assume import Assumption, Stated, check_names, joined, parse_all
from symgrad.ir.dim import Atom, Dim, Size
from symgrad.ir.dtype import float64, int64
from symgrad.plain_values import PlainArgument

Specs = Sequence[Any] | Mapping[str, Any]
_EMPTY = inspect.Parameter.empty
_BY_PLACE = (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)


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


@dataclass(frozen=True, eq=False)
class Request:
    """One Function and what it is called with, bound and checked once; every stage takes it.

    ``arguments``: those of forward in call order, less trailing defaults that PyTorch would not
    pass.  ``init``: what an instance is made with.  ``assumptions``: those of the class, and those
    that were stated.  ``order``: 2 where the backward of the backward is asked about too.
    ``audit``: what is PROVED is evaluated at random points as well.
    ``specs``: the shapes as they were stated, empty for those of annotations.  ``guess``: how the
    shapes were inferred, where nobody stated them.  ``whole``: all that is asked, of which this is
    a part; ``beside``: other parts of it, for which a repair is to hold as well.  ``left_out``: the
    plain arguments that no call passes, since backward returns no gradient for them.  ``rounds``:
    a loop that waits for a value asks for more values than that, as far as it is judged.
    ``brief``: the verdict alone is wanted, and no words about what is refuted.
    """

    function: AnyFunction
    arguments: tuple[Argument, ...]
    init: tuple[tuple[str, Any], ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    order: int = 1
    audit: bool = False
    specs: Specs = ()
    guess: Guess | None = None
    whole: Request | None = None
    beside: tuple[Request, ...] = ()
    left_out: frozenset[str] = frozenset()
    rounds: int = 0
    brief: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        # How shapes were guessed, and the parts of a verdict, mean nothing to another process.
        stated = () if self.guess is not None else self.specs
        given = (self.function, self.arguments, self.init, self.assumptions, self.order, self.audit)
        return Request, (*given, stated)

    @property
    def cls(self) -> type[Function]:
        """The class of the Function."""
        return class_of(self.function)

    def of(self, function: AnyFunction) -> Request:
        """The same asked of another Function.  Raises SpecError where no shapes are found."""
        if self.guess is None or self.guess.again is None:
            return replace(self, function=function)
        return replace(self.guess.again(function, {}, ()), audit=self.audit)

    def assuming(self, facts: Sequence[Assumption]) -> Request:
        """The same, and for all shapes, under more facts."""
        guess = known = self.guess
        if known is not None:

            def near() -> Request | None:
                return known.fitting and known.fitting.assuming(facts)

            others = tuple(one.assuming(facts) for one in known.others)
            guess = replace(known, others=others, near=near)
        return replace(self, assumptions=(*self.assumptions, *facts), guess=guess)

    def fixing(self, names: Sequence[str], defaults: Mapping[str, Any]) -> Request:
        """The same, and for all shapes, with some plain arguments stated to be their defaults."""
        if not names:
            return self
        guess, known = self.guess, {one.name for one in self.arguments}
        if guess is not None:
            guess = replace(guess, others=tuple(o.fixing(names, defaults) for o in guess.others))
        left_out = [Argument(one, value=defaults[one], given=False) for one in defaults
                    if one not in known]  # fmt: skip
        arguments = [
            replace(one, given=one.given or one.name in names)
            for one in (*self.arguments, *left_out)
        ]
        return replace(self, arguments=tuple(arguments), guess=guess)

    def with_sizes(self, put: Mapping[str, Dim]) -> Request:
        """The same with other sizes in the place of some, by their names."""
        sizes: dict[Atom, Dim] = {Size(name): dim for name, dim in put.items()}

        def changed(one: Argument) -> Argument:
            if one.spec is None:
                return one
            dims = tuple(dim.substitute(sizes) for dim in one.spec.dims)
            return replace(one, spec=replace(one.spec, dims=dims))

        return replace(self, arguments=tuple(map(changed, self.arguments)))

    @property
    def tensors(self) -> tuple[Argument, ...]:
        """The arguments that are tensors."""
        return tuple(argument for argument in self.arguments if argument.is_tensor)

    @property
    def positional(self) -> tuple[Argument, ...]:
        """The arguments that are passed by position.

        Trailing ones that are None by default are left out, but for setup_context.
        """
        found = [argument for argument in self.arguments if not argument.keyword]
        own = {one.name: one for one in parameters(self.function)}
        while found and not found[-1].is_tensor and found[-1].value is None:
            known = own.get(found[-1].name)
            if known is None or known.default is not None or separate_setup(self.function):
                break
            found.pop()
        return tuple(found)

    @property
    def by_place(self) -> tuple[Argument, ...]:
        """The arguments that may be passed by position, those behind ``passed`` as their defaults.

        Backward returns a gradient, or None, for each that a call of ``apply`` passes.
        """
        known = {one.name: one for one in self.arguments}
        own = [one for one in parameters(self.function) if one.kind in _BY_PLACE]
        positional = self.positional
        behind = [
            known.get(one.name, Argument(one.name, value=one.default, given=False))
            for one in own[len(positional) :]
        ]  # fmt: skip
        return positional if any(one.is_tensor for one in behind) else (*positional, *behind)

    @property
    def passed(self) -> int:
        """How many of these the calls pass: what a trace passes by name has its place, too."""
        named = {one.name for one in self.arguments if one.keyword}
        places = [place for place, one in enumerate(self.by_place, 1) if one.name in named]
        return max((len(self.positional), *places))

    @property
    def static(self) -> tuple[tuple[str, Any], ...]:
        """The plain arguments and their values."""
        plain = [(arg.name, arg.value) for arg in self.arguments if not arg.is_tensor]
        return (*self.init, *plain)

    @property
    def called(self) -> tuple[Any, ...]:
        """What forward is called with, to compare requests of one Function, whose values are kept.

        Plain values are the same if they are one object: ``1`` and ``True`` are equal.
        """
        arguments = (
            (one.name, one.spec, id(one.value), one.keyword, one.given) for one in self.arguments
        )
        return (*arguments, self.assumptions, self.order, self.audit)

    @property
    def inferred(self) -> str:
        """The sentence that says which shapes nobody stated; empty where all were stated."""
        if not isinstance(self.specs, Mapping):
            return ""
        shapes = ", ".join(one.spec.of(one.name) for one in self.tensors if one.spec)
        scope = _scope(self.function)
        some = any(annotated_spec(one.annotation, scope) for one in parameters(self.function))
        return f"{'Not all' if some else 'No'} shapes were given; symgrad inferred {shapes}."

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of all sizes, in order of appearance."""
        return tuple(dict.fromkeys(name for arg in self.arguments if arg.spec
                                   for name in arg.spec.sizes))  # fmt: skip

    def has_more_axes_in_some(self, other: Request) -> bool:
        """Has it the tensors of another request, some with more axes, some with as many?"""
        more = self._more(other, lambda spec: len(spec.dims))
        alike = {one.name for one in self.tensors} == {one.name for one in other.tensors}
        return alike and min(more, default=0) == 0 < max(more, default=0)

    @property
    def most_axes(self) -> int:
        """Those of the tensor that has the most."""
        return max((len(one.spec.dims) for one in self.tensors if one.spec is not None), default=0)

    def is_more_special(self, other: Request) -> bool:
        """Has a tensor more sizes that are numbers or multiples, or occur before, than in it?"""
        return max(self._more(other, lambda spec: spec.oddities), default=0) > 0

    def _more(self, other: Request, count: Callable[[TensorSpec], int]) -> list[int]:
        """How much more is counted of each tensor than of that in another request."""
        its = {one.name: count(one.spec) for one in other.tensors if one.spec is not None}
        return [
            count(one.spec) - its[one.name] for one in self.tensors
            if one.spec is not None and one.name in its
        ]  # fmt: skip

    @property
    def batches(self) -> dict[str, str]:
        """For each group of batch axes the name of the number of its elements: its own, if free.

        It is free if no other size is called so, nor as an axis of the group is, where they are
        written out.
        """
        taken: set[str] = set(self.sizes)
        found: dict[str, str] = {}
        for argument in self.arguments:
            batch = argument.spec.batch if argument.spec else None
            if batch is not None and batch not in found:
                found[batch] = next(
                    name for count in itertools.count()
                    if (name := batch + "_all" * count) not in taken
                    and not any(_is_axis(one, name) or _is_axis(name, one) for one in taken)
                )  # fmt: skip
                taken.add(found[batch])
        return found

    def with_specs(self, change: Callable[[TensorSpec], TensorSpec]) -> Request:
        """The same with other specs of its tensors."""
        arguments = tuple(
            one if one.spec is None else replace(one, spec=change(one.spec))
            for one in self.arguments
        )
        return replace(self, arguments=arguments)

    def without(self, absent: Collection[str]) -> Request:
        """The same with None for some tensors, and nothing assumed about them."""
        arguments = tuple(
            replace(one, spec=None, value=None, given=True) if one.name in absent else one
            for one in self.arguments
        )
        assumptions = tuple(one for one in self.assumptions if set(absent).isdisjoint(one.inputs))
        return replace(self, arguments=arguments, assumptions=assumptions)

    def plain_values(self) -> tuple[PlainArgument, ...]:
        """What each argument that is no tensor is.

        The defaults that are used are among them, and what an instance was made with.
        """
        known = {argument.name for argument in self.arguments}
        left = [
            Argument(one.name, value=one.default, keyword=one.kind is Kind.KEYWORD_ONLY)
            for one in parameters(self.function)
            if one.name not in known and one.default is not _EMPTY
        ]
        passed = [*self.arguments, *left]
        positional = [argument.name for argument in passed if not argument.keyword]
        found = [
            PlainArgument(one.name, one.value, None if one.keyword else positional.index(one.name))
            for one in passed if not one.is_tensor
        ]  # fmt: skip
        return (*self._made_with({argument.name for argument in passed}), *found)

    def _made_with(self, names: Collection[str]) -> Iterator[PlainArgument]:
        """What an instance was made with, or is to be: all but what an argument is called, too."""
        made = dict(self.init)
        if isinstance(self.function, type):
            for name, parameter in init_parameters(self.function).items():
                if parameter.default is not _EMPTY:
                    made.setdefault(name, parameter.default)
        else:
            made |= vars(self.function)
        for name, value in made.items():
            if name not in names and not name.startswith("_"):
                yield PlainArgument(name, value)


@dataclass(frozen=True)
class Presence:
    """A call of forward with some optional tensors, and None for the others.

    ``tried``: nothing but what the code asks says that forward takes it.
    """

    given: tuple[str, ...]
    absent: tuple[str, ...]
    request: Request
    tried: bool = False

    def __str__(self) -> str:
        """``weight given, bias absent``."""
        parts = [(self.given, "given"), (self.absent, "absent")]
        return ", ".join(f"{' and '.join(names)} {word}" for names, word in parts if names)


@dataclass(frozen=True, eq=False)
class Guess:
    """Shapes that nobody stated, inferred from what forward accepts.

    ``text``: ``x[n, m], flag = True``.  ``partly``: the annotations say some of them.
    ``values``: the plain arguments without a default for which a value was chosen.
    ``presences``: optional tensors given and absent, each with shapes that forward accepts.
    ``refused``: those that forward does not accept, of whatever shapes; ``unfound``: those for
    which no shapes were found.  ``others``: the same with other ranks, and with tensors for plain
    defaults.  ``near``: looks for what ``fitting`` is.  ``wider``: more general shapes that forward
    takes, but backward does not; ``sized``: those that have any size where a number was found.
    ``counted``: forward is written for so many axes.  ``sizes``:
    those for which a number was chosen, since Python needs one; ``resized``: the same with other
    numbers, the preferred ones first, where forward takes them.
    ``fits``: each gradient has its argument's shape.
    ``multiples``: the sizes that are multiples because symgrad traces no others, where forward
    takes such.  ``accident``: a mistake at these shapes is a condition for others.
    ``written``: backward makes gradients of just these shapes where a tensor is repeated;
    ``summed``: those of which it makes larger ones, which PyTorch sums (``x and y``).
    ``place``: the shapes, without plain values; at other values, those that belong to them at the
    first ones.  ``combined``: other plain values together, or one at other shapes.  ``void``:
    places, with values that forward refuses there, as texts in the order of ``values``.
    ``again``: infers the shapes of another Function, or for more plain values, or under more facts
    about plain numbers, in the same way.
    ``unread``: which integers forward takes as a mask as well, where that is not traced; in words.
    ``passed``: the arguments with a default without which backward fails.
    ``as_tensors``: the same with tensors for the numbers whose type the program may ask for.
    """

    text: str
    partly: bool = False
    values: tuple[str, ...] = ()
    presences: tuple[Presence, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    unfound: Mapping[str, str] = field(default_factory=dict)
    others: tuple[Request, ...] = ()
    near: Callable[[], Request | None] | None = None
    wider: str = ""
    sized: str = ""
    counted: bool = False
    sizes: tuple[str, ...] = ()
    fits: bool = True
    multiples: tuple[str, ...] = ()
    accident: bool = False
    written: bool = False
    summed: str = ""
    place: str = ""
    combined: bool = False
    void: frozenset[tuple[str, tuple[str, ...]]] = frozenset()
    resized: Callable[[], Iterator[Request]] | None = None
    again: Callable[[AnyFunction, Mapping[str, Any], Sequence[Assumption]], Request] | None = None
    unread: Callable[[], str] | None = None
    passed: tuple[str, ...] = ()
    as_tensors: Request | None = None

    @property
    def fitting(self) -> Request | None:
        """What to judge where backward is refuted for these shapes; None for nothing.

        Numbers for tensors whose gradients are numbers; or near shapes, which fit backward.
        """
        return None if self.near is None else self.near()

    def __str__(self) -> str:
        shapes = "Not all shapes" if self.partly else "No shapes"
        return f"{shapes} were given; symgrad inferred {self.text}."


def bind(
    function: AnyFunction,
    specs: Specs = (),
    static: Mapping[str, Any] | None = None,
    assume: Stated | None = None,
    order: int = 1,
) -> Request:
    """Match specs, values and assumptions with the parameters of forward.  Raises SpecError."""
    function, specs = shaped(function, specs, static)
    facts = joined(assume)
    check_stated(function, static or {}, facts, order)
    values = dict(static or {})
    init = tuple((name, values.pop(name)) for name in init_parameters(function) if name in values)
    binder = _Binder(function, specs, values)
    for parameter in parameters(function):
        binder.take(parameter)
    found = Request(function, binder.finish(), init, order=order, specs=specs)
    symbols = parse_all((name, "constant, number") for name in binder.symbols)
    known = {one.name for one in found.tensors if one.spec and not _is_whole(one.spec)}
    held = itertools.chain(*class_of(function).symgrad_leaves.values())
    constants = parse_all((name, "constant") for name in held if name in known)
    assumptions = (*_assumptions(found, facts), *symbols, *constants)
    indices = {known.name for known in assumptions if known.kind == "index"}
    arguments = tuple(_as_index(one) if one.name in indices else one for one in found.arguments)
    return replace(found, arguments=arguments, assumptions=assumptions)


def _is_whole(spec: TensorSpec) -> bool:
    """Is it a tensor of integers, or a mask?"""
    return spec.dtype is not None and not spec.dtype.is_float


def _as_index(argument: Argument) -> Argument:
    """A tensor of int64, where its dtype is not stated: it is declared to hold indices."""
    spec = argument.spec
    if spec is None or spec.dtype is not None:
        return argument
    return replace(argument, spec=replace(spec, dtype=int64))


def _assumptions(request: Request, stated: Mapping[str, str]) -> tuple[Assumption, ...]:
    """What the class declares, and what is stated on top of it.  Raises SpecError."""
    tensors = [argument.name for argument in request.tensors]
    optional = {one.name for one in parameters(request.function) if one.default is None}
    absent = optional - set(tensors)
    own = {
        name: text for name, text in declared(request.cls).items()
        if name not in absent and name not in stated
    }  # fmt: skip
    try:
        found = parse_all(own)
        check_names(found, tensors, _numbers_of(request))
    except SpecError as error:
        error.location = class_location(request.cls)
        raise
    mine = parse_all(stated)
    check_names(mine, tensors, _numbers_of(request))
    return (*found, *mine)


def _numbers_of(request: Request) -> set[str]:
    """The sizes and the plain numbers of a request."""
    plain = {one.name for one in request.arguments if type(one.value) in (int, float)}
    return {*request.sizes, *plain}


def declared(found: type) -> dict[str, str]:
    """The assumptions that a class states."""
    stated = getattr(found, "assume", {})
    return joined(stated) if isinstance(stated, Mapping) else {}


def presences(request: Request) -> tuple[Presence, ...]:
    """One for each subset of the optional tensors; of many, all, none, and each alone.

    Optional is a tensor whose parameter has the default None, or none, where the code asks whether
    it is None; what is stated as None is no tensor.  Empty where nothing is optional.
    """
    if request.guess is not None and request.guess.presences:
        return tuple(
            replace(one, request=replace(one.request, function=request.function))
            for one in request.guess.presences
        )
    tensors = {argument.name for argument in request.tensors}
    asked = asked_for_none(request.function)
    optional = tuple(
        one.name for one in parameters(request.function)
        if one.name in tensors and (one.default is None or one.name in asked)
    )  # fmt: skip
    found = []
    for given in subsets(optional) if optional else ():
        absent = tuple(name for name in optional if name not in given)
        tried = not asked.isdisjoint(absent)
        found.append(Presence(given, absent, request.without(absent), tried))
    return tuple(found)


def subsets(names: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    """The greatest first."""
    if len(names) > MOST_OPTIONAL:
        return [names, *((name,) for name in names), ()]
    sizes = range(len(names), -1, -1)
    return itertools.chain.from_iterable(itertools.combinations(names, size) for size in sizes)


def _is_axis(size: str, group: str) -> bool:
    return size.startswith(f"{group}_") and size[len(group) + 1 :].isdigit()


def check_stated(
    function: AnyFunction, static: Mapping[str, Any], assume: Mapping[str, str], order: int
) -> None:
    """Is each name an argument, can each fact be read, is a tensor left?  Raises SpecError."""
    if order not in (1, 2):
        raise SpecError(f"order={order!r} is not supported", hint="1, or 2 for its derivative too")
    own, name = parameters(function), class_of(function).__name__
    if is_instance_style(function) and any(one.name == "ctx" for one in own):
        raise SpecError(
            f"{name}: forward is not a staticmethod, so that its first parameter is the ctx, and"
            " ctx a tensor",
            location=class_location(class_of(function)),
            hint="write @staticmethod above forward(ctx, ...) and backward(ctx, ...), without self",
        )
    names = [one.name for one in own]
    known = [*init_parameters(function), *names]
    starred = starred_name(function)
    if not any(one.kind is Kind.VAR_KEYWORD for one in own):
        for given in static:
            if given not in known and not (starred and is_one_of(given, starred)):
                raise _no_argument(name, given, known)
    facts = parse_all(assume)
    if not any(one.kind is Kind.VAR_POSITIONAL for one in own):
        check_names(facts, names, None)
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


def _scope(function: AnyFunction) -> dict[str, Any]:
    """The names that annotations of forward may use."""
    plain, _ = raw_method(function, "forward")
    found: dict[str, Any] = getattr(inspect.unwrap(plain), "__globals__", {})
    return found


def _no_argument(function: str, name: str, known: Sequence[str]) -> SpecError:
    return SpecError(
        f"{function} has no argument {name!r}", hint=f"its arguments: {', '.join(known) or 'none'}"
    )


class _Binder:
    """Goes through the parameters once, taking specs and values away as they are used."""

    def __init__(self, function: AnyFunction, specs: Specs, values: dict[str, Any]) -> None:
        self.name = class_of(function).__name__
        self.scope = _scope(function)
        self.named = dict(specs) if isinstance(specs, Mapping) else {}
        self.specs = [] if isinstance(specs, Mapping) else list(specs)
        self.annotated = not self.specs
        self.separate = separate_setup(function)
        self.values = values
        self.found: list[Argument] = []
        self.symbols: list[str] = []

    def take(self, parameter: inspect.Parameter) -> None:
        """Find what one parameter is given."""
        if parameter.kind is Kind.VAR_POSITIONAL:
            for number in itertools.count():
                name = f"{parameter.name}_{number}"
                if name in self.values:
                    self.found.append(Argument(name, value=self.values.pop(name)))
                    continue
                if name not in self.named and not self.specs:
                    break
                spec = self.named.pop(name) if name in self.named else self.specs.pop(0)
                self._add(name, spec, keyword=False)
        elif parameter.kind is Kind.VAR_KEYWORD:
            for name in list(self.values):
                self.found.append(Argument(name, value=self.values.pop(name), keyword=True))
        else:
            self._take_one(parameter, parameter.kind is Kind.KEYWORD_ONLY)

    def _take_one(self, parameter: inspect.Parameter, keyword: bool) -> None:
        name, default = parameter.name, parameter.default
        if name in self.values:
            self.found.append(Argument(name, value=self.values.pop(name), keyword=keyword))
            return
        if name in self.named:
            self._add(name, self.named.pop(name), keyword=keyword)
            return
        spec = annotated_spec(parameter.annotation, self.scope) if self.annotated else None
        if spec is not None:
            self.found.append(Argument(name, spec.with_own_axes(name), keyword=keyword))
        elif self._is_symbol(parameter):
            spec = TensorSpec((), dtype=float64)  # as Python computes with it
            self.found.append(Argument(name, spec, keyword=keyword))
            self.symbols.append(name)
        elif self.specs and not keyword and self._takes_spec(default):
            self._add(name, self.specs.pop(0), keyword=False)
        elif default is not _EMPTY:
            self.found.append(Argument(name, value=default, keyword=keyword, given=False))
        else:
            raise SpecError(
                f"{self.name}: nothing says what the argument {name!r} is",
                hint="give a shape spec for a tensor, [] for one without axes, or annotate it in "
                "forward, as in "
                f'{name}: "f32[n m]"; for a non-tensor argument static={{"{name}": value}}',
            )

    def _is_symbol(self, parameter: inspect.Parameter) -> bool:
        """Is it a number of which nothing says the value, ``alpha: float``?"""
        if parameter.annotation not in ("float", float) or parameter.default is not _EMPTY:
            return False
        following = self.specs[0] if self.specs else ""
        return not self.specs or bool(isinstance(following, str) and as_spec(following).dims)

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
        """The arguments; trailing ones that were left to their defaults are not passed.

        But to setup_context, which is given every argument of forward.
        """
        if self.specs:
            raise SpecError(
                f"{self.name}: {counted(len(self.specs), 'shape spec')} too many; "
                f"its arguments: {', '.join(arg.name for arg in self.found) or 'none'}"
            )
        for name in (*self.values, *self.named):
            raise _no_argument(self.name, name, [arg.name for arg in self.found])
        positional = [arg for arg in self.found if not arg.keyword]
        while positional and not positional[-1].given and not self.separate:
            positional.pop()
        named = [arg for arg in self.found if arg.keyword and (arg.given or self.separate)]
        return (*positional, *named)


def _is_number(spec: Any) -> bool:
    return isinstance(spec, (bool, int, float))
