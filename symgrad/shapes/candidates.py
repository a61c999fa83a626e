"""What an argument of forward may be: a tensor of some rank and dtype, a number, a plain value.

In: a Function.  Out: ``Unknown`` records: an argument with its candidates, the cheapest first,
by annotations, names, and what ``frontend.evidence`` finds in the source.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symgrad.errors import SpecError
from symgrad.frontend.annotated import Items, Named, items_of, named
from symgrad.frontend.asked import OTHER
from symgrad.frontend.evidence import (
    COUNTED,
    IGNORED,
    MOST_UNPACKED,
    AnyFunction,
    Evidence,
    Parameter,
    annotation,
    evidence_of,
    is_stated_tensor,
    named_axes,
    parameters,
    stated_kinds,
)
from symgrad.frontend.function import class_location, class_of, init_parameters, raw_method
from symgrad.frontend.request import bind
from symgrad.frontend.settings import Attributes, Setting, Settings, settings_of
from symgrad.frontend.spec import TensorSpec, annotated_spec
from symgrad.frontend.starred import plain_items, starred_of
from symgrad.ir.dtype import DType, bool_, int64
from symgrad.plain_values import described, is_alike


@dataclass(frozen=True)
class Candidate:
    """A tensor of ``rank`` axes; a tensor with a given ``spec``; or a plain ``value``.

    ``price``: the order in which candidates are tried.  ``constant``: a number of which no
    gradient is wanted.  ``absent``: None for an optional argument.  ``named``: the annotation lists
    the value.  ``spare``: what is tried where the others are refused, and not judged beside them.
    ``complex``: it holds complex numbers.
    """

    price: int
    rank: int | None = None
    dtype: DType | None = None
    spec: TensorSpec | None = None
    value: Any = None
    constant: bool = False
    absent: bool = False
    named: bool = False
    spare: bool = False
    complex: bool = False

    def __hash__(self) -> int:
        value = self.value
        if isinstance(value, (dict, Attributes)):  # which have no hash
            value = described(value)
        return hash((self.price, self.rank, self.dtype, self.spec, value, self.complex))

    @property
    def is_tensor(self) -> bool:
        """Is it traced as a tensor?"""
        return self.rank is not None or self.spec is not None

    @property
    def is_value(self) -> bool:
        """Is it a plain value that nobody stated?"""
        return not self.is_tensor and not self.absent


@dataclass(frozen=True)
class Unknown:
    """An argument and its candidates, the cheapest first.

    ``closed``: no integers beside these are judged.
    """

    name: str
    candidates: tuple[Candidate, ...]
    closed: bool = False


def are_known(function: AnyFunction, static: Mapping[str, Any] | None = None) -> bool:
    """Do annotations, defaults and ``static`` say what every argument of forward is?

    The default None does not: it may stand for a tensor.
    """
    values = static or {}
    forward, _ = raw_method(function, "forward")
    scope = getattr(inspect.unwrap(forward), "__globals__", {})
    for one in parameters(function):
        optional = one.kind is not Parameter.KEYWORD_ONLY and one.default is None
        unsaid = optional and one.name not in values and not annotated_spec(one.annotation, scope)
        if unsaid or one.kind is Parameter.VAR_POSITIONAL:
            return False
    if any(_is_open(one) and one.name not in values for one in init_parameters(function).values()):
        return False
    try:
        return bool(bind(function, (), values).tensors)
    except SpecError:
        return False


def unknowns(function: AnyFunction, static: Mapping[str, Any]) -> Iterator[Unknown]:
    """The arguments to find, and those whose annotation says what they are, in call order."""
    yield from (
        Unknown(name, _plain_values(one)) for name, one in init_parameters(function).items()
        if name not in static and _is_open(one)
    )  # fmt: skip
    shown, settings = evidence_of(function), settings_of(function)
    axes = named_axes(function)
    forward, _ = raw_method(function, "forward")
    scope = getattr(inspect.unwrap(forward), "__globals__", {})
    for parameter in parameters(function):
        if parameter.name in static or parameter.kind is Parameter.VAR_KEYWORD:
            continue
        if parameter.kind is Parameter.VAR_POSITIONAL:
            count, plain = starred_of(function).number, plain_items(function)
            every = {f"{parameter.name}_{at}": at in plain for at in range(count)}
            yield from (
                Unknown(name, _priced(_NUMBER) if number else _TENSORS)
                for name, number in every.items() if name not in static
            )  # fmt: skip
            continue
        spec = annotated_spec(parameter.annotation, scope)
        evidence = shown.get(parameter.name, "")
        if spec is not None:
            given = (Candidate(0, spec=spec.with_own_axes(parameter.name)),)
            yield Unknown(parameter.name, given)
        elif _holds(settings, parameter):
            yield with_settings(parameter.name, settings[parameter.name], _is_open(parameter))
        elif (said := named(function, parameter, evidence)) is not None and said.values:
            yield from _as_named(parameter, said, evidence)
        elif _is_open(parameter) and (items := items_of(function, parameter)) is not None:
            yield _as_items(function, parameter.name, items, evidence)
        elif _is_open(parameter):
            found = _with_rank(_unknown(parameter, evidence), axes)
            if is_stated_tensor(parameter) and "None" in stated_kinds(parameter):
                found = _optional(found)
            yield _as_declared(class_of(function).symgrad_plain, parameter, found)
        elif parameter.default is None and parameter.kind is not Parameter.KEYWORD_ONLY:
            yield _optional(_unknown(parameter, evidence))


def left_out(
    function: AnyFunction, static: Mapping[str, Any], found: Mapping[str, Candidate],
    returned: Collection[str] = (),
) -> Iterator[Unknown]:  # fmt: skip
    """What may be a tensor beside what was found: one of a plain default; one more of *args.

    ``returned``: what is one whatever its annotation says, since backward returns its gradient.
    """
    floats = tuple(one for one in _TENSORS if one.dtype is None)
    for parameter in parameters(function):
        if parameter.kind is Parameter.VAR_POSITIONAL:
            count, stated = starred_of(function)
            last = found.get(f"{parameter.name}_{count - 1}")
            if not stated and last is not None:
                yield Unknown(f"{parameter.name}_{count}", (last,))
        elif (
            parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
            and not (_is_open(parameter) or parameter.default is None)
            and parameter.name not in static
            and parameter.name not in found
            and (annotation(parameter) not in _PLAIN or parameter.name in returned)
        ):
            number = isinstance(parameter.default, (int, float))
            yield Unknown(parameter.name, (_NUMBER_SPEC, *floats) if number else floats)


# -- prices

ABSENT = Candidate(5, absent=True)
LAST_PRICE = 24
"""Of what is tried where all else is refused."""


def _priced(candidates: Sequence[Candidate], extra: int = 0) -> tuple[Candidate, ...]:
    raised = [replace(one, price=one.price + extra) for one in candidates]
    return tuple(sorted(raised, key=lambda one: one.price))


RANKS = (0, 1, 2, 3)
"""The ranks that are tried beside those of the cheapest shapes, and the one that is named."""
MOST_AXES = 4
"""Axes of a tensor, where nothing shows that it has more."""
_FLOATS = {2: 0, 1: 1, 3: 2, 4: 4, 0: 5}
_INTEGERS = {1: 6, 2: 7, 3: 8, 4: 10, 0: 11}
_TRUTHS = {2: 8, 1: 9, 3: 10, 4: 12, 0: 13}
_TENSORS = _priced(
    [
        Candidate(price, rank, dtype)
        for dtype, prices in ((None, _FLOATS), (int64, _INTEGERS), (bool_, _TRUTHS))
        for rank, price in prices.items()
    ]
)
_NUMBER_SPEC = Candidate(5, spec=TensorSpec(()))
"""For what has a number for a default: that a gradient fits a number hides nothing."""
CONSTANT = Candidate(0, rank=0, constant=True)
"""Any number."""
A_NUMBER = Candidate(0, value=0.5)
"""The same as a Python number."""
_WHOLE = tuple(Candidate(price, value=value) for price, value in enumerate((-1, 1, 2, 0)))
_REALS = (*_WHOLE[:-1], Candidate(3, value=0.5), replace(_WHOLE[-1], price=4))
"""For a number that may be a probability: within (0, 1), where forward refuses whole ones."""
MORE_VALUES = (Candidate(4, value=-2), Candidate(5, value=3), Candidate(6, value=5))
"""What is judged beside the value of an integer that nobody stated: more than all that are tried
first, since a loop may be cut short."""


def _first(values: Sequence[Any], spare: Sequence[Any]) -> tuple[Candidate, ...]:
    """Plain values; ``spare``: those that are tried where the others are refused."""
    rows = [*((one, False) for one in values), *((one, True) for one in spare)]
    return tuple(Candidate(at, value=one, spare=rest) for at, (one, rest) in enumerate(rows))


_COUNTS = tuple(Candidate(price, value=value) for price, value in enumerate((2, 1, 3)))
_FLAG = (Candidate(0, value=True), Candidate(12, value=False))
"""Without the flag less is computed: what an argument is would not show."""
_NUMBERS = (0.5, 2, 1)
"""For a setting that is a number."""
_MOST_VALUES = 4
"""Of a setting."""
_MOST_SETTINGS = 12
"""Dictionaries that are judged for one argument."""
_NO_SETTINGS = Candidate(0, absent=True)
_PLAIN = {"int": _WHOLE, "bool": _FLAG, "float": (CONSTANT, Candidate(1, value=0.5)),
          "str": (CONSTANT,)}  # fmt: skip
# What is kept as an attribute may be a tensor all the same: its gradient tells.
_NUMBER = (CONSTANT, *_priced(_TENSORS, 1), *_priced(_REALS, 6),
           *(replace(one, spare=True) for one in _priced(_FLAG, 10)))  # fmt: skip
_FLAG_OR_ELSE = (*_FLAG, *_priced(_REALS, 12), *_priced(_TENSORS, 4))
_SWITCH = (_FLAG[0], replace(_FLAG[1], price=2), *_priced(_TENSORS, 6), *_priced(_WHOLE, 12))
_RARE_SWITCH = (Candidate(0, value=False), Candidate(2, value=True), *_SWITCH[2:])
_INDEX = (*_priced([one for one in _TENSORS if one.dtype == int64], -6),
          *_priced([one for one in _TENSORS if one.dtype != int64], 4))  # fmt: skip
_INDICES = _priced([
    replace(one, price=one.price + 2 if (one.rank, one.dtype) == (1, int64) else one.price)
    for one in _INDEX
])  # fmt: skip
"""For rows of indices: each alone, a row would be a number."""
_ANYTHING = (*_TENSORS, *_priced(_REALS, 10))
_COUNT = (*_COUNTS, CONSTANT, *_priced(_TENSORS, 6))
_WINDOW = _first((1, 2), (3,))
"""For what places a window."""
_ADDED_WINDOW = _first((0, 1), (2,))
"""For what is added to the ends, or to the result."""
_WINDOW_SIZE = _first((2, 3), (1,))
_LISTED_WINDOW = _first(((1, 1), (2, 1)), ((1,), (2,), (1, 1, 1), (2, 1, 1)))
"""For what has to be a list: as long as windows of images have axes, where that is taken."""
_ADDED_WINDOWS = _first(((0, 0), (1, 0)), ((0,), (1,), (0, 0, 0), (1, 0, 0)))
_COUNTED_NUMBER = (CONSTANT, *_priced(_COUNTS, 1), *_priced(_TENSORS, 6))
_AXIS = (*_WHOLE, *_priced(_TENSORS, 6))
_SEVERAL = re.compile(r"(^|_)(dims|axes)$")
"""Names of several axes; one integer is an axis as well."""
_LABELS = (Candidate(0, value=-100), *_priced(_WHOLE, 1))
"""For the label that counts for nothing: torch's own default first, which is no class."""
_SHARES = tuple(Candidate(price, value=value) for price, value in enumerate((0.5, 0.0, 1.0)))
"""For what lies in [0, 1]: torch ignores smoothing by less than nothing."""
_IGNORED_NUMBER = (CONSTANT, *_priced(_LABELS, 1))
_SMOOTHING_NUMBER = (CONSTANT, *_priced(_SHARES, 1))
_OPTIONAL = (Candidate(0, value=None), Candidate(1, value=0.5), *_priced(_NUMBER, 4))
ITEMS = tuple(Candidate(price, value=value) for price, value in enumerate(
    ((-1,), (0, 1), (1,), (0,), (1, 2), (2, 1))))  # fmt: skip
