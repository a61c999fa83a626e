"""The words that random programs are written in: each draws one step over what is there.

In: the values so far and a source of chance.  Out: ``Step`` records, with the rule for a written
backward where it is short; None where nothing fits.

Values stay small: what grows is bounded first, what divides or roots is kept away from zero.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.reliability.program import BOOL, FLOAT, INTEGER, Shape, Step, Value

RECENT = 6  # arguments are drawn from so many of the last values: programs get deep
MOST_RANK = 4


@dataclass
class Draft:
    """A program in the making."""

    choice: random.Random
    values: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        """A name that no value has."""
        self.count += 1
        return f"v{self.count}"

    def pick(self, kind: str = FLOAT, least: int = 0, most: int = MOST_RANK) -> Value | None:
        """A recent value of this kind and of a rank within these bounds."""
        found = [v for v in self.values if v.kind == kind and least <= len(v.shape) <= most]
        recent = found[-RECENT:]
        return self.choice.choices(recent, range(1, len(recent) + 1))[0] if recent else None

    def like(self, shape: Shape, kind: str = FLOAT) -> Value | None:
        """A value of this shape."""
        found = [v for v in self.values if v.kind == kind and v.shape == shape]
        return self.choice.choice(found[-RECENT:]) if found else None

    def add(self, step: Step | None) -> Value | None:
        """Take a step."""
        if step is None:
            return None
        self.steps.append(step)
        self.values.append(step.result)
        return step.result

    def step(
        self, text: str, shape: Shape, arguments: Sequence[Value],
        slopes: Sequence[str] | None = None, reads: Sequence[Value] | str = (), *,
        kind: str = FLOAT, before: Sequence[str] = (), below: str = "",
    ) -> Step:  # fmt: skip
        """The step ``y = text``; ``{y}`` is the result's name, ``{a}``, ``{b}`` the arguments'.

        ``slopes``: one for each float argument, empty where it has none.  ``reads``: which of
        these names they read, ``y`` among them.
        """
        name = self.name()
        names = {"y": name} | dict(zip("abcdef", (v.name for v in arguments), strict=False))

        def put(one: str) -> str:
            for letter, value in names.items():
                one = one.replace(f"{{{letter}}}", value)
            return one

        rules = None
        if slopes is not None:
            floats = [v for v in arguments if v.kind == FLOAT]
            pairs = zip(floats, slopes, strict=True)
            rules = tuple((v.name, put(one)) for v, one in pairs if one)
        read = tuple(names[letter] for letter in reads) if isinstance(reads, str) else ()
        lines = (*(put(line) for line in before), put(f"{{y}} = {text}"))
        taken = tuple(v.name for v in arguments)
        return Step(Value(name, shape, kind, below), lines, taken, rules, read)


Word = Callable[[Draft], "Step | None"]

# -- element by element

_UNARY = {  # text, slope, what the slope reads
    "T.tanh({a})": ("{g} * (1 - {y} * {y})", "y"),
    "T.sigmoid({a})": ("{g} * {y} * (1 - {y})", "y"),
    "T.sin({a})": ("{g} * T.cos({a})", "a"),
    "T.cos({a})": ("-({g} * T.sin({a}))", "a"),
    "T.exp({a})": ("{g} * {y}", "y"),
    "{a}.square()": ("{g} * 2 * {a}", "a"),
    "{a} ** 3": ("{g} * 3 * {a} ** 2", "a"),
    "T.relu({a})": ("{g} * ({a} > 0)", "a"),
    "T.abs({a})": ("{g} * T.sign({a})", "a"),
    "{a}.abs()": ("{g} * {a}.sign()", "a"),
    "-{a}": ("-{g}", ""),
    "{a} * -1.5": ("{g} * -1.5", ""),
    "2 - {a}": ("-{g}", ""),
    "{a} / 3": ("{g} / 3", ""),
    "T.log1p({a} * {a})": ("{g} * 2 * {a} / (1 + {a} * {a})", "a"),
    "T.sqrt({a} * {a} + 1)": ("{g} * {a} / {y}", "ay"),
    "1 / (1.5 + {a} * {a})": ("{g} * -2 * {a} * {y} * {y}", "ay"),
    "T.rsqrt({a} * {a} + 0.5)": ("-({g} * {a} * {y} * {y} * {y})", "ay"),
    "T.clamp({a}, -0.5, 0.75)": ("{g} * (({a} >= -0.5) & ({a} <= 0.75))", "a"),
    "{a}.clamp(min=0.25)": ("{g} * ({a} >= 0.25)", "a"),
    "T.where({a} > 0.3, {a}, {a} * 0.5)": ("T.where({a} > 0.3, {g}, {g} * 0.5)", "a"),
    "{a}.detach() * {a}": ("{g} * {a}", "a"),
    "T.erf({a})": ("{g} * T.exp(-({a} * {a})) * 1.1283791670955126", "a"),
    "T.nn.functional.softplus({a})": ("{g} * T.sigmoid({a})", "a"),
    "T.nn.functional.gelu({a})": (None, ""),
    "T.nn.functional.silu({a})": (None, ""),
    "T.nn.functional.leaky_relu({a}, 0.1)": (None, ""),
    "T.nn.functional.elu({a})": (None, ""),
    "T.atan({a})": (None, ""),
    "T.expm1({a})": (None, ""),
    "T.sign({a}) * {a}": (None, ""),
    "T.floor({a}) + {a}": (None, ""),
    "{a}.clone()": ("{g}", ""),
    "{a}.contiguous()": ("{g}", ""),
    "T.zeros_like({a}) + {a}": ("{g}", ""),
    "{a} - {a}.detach()": ("{g}", ""),
    "{a} * {a}.numel()": ("{g} * {a}.numel()", "a"),
    "T.acos(0.9 * T.tanh({a}))": (None, ""),
    "T.asin(0.9 * T.tanh({a}))": (None, ""),
    "T.atanh(0.9 * T.tanh({a}))": (None, ""),
    "T.erfinv(0.9 * T.tanh({a}))": (None, ""),
    "T.tan(0.5 * T.tanh({a}))": (None, ""),
    "T.cosh(T.tanh({a}))": (None, ""),
    "T.sinh(T.tanh({a}))": (None, ""),
    "T.exp2(T.tanh({a}))": (None, ""),
    "T.asinh({a})": (None, ""),
    "T.acosh({a} * {a} + 1.5)": (None, ""),
    "T.digamma({a} * {a} + 1)": (None, ""),
    "T.lgamma({a} * {a} + 1)": (None, ""),
    "T.polygamma(1, {a} * {a} + 1)": (None, ""),
    "T.log2({a} * {a} + 1)": (None, ""),
    "T.log10({a} * {a} + 1)": (None, ""),
    "T.reciprocal({a} * {a} + 1)": (None, ""),
    "T.xlogy({a}, {a} * {a} + 1)": (None, ""),
    "T.erfc({a})": (None, ""),
    "T.ceil({a}) * {a}": (None, ""),
    "T.trunc({a}) * {a}": (None, ""),
    "T.round({a}) - {a}": (None, ""),
    "T.fmod({a}, 1.5)": (None, ""),
    "T.remainder({a}, 1.5)": (None, ""),
    "T.floor_divide({a}, 1.5) + {a}": (None, ""),
    "T.nn.functional.logsigmoid({a})": (None, ""),
    "((T.tanh({a}) * 100).to(T.int8) * 3).to({a}.dtype) * {a}": (None, ""),
    "((T.tanh({a}) * 100 + 100).to(T.uint8) * 3).to({a}.dtype) * {a}": (None, ""),
    "((T.tanh({a}) * 30000).to(T.int16) * 3).to({a}.dtype) / 30000": (None, ""),
    "((T.tanh({a}) * 2.0e9).to(T.int32) * 3).to({a}.dtype) / 2.0e9": (None, ""),
}
_GROWING = ("T.exp", "** 3", "square", "numel", "expm1")


def bounded(draft: Draft, value: Value) -> Value:
    """Its tanh, as a step of its own."""
    found = draft.add(draft.step("T.tanh({a})", value.shape, [value], *_slope("T.tanh({a})")))
    assert found is not None
    return found


def _slope(text: str) -> tuple[list[str] | None, str]:
    slope, reads = _UNARY[text]
    return (None if slope is None else [slope]), reads


def unary(draft: Draft) -> Step | None:
    a = draft.pick()
    if a is None:
        return None
    text = draft.choice.choice(list(_UNARY))
    if any(mark in text for mark in _GROWING):
        a = bounded(draft, a)
    return draft.step(text, a.shape, [a], *_slope(text))


_BINARY = {
    "{a} + {b}": ("{g}", "{g}", ""),
    "{a} - {b}": ("{g}", "-{g}", ""),
    "{a} * {b}": ("{g} * {b}", "{g} * {a}", "ab"),
    "{a} / (1.5 + {b} * {b})": (
        "{g} / (1.5 + {b} * {b})", "{g} * -2 * {a} * {b} / (1.5 + {b} * {b}) ** 2", "ab",
    ),
    "T.maximum({a}, {b})": (
        "{g} * (({a} > {b}) + 0.5 * ({a} == {b}))",
        "{g} * (({b} > {a}) + 0.5 * ({a} == {b}))", "ab",
    ),
    "T.minimum({a}, {b})": (None, None, ""),
    "T.where({a} > {b}, {a}, {b} * 2)": (
        "{g} * ({a} > {b})", "T.where({a} > {b}, 0 * {g}, {g} * 2)", "ab",
    ),
    "T.atan2({a}, {b} * {b} + 1)": (None, None, ""),
    "T.lerp({a}, {b}, 0.25)": ("{g} * 0.75", "{g} * 0.25", ""),
    "T.addcmul({a}, {a}, {b}, value=0.5)": (None, None, ""),
    "T.hypot({a} + 2, {b})": (None, None, ""),
    "T.copysign({a}, {b})": (None, None, ""),
    "T.logaddexp({a}, {b})": (None, None, ""),
    "T.fmod({a}, {b} * {b} + 1)": (None, None, ""),
    "T.remainder({a}, {b} * {b} + 1)": (None, None, ""),
    "T.floor_divide({a}, {b} * {b} + 1) + {a}": (None, None, ""),
    "T.where(T.logical_xor({a} > 0, {b} > 0), {a}, {b})": (None, None, ""),
    "T.where({a} != {b}, {a} * 2, {b})": (None, None, ""),
}  # fmt: skip


def binary(draft: Draft) -> Step | None:
    """Two values, broadcast where their shapes allow it."""
    a = draft.pick()
    others = [v for v in draft.values if v.kind == FLOAT and a and _together(a.shape, v.shape)]
    if a is None or not others:
        return None
    b = draft.choice.choice(others[-RECENT:])
    if draft.choice.random() < 0.5:
        a, b = b, a
    shape = _together(a.shape, b.shape)
    assert shape is not None
    text = draft.choice.choice(list(_BINARY))
    of_a, of_b, reads = _BINARY[text]
    slopes = None
    if of_a is not None and of_b is not None and a.name != b.name:
        slopes = [_summed(of_a, shape, a.shape), _summed(of_b, shape, b.shape)]
    return draft.step(text, shape, [a, b], slopes, reads)


def _together(left: Shape, right: Shape) -> Shape | None:
    """The shape of the two broadcast; None where they do not fit."""
    rank = max(len(left), len(right))
    padded = [("1",) * (rank - len(shape)) + shape for shape in (left, right)]
    found = []
    for a, b in zip(*padded, strict=True):
        if a != b and "1" not in (a, b):
            return None
        found.append(b if a == "1" else a)
    return tuple(found)


def _summed(text: str, whole: Shape, part: Shape) -> str:
    """A gradient of the shape ``whole``, summed to that of the argument."""
    lead = len(whole) - len(part)
    kept = [a for a in range(lead, len(whole)) if part[a - lead] == "1" != whole[a]]
    found = f"({text})"
    if kept:
        found += f".sum({tuple(kept)}, keepdim=True)"
    if lead:
        found += f".sum({tuple(range(lead))})"
    return found


# -- over axes


def reduction(draft: Draft) -> Step | None:
    a = draft.pick(least=1)
    if a is None:
        return None
    axes = sorted(draft.choice.sample(range(len(a.shape)), draft.choice.randint(1, len(a.shape))))
    keep = draft.choice.random() < 0.4
    word = draft.choice.choice(
        [
            "sum",
            "sum",
            "sum",
            "mean",
            "amax",
            "amin",
            "logsumexp",
            "norm",
            "prod",
            "max",
            "min",
            "std",
            "std",
        ]
    )
    if word in ("prod", "max", "min"):
        axes = axes[:1]
    kept = tuple("1" if i in axes else size for i, size in enumerate(a.shape))
    shape = kept if keep else tuple(s for i, s in enumerate(a.shape) if i not in axes)
    dims = str(axes[0] if len(axes) == 1 else tuple(axes))
    tail = f"{dims}{', keepdim=True' if keep else ''}"
    back = "" if keep else "".join(f".unsqueeze({axis})" for axis in axes)
    whole = f"{{g}}{back}.expand({{a}}.shape)"
    extent = " * ".join(f"{{a}}.shape[{axis}]" for axis in axes)
    if word == "sum":
        if len(axes) == len(a.shape) and not keep and draft.choice.random() < 0.5:
            return draft.step("{a}.sum()", (), [a], ["{g}.expand({a}.shape)"], "a")
        return draft.step(f"{{a}}.sum({tail})", shape, [a], [whole], "a")
    if word == "mean":
        return draft.step(f"{{a}}.mean({tail})", shape, [a], [f"{whole} / ({extent})"], "a")
    if word == "logsumexp":
        rule = f"{{g}}{back} * T.exp({{a}} - {{y}}{back})"
        return draft.step(f"T.logsumexp({{a}}, {tail})", shape, [a], [rule], "ay")
    if word in ("amax", "amin"):
        equal = f"({{a}} == {{y}}{back})"
        rule = f"{{g}}{back} * {equal} / {equal}.sum({tuple(axes)}, keepdim=True)"
        return draft.step(f"{{a}}.{word}({tail})", shape, [a], [rule], "ay")
    if word in ("max", "min"):
        return draft.step(f"{{a}}.{word}({tail})[0]", shape, [a])
    if word == "norm":
        return draft.step(f"T.sqrt(({{a}} * {{a}}).sum({tail}) + 0.5)", shape, [a])
    if word == "std":
        text = draft.choice.choice(
            ["T.var({a}, %s, unbiased=False)", "T.std({a}, %s, unbiased=False)"]
        )
        small = tuple(s for i, s in enumerate(a.shape) if i not in axes)
        return draft.step(text.replace("%s", dims), small, [a])
    return draft.step(f"{{a}}.{word}({tail})", shape, [bounded(draft, a)])


def along(draft: Draft) -> Step | None:
    """What keeps the shape and looks along one axis."""
    a = draft.pick(least=1)
    if a is None:
        return None
    axis = draft.choice.randrange(len(a.shape))
    word = draft.choice.choice(["cumsum", "softmax", "log_softmax", "flip", "roll", "sort",
                                "centred", "cumprod", "logcumsumexp"])  # fmt: skip
    shape = a.shape
    if word == "cumsum":
        rule = f"{{g}}.flip({axis}).cumsum({axis}).flip({axis})"
        return draft.step(f"{{a}}.cumsum({axis})", shape, [a], [rule])
    if word == "softmax":
        rule = f"{{y}} * ({{g}} - ({{g}} * {{y}}).sum({axis}, keepdim=True))"
        return draft.step(f"T.softmax({{a}}, {axis})", shape, [a], [rule], "y")
    if word == "log_softmax":
        rule = f"{{g}} - T.exp({{y}}) * {{g}}.sum({axis}, keepdim=True)"
        return draft.step(f"T.log_softmax({{a}}, {axis})", shape, [a], [rule], "y")
    if word == "flip":
        return draft.step(f"{{a}}.flip({axis})", shape, [a], [f"{{g}}.flip({axis})"])
    if word == "roll":
        by = draft.choice.choice([1, 2, -1])
        rule = f"T.roll({{g}}, {-by}, {axis})"
        return draft.step(f"T.roll({{a}}, {by}, {axis})", shape, [a], [rule])
    if word == "centred":
        rule = f"{{g}} - {{g}}.mean({axis}, keepdim=True)"
        return draft.step(f"{{a}} - {{a}}.mean({axis}, keepdim=True)", shape, [a], [rule])
    if word == "sort":
        return draft.step(f"{{a}}.sort({axis})[0]", shape, [a])
    return draft.step(f"{{a}}.{word}({axis})", shape, [bounded(draft, a)])


# -- products


def product(draft: Draft) -> Step | None:
    """A product of matrices, in one of the ways that people write it."""
    a = draft.pick(least=2, most=3)
    if a is None:
        return None
    fits = [
        v for v in draft.values
        if v.kind == FLOAT and len(v.shape) == 2 and a.shape[-1] in v.shape
    ]  # fmt: skip
    b = draft.choice.choice(fits[-RECENT:]) if fits else a
    if len(b.shape) != 2:
        return None
    a, b = bounded(draft, a), b if draft.choice.random() < 0.5 else bounded(draft, b)
    shape = (*a.shape[:-1], b.shape[1])
    if b.shape[0] == a.shape[-1] and (b.shape[1] != a.shape[-1] or draft.choice.random() < 0.5):
        if len(a.shape) == 2:
            word = draft.choice.choice(["{a} @ {b}", "T.matmul({a}, {b})", "T.mm({a}, {b})"])
            return draft.step(word, shape, [a, b], ["{g} @ {b}.t()", "{a}.t() @ {g}"], "ab")
        return draft.step("{a} @ {b}", shape, [a, b])
    shape = (*a.shape[:-1], b.shape[0])
    if len(a.shape) == 2:
        words = [
            "{a} @ {b}.t()",
            "T.nn.functional.linear({a}, {b})",
            'T.einsum("ij,kj->ik", {a}, {b})',
        ]
        word = draft.choice.choice(words)
        return draft.step(word, shape, [a, b], ["{g} @ {b}", "{g}.t() @ {a}"], "ab")
    return draft.step("{a} @ {b}.transpose(0, 1)", shape, [a, b])


def outer(draft: Draft) -> Step | None:
    """Every element of one times every element of another, or their scalar product."""
    a, b = draft.pick(least=1, most=1), draft.pick(least=1, most=1)
    if a is None or b is None or a.name == b.name:
        return None
    if a.shape == b.shape and draft.choice.random() < 0.5:
        rules = ["{g} * {b}", "{g} * {a}"]
        return draft.step("({a} * {b}).sum()", (), [a, b], rules, "ab")
    text = draft.choice.choice(["T.outer({a}, {b})", "{a}[:, None] * {b}[None, :]"])
    return draft.step(text, (*a.shape, *b.shape), [a, b], ["{g} @ {b}", "{g}.t() @ {a}"], "ab")


def matrix(draft: Draft) -> Step | None:
    """What is known of a positive definite matrix."""
    a = draft.pick(least=2, most=2)
    if a is None:
        return None
    a = bounded(draft, a)
    eye = "T.eye({a}.shape[0], dtype={a}.dtype)"
    before = [f"{{y}}s = {{a}} @ {{a}}.transpose(0, 1) * 0.1 + {eye}"]
    text, shape = draft.choice.choice([
        ("T.linalg.cholesky({y}s)", (a.shape[0], a.shape[0])),
        ("T.linalg.inv({y}s)", (a.shape[0], a.shape[0])), ("T.linalg.det({y}s)", ()),
        ("T.linalg.slogdet({y}s)[1]", ()), ("T.logdet({y}s)", ()), ("T.trace({y}s)", ()),
        ("T.linalg.solve({y}s, {a})", a.shape),
        ("T.linalg.solve_triangular({y}s.tril(), {a}, upper=False)", a.shape),
        ("T.linalg.solve_triangular({y}s.triu(), {a}, upper=True)", a.shape),
    ])  # fmt: skip
    return draft.step(text, shape, [a], before=before)


# -- movement


def movement(draft: Draft) -> Step | None:
    """Another order or grouping of the same elements, or some of them."""
    a = draft.pick(least=1)
    if a is None:
        return None
    return draft.choice.choice(_MOVEMENTS)(draft, a)


def _permute(draft: Draft, a: Value) -> Step:
    axes = list(range(len(a.shape)))
    draft.choice.shuffle(axes)
    inverse = [axes.index(axis) for axis in range(len(axes))]
    shape = tuple(a.shape[axis] for axis in axes)
    return draft.step(
        f"{{a}}.permute({tuple(axes)})", shape, [a], [f"{{g}}.permute({tuple(inverse)})"]
    )


def _merge(draft: Draft, a: Value) -> Step:
    rest = a.shape[2:]
    if len(a.shape) > 1:
        shape = (f"({a.shape[0]})*({a.shape[1]})", *rest)
        text = draft.choice.choice(
            ["{a}.flatten(0, 1)", "{a}.reshape({a}.shape[0] * {a}.shape[1], *{a}.shape[2:])"]
        )
        return draft.step(text, shape, [a], ["{g}.reshape({a}.shape)"], "a")
    return draft.step("{a}.reshape(1, -1)", ("1", *a.shape), [a], ["{g}.reshape({a}.shape)"], "a")


def _unsqueeze(draft: Draft, a: Value) -> Step:
    axis = draft.choice.randint(0, len(a.shape)) if len(a.shape) < MOST_RANK else 0
    shape = (*a.shape[:axis], "1", *a.shape[axis:])
    return draft.step(f"{{a}}.unsqueeze({axis})", shape, [a], [f"{{g}}.squeeze({axis})"])


def _expand(draft: Draft, a: Value) -> Step:
    text = draft.choice.choice(
        ["{a}.expand(3, *{a}.shape)", "{a}.unsqueeze(0).repeat_interleave(3, 0)"]
    )
    return draft.step(text, ("3", *a.shape), [a], ["{g}.sum(0)"])


def _slice(draft: Draft, a: Value) -> Step:
    axis = draft.choice.randrange(len(a.shape))
    where = draft.choice.choice(["1:", ":-1", "::2", "0:2", "-1:"])
    index = ", ".join([*[":"] * axis, where])
    size = {"1:": f"max({a.shape[axis]}-1,0)", ":-1": f"max({a.shape[axis]}-1,0)",
            "::2": f"(({a.shape[axis]})+1)//2", "0:2": f"min({a.shape[axis]},2)",
            "-1:": f"min({a.shape[axis]},1)"}[where]  # fmt: skip
    shape = tuple(size if i == axis else one for i, one in enumerate(a.shape))
    return draft.step(f"{{a}}[{index}]", shape, [a])


def _select(draft: Draft, a: Value) -> Step:
    axis = draft.choice.randrange(len(a.shape))
    place = draft.choice.choice(["0", "-1", "1"])
    shape = tuple(one for i, one in enumerate(a.shape) if i != axis)
    text = draft.choice.choice(
        [f"{{a}}[{', '.join([*[':'] * axis, place])}]", f"{{a}}.select({axis}, {place})"]
    )
    return draft.step(text, shape, [a])


def _join(draft: Draft, a: Value) -> Step:
    axis = draft.choice.randrange(len(a.shape))
    b = draft.like(a.shape)
    if b is None or b.name == a.name or draft.choice.random() < 0.3:
        shape = (*a.shape[:axis], "2", *a.shape[axis:])
        rule = f"{{g}}.select({axis}, 0) * 1 - {{g}}.select({axis}, 1)"
        return draft.step(f"T.stack([{{a}}, -{{a}}], {axis})", shape, [a], [rule])
    size = f"({a.shape[axis]})+({b.shape[axis]})"
    shape = tuple(size if i == axis else one for i, one in enumerate(a.shape))
    rules = [f"{{g}}.narrow({axis}, 0, {{a}}.shape[{axis}])",
             f"{{g}}.narrow({axis}, {{a}}.shape[{axis}], {{b}}.shape[{axis}])"]  # fmt: skip
    return draft.step(f"T.cat([{{a}}, {{b}}], {axis})", shape, [a, b], rules, "ab")


def _triangle(draft: Draft, a: Value) -> Step:
    if len(a.shape) < 2:
        return _unsqueeze(draft, a)
    word, by = draft.choice.choice(["tril", "triu"]), draft.choice.choice([0, 1, -1])
    return draft.step(f"T.{word}({{a}}, {by})", a.shape, [a], [f"T.{word}({{g}}, {by})"])


def _squeeze(draft: Draft, a: Value) -> Step | None:
    """Without the axes that are 1, which may differ from case to case; so only as a sum."""
    return draft.step("{a}.squeeze().sum() * {a}", a.shape, [a])


def _diagonal(draft: Draft, a: Value) -> Step:
    if len(a.shape) < 2:
        return draft.step("T.diag({a})", (*a.shape, *a.shape), [a], ["T.diagonal({g})"])
    first, second, *rest = a.shape
    text = draft.choice.choice(["T.diagonal({a})", "{a}.diagonal(0, 0, 1)", "T.diagonal({a}) * 1"])
    return draft.step(text, (*rest, f"min({first},{second})"), [a])


def _part(draft: Draft, a: Value) -> Step:
    """Some elements along an axis, whose bounds may lie outside."""
    axis = draft.choice.randrange(len(a.shape))
    size = a.shape[axis]
    text, length = draft.choice.choice([
        (f"{{a}}.narrow({axis}, 1, 2)", "2"), (f"{{a}}.narrow({axis}, -2, 1)", "1"),
        (f"{{a}}.narrow({axis}, 1, {{a}}.shape[{axis}] - 2)", f"max({size}-2,0)"),
        (f"{{a}}.split([2, {{a}}.shape[{axis}] - 2], {axis})[1]", f"max({size}-2,0)"),
        (f"{{a}}.kthvalue(2, {axis}, True)[0]", "1"), (f"{{a}}.topk(2, {axis})[0]", "2"),
        (f"{{a}}.median({axis}, True)[0]", "1"),
    ])  # fmt: skip
    shape = tuple(length if i == axis else one for i, one in enumerate(a.shape))
    return draft.step(text, shape, [a])


_MOVEMENTS: list[Callable[[Draft, Value], Step | None]] = [
    _permute, _permute, _merge, _unsqueeze, _expand, _slice, _slice, _select, _join, _join,
    _triangle, _squeeze, _diagonal, _part,
]  # fmt: skip

# -- places and masks


def places(draft: Draft) -> Step | None:
    """Elements at places that another value says."""
    idx = draft.pick(INTEGER, 1, 1)
    if idx is None or not idx.below:
        return None
    fits = [v for v in draft.values if v.kind == FLOAT and v.shape[:1] == (idx.below,)]
    others = [v for v in draft.values if v.kind == FLOAT and v.shape[:1] == idx.shape]
    if fits and (not others or draft.choice.random() < 0.6):
        a = draft.choice.choice(fits[-RECENT:])
        shape = (*idx.shape, *a.shape[1:])
        text = draft.choice.choice(["{a}[{b}]", "{a}.index_select(0, {b})", "{a}[{b}] * 1"])
        rule = "T.zeros_like({a}).index_add(0, {b}, {g})"
        return draft.step(text, shape, [a, idx], [rule], "ab")
    if not others:
        return None
    a = draft.choice.choice(others[-RECENT:])
    size = _size_text(draft, idx.below)
    if size is None:
        return None
    shape = (idx.below, *a.shape[1:])
    start = f"{{a}}.new_zeros(({size}, *{{a}}.shape[1:]))"
    text = f"{start}.index_add(0, {{b}}, {{a}})"
    if len(a.shape) == 1 and draft.choice.random() < 0.5:
        text = f"{start}.scatter_add(0, {{b}}, {{a}})"
    return draft.step(text, shape, [a, idx], ["{g}[{b}]"], "b")


def _size_text(draft: Draft, size: str) -> str | None:
    """An expression for a size, over a value that has it."""
    for value in draft.values:
        if size in value.shape and not value.name.startswith("o"):
            return f"{value.name}.shape[{value.shape.index(size)}]"
    return None


def gathered(draft: Draft) -> Step | None:
    """The element of each row that an argmax, or another value, names."""
    a = draft.pick(least=1)
    if a is None:
        return None
    axis = draft.choice.randrange(len(a.shape))
    word = draft.choice.choice(["argmax", "argmin"])
    shape = tuple("1" if i == axis else one for i, one in enumerate(a.shape))
    where = f"{{a}}.{word}({axis}, keepdim=True)"
    if draft.choice.random() < 0.5:
        return draft.step(f"{{a}}.gather({axis}, {where})", shape, [a])
    return draft.step(f"{{a}} * T.zeros_like({{a}}).scatter({axis}, {where}, 1.0)", a.shape, [a])


def masked(draft: Draft) -> Step | None:
    """A choice by a mask that was given or compared."""
    a = draft.pick()
    if a is None:
        return None
    mask = draft.like(a.shape, BOOL)
    if mask is None:
        return _comparison(draft, a, draft.like(a.shape))
    text, rule = draft.choice.choice([
        ("T.where({b}, {a}, 0.5)", "T.where({b}, {g}, 0)"),
        ("{a}.masked_fill({b}, -0.25)", "{g}.masked_fill({b}, 0)"),
        ("{a} * {b}", "{g} * {b}"),
        ("{a} * (~{b}).to({a}.dtype)", "{g} * ~{b}"),
        ("T.where(~{b} & ({a} > 0), {a}, -{a})", "T.where(~{b} & ({a} > 0), {g}, -{g})"),
    ])  # fmt: skip
    return draft.step(text, a.shape, [a, mask], [rule], "ab")


def _comparison(draft: Draft, a: Value, b: Value | None) -> Step:
    word = draft.choice.choice([">", "<=", "<", ">="])
    other = "{b}" if b is not None and b.name != a.name else "0.1"
    taken = [a, b] if b is not None and b.name != a.name else [a]
    name = draft.name()
    text = f"{a.name} {word} {other.replace('{b}', taken[-1].name)}"
    return Step(Value(name, a.shape, BOOL), (f"{name} = {text}",), tuple(v.name for v in taken), ())


def counted(draft: Draft) -> Step | None:
    """Integers: where the greatest stands, how many are positive, places of other places."""
    idx = draft.pick(INTEGER, 1, 1)
    if idx is not None and draft.choice.random() < 0.4:
        text = draft.choice.choice(
            [f"{idx.name}.flip(0)", f"{idx.name} * 1", f"{idx.name}.clone()"]
        )
        name = draft.name()
        value = Value(name, idx.shape, INTEGER, idx.below)
        return Step(value, (f"{name} = {text}",), (idx.name,), ())
    a = draft.pick(least=1)
    if a is None:
        return None
    axis, name = draft.choice.randrange(len(a.shape)), draft.name()
    if draft.choice.random() < 0.25:
        shape = tuple(one for i, one in enumerate(a.shape) if i != axis)
        text = f"({a.name} > -0.5).{draft.choice.choice(['all', 'any'])}({axis})"
        return Step(Value(name, shape, BOOL), (f"{name} = {text}",), (a.name,), ())
    shape = tuple(one for i, one in enumerate(a.shape) if i != axis)
    text, below = draft.choice.choice([
        (f"{a.name}.argmax({axis})", a.shape[axis]), (f"({a.name} > 0).sum({axis})", ""),
        (f"({a.name} > 0.2).long().cumsum({axis}).amax({axis})", ""),
    ])  # fmt: skip
    value = Value(name, shape, INTEGER, below)
    return Step(value, (f"{name} = {text}",), (a.name,), ())


def converted(draft: Draft) -> Step | None:
    """An integer or bool value as floats."""
    found = [v for v in draft.values if v.kind != FLOAT]
    a = draft.pick()
    if not found or a is None:
        return None
    b = draft.choice.choice(found)
    return draft.step("{b}.to({a}.dtype)", b.shape, [a, b], [""])


# -- writes


def written(draft: Draft) -> Step | None:
    """A copy that is written to in place, through views or not, then read."""
    a = draft.pick(least=1)
    if a is None:
        return None
    b = draft.like(a.shape)
    name, lines = "{y}", []
    axis = draft.choice.randrange(len(a.shape))
    start = draft.choice.choice(["{a}.clone()", "{a} * 1", "{a} + 0"])
    for _ in range(draft.choice.randint(1, 3)):
        lines.append(draft.choice.choice(_WRITES)(draft, axis, b is not None))
    view = f"{name}w"
    text = "\n".join(lines).replace("{w}", view)
    head = f"{{y}} = {start}"
    step = draft.step(
        "{y}", a.shape, [a, *([b] if b else [])], None, before=[head, *text.split("\n")]
    )
    return Step(step.result, step.lines[:-1], step.arguments)


def _at(axis: int, place: str) -> str:
    return f"[{', '.join([*[':'] * axis, place])}]"


_WRITES: list[Callable[[Draft, int, bool], str]] = [
    lambda draft, axis, other: f"{{y}}.mul_({draft.choice.choice(['2.0', '-0.5'])})",
    lambda draft, axis, other: "{y} += {b}" if other else "{y} += 1",
    lambda draft, axis, other: "{y} *= {b}" if other else "{y} *= {a}",
    lambda draft, axis, other: f"{{y}}{_at(axis, '0')} = 0.5",
    lambda draft, axis, other: f"{{y}}{_at(axis, '-1')} *= 3",
    lambda draft, axis, other: f"{{y}}{_at(axis, '1:')} = {{a}}{_at(axis, '1:')} * 2",
    lambda draft, axis, other: f"{{y}}{_at(axis, '::2')}.add_(1.0)",
    lambda draft, axis, other: "{w} = {y}.transpose(0, -1)\n{w}[0].mul_(2.0)",
    lambda draft, axis, other: "{w} = {y}.view(-1)\n{w}.sub_(0.5)",
    lambda draft, axis, other: "{w} = {y}.unsqueeze(0)\n{w}.add_(0.25)\n{w}.mul_(1.5)",
    lambda draft, axis, other: (
        f"{{w}} = {{y}}{_at(axis, '0')}\n{{y}}.mul_(0.5)\n{{y}} = {{y}} + {{w}}.sum()"
    ),
    lambda draft, axis, other: "{y}[{y} > 0.3] = 0.1",
    lambda draft, axis, other: "{y}.masked_fill_({a} > 0, 0.75)",
    lambda draft, axis, other: "{y}.copy_({b})" if other else "{y}.zero_()",
    lambda draft, axis, other: "{y}.clamp_(-0.5, 0.5)",
    lambda draft, axis, other: f"{{y}}.select({axis}, 0).copy_({{a}}.select({axis}, -1))",
]  # fmt: skip


def rowwise(draft: Draft) -> Step | None:
    """A write that a written backward undoes: one slot of an axis replaced."""
    a = draft.pick(least=1)
    if a is None:
        return None
    head = ["{y} = {a}.clone()", "{y}[0] = 0.5"]
    tail = "{g} * (T.arange({a}.shape[0]).reshape(-1" + ", 1" * (len(a.shape) - 1) + ") > 0)"
    step = draft.step("{y}", a.shape, [a], [tail], "a", before=head)
    return Step(step.result, step.lines[:-1], step.arguments, step.slopes, step.reads)


# -- questions about sizes


def asked(draft: Draft) -> Step | None:
    """A value that depends on whether a size is so and so."""
    a = draft.pick(least=1)
    if a is None:
        return None
    question = condition(draft, a)
    shape = a.shape
    text, rule = draft.choice.choice([
        (f"{{a}} * 2 if {question} else {{a}} * 3", f"({{g}} * 2 if {question} else {{g}} * 3)"),
        (f"{{a}} * 1 if {question} else {{a}} - {{a}}.mean()",
         f"({{g}} if {question} else {{g}} - {{g}}.mean())"),
        (f"{{a}}.flip(0) if {question} else -{{a}}", f"({{g}}.flip(0) if {question} else -{{g}})"),
    ])  # fmt: skip
    return draft.step(text, shape, [a], [rule], "a")


def condition(draft: Draft, a: Value) -> str:
    """A question about the sizes of a value, as text over ``{a}``."""
    axis = draft.choice.randrange(len(a.shape))
    test = draft.choice.choice(["== 1", "> 2", "% 2 == 0", "!= 3", "== 1", "<= 1", "== 2"])
    size = f"{{a}}.shape[{axis}]"
    if len(a.shape) > 1 and draft.choice.random() < 0.3:
        other = draft.choice.choice([i for i in range(len(a.shape)) if i != axis])
        return f"{size} {draft.choice.choice(['==', '<', '!='])} {{a}}.shape[{other}]"
    return f"{size} {test}"


WORDS: tuple[tuple[int, Word], ...] = (
    (5, unary), (5, binary), (4, reduction), (2, along), (3, product), (1, outer), (1, matrix),
    (4, movement),
    (2, places), (1, gathered), (2, masked), (1, counted), (1, converted), (2, written),
    (1, rowwise), (1, asked),
)  # fmt: skip