"""For what has items: axes, sizes."""
_SIZES = tuple(Candidate(price, value=value) for price, value in enumerate(
    ((-1,), (2,), (2, 3), (3, -1), (2, -1, 1), (1,))))  # fmt: skip
"""For what is a shape: -1 where an operation finds the size, else a few."""
_PERMUTATION = (
    Candidate(0, value=(1, 2, 0)), Candidate(1, value=(2, 0, 1)), Candidate(4, value=(1, 0)),
    Candidate(5, value=(0, 2, 1)),
)  # fmt: skip
"""First those that are not their own inverses."""
_MASK = (*_priced([one for one in _TENSORS if one.dtype == bool_], -8),
         *_priced([one for one in _TENSORS if one.dtype != bool_], 2))  # fmt: skip
_WITH_AXES = _priced([one for one in _ANYTHING if one.rank != 0])
_BY_EVIDENCE = {"number": _NUMBER, "flag": _FLAG_OR_ELSE, "index": _INDEX, "mask": _MASK,
                "truth": _FLAG, "truth or none": (Candidate(0, value=None), *_priced(_FLAG, 1)),
                "indices": _INDICES,
                "switch": _SWITCH, "rare switch": _RARE_SWITCH, "count": _COUNT,
                "counted": _COUNTED_NUMBER, "axis": _AXIS,
                "axes of": (*ITEMS, *_priced(_AXIS, 6)),
                "window": _WINDOW, "windows": _LISTED_WINDOW, "added window": _ADDED_WINDOW,
                "added windows": _ADDED_WINDOWS, "window size": _WINDOW_SIZE,
                "axes": _WITH_AXES, "optional": _OPTIONAL,
                "label": _LABELS, "share": _SHARES, "ignored": _IGNORED_NUMBER,
                "items": (*ITEMS, *_priced(_TENSORS, 6)),
                "permutation": (*_PERMUTATION, *_priced(_TENSORS, 6)),
                "sizes": (*_SIZES, *_priced(_TENSORS, 6), *_priced(_COUNTS, 12)),
                "smoothing": _SMOOTHING_NUMBER}  # fmt: skip
_OF_WINDOWS = ("window", "windows", "added window", "added windows", "window size")
_WINDOWS = {
    "window": re.compile("^(strides?|dilations?|groups)$"),
    "added window": re.compile("^(output_)?paddings?$"),
    "window size": re.compile("^kernel_size$"),
}
"""Names of what places a window: a number, since one number stands for a tuple of them."""
_SMOOTHING = re.compile(r"^(label_)?smoothing$")
_SWITCHES = re.compile(
    r"^(is|use|has|do|no|return|with|enable)_|_(mode|only)$|^in_?place$|^training$|causal"
    r"|^(un)?signed$|^symmetric$|^keep_?dims?$|^requires_grad$"
)
"""Names of what is True or False, also where forward hands it on without asking."""
INDICES = re.compile(
    r"(^|_)(at|i|j|ind|inds|ids?|pos|src|dst|perm|order)(_|\d|$)"
    r"|idx|index|indices|label|target|token|class|position|row|col|edge|node",
    re.IGNORECASE,
)
"""Names of integers that are places, which no mask has."""
_BIASES = re.compile(r"(^|_)bias(es)?(_|$)", re.IGNORECASE)
"""Names of what has axes: one number for all entries would be no bias."""


def _of_rank(rank: int) -> tuple[Candidate, ...]:
    """For an argument that has so many axes: at least one, where it is not as many."""
    every = _TENSORS if rank <= MOST_AXES else (Candidate(0, rank), *_TENSORS)
    return tuple(
        replace(one, price=0 if one.dtype is None else one.price)
        if one.rank == rank else replace(one, price=one.price + 6)
        for one in every if one.rank or one.constant or not one.is_tensor
    )  # fmt: skip


def _of_items(count: int) -> tuple[Candidate, ...]:
    """For what is a tuple of numbers, such as the edges of a window, or a tensor."""
    return (*_tuples(count), *_priced(_TENSORS, 6))


def _tuples(count: int) -> tuple[Candidate, ...]:
    values = dict.fromkeys(tuple(range(first, first + count)) for first in (1, 2))
    alike = dict.fromkeys((number,) * count for number in (1, 2, 0))
    own = [Candidate(price, value=value) for price, value in enumerate(values)]
    spare = [Candidate(4, value=value, spare=True) for value in alike if value not in values]
    return (*own, *spare)


def _as_items(
    function: AnyFunction, name: str, items: Items, evidence: Evidence
) -> Unknown:  # fmt: skip
    """A tuple of numbers, as annotated and as used; or None.  Raises SpecError for tensors."""
    optional = (Candidate(0, value=None),) if items.optional else ()
    if items.are_numbers:
        number = -evidence if isinstance(evidence, int) and evidence < 0 else items.number
        used = _BY_EVIDENCE[evidence] if evidence in ("permutation", "sizes") else ITEMS
        found = list(used if number is None else _tuples(number))
        if evidence == "permutation" and number is not None:
            found = [one for one in used if one.value and len(one.value) == number] or found
        values = [one for one in found if one.is_value]
        return Unknown(name, (*optional, *_priced(values, len(optional))))
    if optional:
        return Unknown(name, optional)
    raise list_of_tensors(function, name)


def with_complex(unknown: Unknown, *, alone: bool, first: bool) -> Unknown:
    """The argument with complex tensors for what may be one of floats.

    ``alone``: it is nothing else; ``first``: they come before all else that it may be.
    """
    floats = [one for one in unknown.candidates if one.rank is not None and one.dtype is None]
    found = [replace(one, complex=True) for one in floats if not one.constant]
    if not found or any(one.complex for one in floats):
        return unknown
    rest = [] if alone else _priced(unknown.candidates, int(first))
    return Unknown(unknown.name, _priced([*found, *rest] if first else [*rest, *found]))


def list_of_tensors(function: AnyFunction, name: str) -> SpecError:
    """The error for an argument that holds tensors."""
    return SpecError(
        f"{class_of(function).__name__}: {name} is a list of tensors, which symgrad does not trace",
        location=class_location(class_of(function)),
        hint=f"write forward(ctx, ..., *{name}), as PyTorch wants it where they get gradients; "
        f"or say what stands for it: --static {name}=VALUE",
    )


def _holds(settings: Mapping[str, Settings], parameter: Parameter) -> bool:
    """Is it an argument of which settings are known, and that has no value?"""
    one = settings.get(parameter.name)
    return one is not None and bool(one.known) and parameter.default in (Parameter.empty, None)


def with_settings(name: str, settings: Settings, is_open: bool = True) -> Unknown:
    """Dictionaries, or objects, of a few values for each setting; first None where it may be.

    One setting at a time has another value than in the first of them.
    """
    found = _ways_of(settings)[:_MOST_SETTINGS]
    candidates = [
        Candidate(price, value=settings.holding(way), named=not is_open)
        for price, way in enumerate(found)
    ]
    return Unknown(name, tuple(candidates) if is_open else (_NO_SETTINGS, *candidates))


def _ways_of(settings: Settings) -> list[dict[str, Any]]:
    """Values of all settings: the first ones, then one setting at a time with another."""
    every = {key: _values_of(key, one) for key, one in settings.known.items()}
    first = {key: values[0] for key, values in every.items()}
    whole = {key: _as_whole(values) for key, values in every.items()}
    ways = [first, whole, *({**first, key: value} for key, values in every.items()
                            for value in values[1:])]  # fmt: skip
    ways += [{other: first[other] for other in first if other != key}
             for key, one in settings.known.items() if one.may_lack]  # fmt: skip
    found: list[dict[str, Any]] = []
    for way in ways:
        if not any(_is_like(way, other) for other in found):
            found.append(way)
    return found


def _is_like(some: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Have both the same settings?  True is not 1."""
    return some.keys() == others.keys() and all(is_alike(some[key], others[key]) for key in some)


def _values_of(key: str, setting: Setting) -> list[Any]:
    """What a setting may be: first what stands for it where it is left out."""
    if setting.inner is not None:
        return [setting.inner.holding(way) for way in _ways_of(setting.inner)]
    candidates = _unknown(Parameter(key, Parameter.POSITIONAL_OR_KEYWORD), setting.evidence)
    values = [one.value for one in candidates.candidates if one.is_value and not one.spare]
    if any(one.is_tensor for one in candidates.candidates[:1]):  # or any number
        values = [*_NUMBERS, *(one for one in values if one is None)]
    elif True in values[:1] and type(values[0]) is bool:
        values = [one for one in values if type(one) is bool]
    elif isinstance(setting.evidence, tuple):
        values = [*dict.fromkeys((*values[: _MOST_VALUES - 1], OTHER))]
    stated = [one for one in setting.default if one is not None]
    return [*stated, *(one for one in values[:_MOST_VALUES] if one not in stated)]


def _as_whole(values: Sequence[Any]) -> Any:
    """The first integer where the first value is another number."""
    integers = [one for one in values if type(one) is int]
    return integers[0] if integers and type(values[0]) is float else values[0]


def _as_named(parameter: Parameter, said: Named, evidence: Evidence) -> Iterator[Unknown]:
    """What an annotation names; nothing for a default beside which all of that is judged.

    None stands for what is left out where the other values are any number.
    """
    if not _is_open(parameter) and parameter.default is not None:
        return
    values = [Candidate(at, value=one, named=True) for at, one in enumerate(said.values)]
    if not said.types:
        found = Unknown(parameter.name, tuple(values))
    else:
        found = _unknown(parameter.replace(annotation=said.types[-1]), evidence)
        if said.values == (None,) and found.candidates[0].constant:
            numbers = [replace(one, named=True) for one in _REALS]
            yield _optional(Unknown(parameter.name, (CONSTANT, *numbers)))
            return
        found = Unknown(parameter.name, (*values, *_priced(found.candidates, len(values))))
    if _is_open(parameter):
        yield found


def _unknown(parameter: Parameter, evidence: Evidence) -> Unknown:
    if isinstance(evidence, tuple):
        every = (*evidence, OTHER) if len(evidence) == 1 else evidence
        texts = tuple(Candidate(price, value=text) for price, text in enumerate(every))
        return Unknown(parameter.name, texts)
    found = _tensor_or_number(parameter, evidence)
    if is_stated_tensor(parameter):
        tensors = tuple(one for one in found.candidates if one.is_tensor and not one.constant)
        return Unknown(found.name, tensors or _TENSORS)
    return found


def _tensor_or_number(parameter: Parameter, evidence: str | int) -> Unknown:
    if parameter.kind is Parameter.KEYWORD_ONLY:
        return Unknown(parameter.name, _plain_values(parameter))
    candidates = _PLAIN.get(annotation(parameter))
    if candidates is _WHOLE and (evidence == "count" or COUNTED.search(parameter.name)):
        candidates = _COUNTS
    if evidence in ("", "number") and IGNORED.search(parameter.name):
        evidence = "ignored"
    if evidence in ("", "number") and _SMOOTHING.search(parameter.name):
        evidence = "smoothing"
    if candidates is _WHOLE and evidence in ("label", "ignored"):
        candidates = _LABELS
    if candidates is None or candidates is _WHOLE:
        evidence = _named(parameter.name, evidence)
    if candidates is _WHOLE and evidence in _OF_WINDOWS:
        candidates = tuple(
            one for one in _BY_EVIDENCE[str(evidence)] if type(one.value) is int
        )  # fmt: skip
    if candidates is None:
        if isinstance(evidence, int):
            candidates = _of_rank(evidence) if evidence > 0 else _of_items(-evidence)
        else:
            candidates = _BY_EVIDENCE.get(evidence, _ANYTHING)
    return Unknown(parameter.name, _priced(candidates), closed=evidence in _OF_WINDOWS)


def _named(name: str, evidence: str | int) -> str | int:
    """The evidence, and what the name of an argument says of it."""
    if evidence in ("", "axes", "index") and "mask" in name.lower():
        evidence = "mask"
    if evidence in ("", "number") and _SWITCHES.search(name):
        evidence = "switch"
    if evidence == "number" and COUNTED.search(name):
        evidence = "counted"
    if evidence == "axis" and _SEVERAL.search(name):
        evidence = "axes of"
    if evidence not in _OF_WINDOWS and not isinstance(evidence, int):
        evidence = next((kind for kind, one in _WINDOWS.items() if one.search(name)), evidence)
    return evidence or ("axes" if _BIASES.search(name) else "")


def _with_rank(unknown: Unknown, rank: int) -> Unknown:
    """The candidates with a float tensor of so many axes, where these are more than usual."""
    prices = [one.price for one in unknown.candidates if _is_of_floats(one)]
    if not MOST_AXES < rank <= MOST_UNPACKED or not prices:
        return unknown
    price = max(prices) + 1
    return Unknown(unknown.name, _priced([*unknown.candidates, Candidate(price, rank)]))


def _is_of_floats(one: Candidate) -> bool:
    """Is it a tensor of floats with axes?"""
    return bool(one.rank) and one.dtype is None


def _as_declared(
    plain: frozenset[str] | None, parameter: Parameter, unknown: Unknown
) -> Unknown:  # fmt: skip
    """What an argument may be where the library of the Function says which are plain."""
    if plain is None:
        return unknown
    if parameter.name in plain:
        return Unknown(parameter.name, _any_plain(parameter))
    return Unknown(parameter.name, tuple(one for one in unknown.candidates if one.is_tensor))


def _optional(unknown: Unknown) -> Unknown:
    """A tensor or None; a value that nobody stated takes its place only where neither is taken."""
    is_text = unknown.candidates == _PLAIN["str"]
    tensors = [one for one in unknown.candidates if one.is_tensor and not is_text]
    values = [one for one in unknown.candidates if one.is_value and one.value is not None]
    return Unknown(unknown.name, _priced([*tensors, ABSENT, *_priced(values, LAST_PRICE)]))


def _plain_values(parameter: Parameter) -> tuple[Candidate, ...]:
    """For an argument that cannot be a tensor."""
    found = _PLAIN.get(annotation(parameter), (*_WHOLE, *_priced(_FLAG, 4)))
    return _priced([one for one in found if not one.is_tensor])


def _any_plain(parameter: Parameter) -> tuple[Candidate, ...]:
    """For an argument that is plain: any number first, where the library tells what asks of it."""
    found = _plain_values(parameter)
    if annotation(parameter) in ("int", "bool", "str") or COUNTED.search(parameter.name):
        return found
    return (CONSTANT, *_priced(found, 1))


def _is_open(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty
