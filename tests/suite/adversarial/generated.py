"""Programs that deceive, drawn: a right backward, a class of slip, a place where it hides.

In: a hypothesis draw.  Out: ``Draft``: the text of a Function over ``sg``, and the points at which
it is suspected.  What is true of it is for torch to say (``labelled``).  Places among sizes and
indices are found exactly, by trying all sizes up to ``MOST``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import mpmath
from hypothesis import strategies as st

from tests.suite.adversarial.program import At, Program, at, class_of, class_text

MOST = 60
CUT, KNOWN_CUT = 8, 6
"""Digits from which on a literal, or a known constant, may be cut instead of rounded."""
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Draft:
    """The text of a Function ``Drawn``; the other fields are those of a program.

    ``family``: the class of slip.  ``suspects``: where it may be wrong.  ``unless``: what a
    condition in words has to say.  ``rounded``: the digits of its literals.  ``off``: by how many
    units of its last digit a literal is off, which more than half of one makes wrong.
    ``elsewhere``: what the text amounts to on a GPU, which is the point ``gpu``.
    """

    family: str
    text: str
    specs: tuple[str, ...] = ("n",)
    suspects: tuple[At, ...] = ()
    static: Mapping[str, Any] = field(default_factory=dict)
    order: int = 1
    unless: str = ""
    rounded: bool = False
    off: float | None = None
    elsewhere: str = ""
    wide: bool = False
    inside: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def program(self, sg: Any, label: str = "", fails: tuple[At, ...] = ()) -> Program:
        """The program over ``sg``, which is symgrad or torch."""
        return Program(
            "Drawn", class_of("Drawn", self.text, sg), self.specs, label, static=self.static,
            order=self.order, fails=fails, unless=self.unless, rounded=self.rounded, wide=self.wide,
            inside=self.inside, kind=self.family, source=self.text,
        )  # fmt: skip


# -- right backwards: forward, its derivative by x

SLOPES = {
    "x * x": "2 * x",
    "3 * x": "3.0",
    "x ** 3": "3 * x ** 2",
    "x.sin()": "x.cos()",
    "(x / 4).exp()": "(x / 4).exp() / 4",
    "x.tanh()": "(1 - x.tanh() ** 2)",
    "x.sigmoid()": "x.sigmoid() * (1 - x.sigmoid())",
    "x.atan()": "1 / (1 + x * x)",
    "(x * x + 1).log()": "2 * x / (x * x + 1)",
    "(x * x + 2).sqrt()": "x / (x * x + 2).sqrt()",
    "x * x.sin()": "(x.sin() + x * x.cos())",
    "1 / (x * x + 3)": "-2 * x / (x * x + 3) ** 2",
    "x.cosh()": "x.sinh()",
    "x.erf()": "1.1283791670955126 * (-x * x).exp()",
    "(x + 100) ** 2": "2 * (x + 100)",
}
NEVER_ZERO = (
    "x.exp()",
    "(x * x + {c})",
    "x.cosh()",
    "(x.sin() + 2)",
    "x.sigmoid()",
    "(x ** 4 + 1)",
)
VECTOR_WHOLES = (
    "(n - {a})", "(n * n - {a} * {a})", "(n - {a}) * (n - {b})", "(i - {a})", "(n - {a} - i)",
    "(2 * i - n + {a})", "(i * i - {a} * {a})", "(n % {b} - {a})", "(n // 2 - {a})",
    "(n * (n - 1) - {a} * ({a} - 1))", "(i * (n - i) - {a})", "(n + {a})", "(2 * n - 2 * {a} + 1)",
    "(i + {a})", "(n * n + n + {a})", "(3 * i - 3 * {a} - 1)", "(i - n)", "(n - {a}) * (i + 1)",
)  # fmt: skip
MATRIX_WHOLES = (
    "(n - {b} * m)", "(n * m - {a})", "(i - j - {a})", "(i * j - {a})", "(n - m - {a})",
    "(i - {b} * m)", "(n + m - {a})", "(n * n - m - {a})", "(i + j - {a})", "(n * n + m * m)",
    "(i - j + n * m)", "(2 * i - 2 * j + 1)", "(j - {a})", "(n - {a}) * (m - {b})",
)  # fmt: skip
# what is zero on a set of reals, a point of it (by the number c, a multiple of 1/4), over x[n]
REALS: tuple[tuple[str, Callable[[float], At]], ...] = (
    ("(x - {c})", lambda c: at(x=c)),
    ("(x * x - {c} * {c})", lambda c: at(x=-c)),
    ("(x.sum() - {c})", lambda c: at(n=2, x=c / 2)),
    ("(x.mean() - {c})", lambda c: at(n=4, x=c)),
    ("((x * x).sum() - {c} * {c})", lambda c: at(n=1, x=c)),
    ("(x - x.shape[0] - {c})", lambda c: at(n=2, x=2 + c)),
    ("(x - sg.arange(x.shape[0]) - {c})", lambda c: at(n=2, x=[c, c + 1])),
    ("(((x - {c}) / 8).exp() - 1)", lambda c: at(x=c)),
    ("(x[0] - {c})", lambda c: at(x=c)),
    ("(x[-1] - x[0] - {c})", lambda c: at(n=2, x=[0.5, c + 0.5])),
    ("(x.amax() - {c})", lambda c: at(x=c)),
    ("(x.abs() - {c} * {c} / 64)", lambda c: at(x=-c * c / 64)),
    ("(x - {c}) ** 3", lambda c: at(x=c)),
    ("(x - {c}) * (x + 1000)", lambda c: at(x=-1000.0)),
    ("(x.norm() - {c} * {c} / 64)", lambda c: at(n=1, x=c * c / 64)),
    ("(x.prod() - {c})", lambda c: at(n=1, x=c)),
    ("(x - {c}).relu()", lambda c: at(x=c - 1)),
    ("(x.floor() - x)", lambda c: at(x=7.0)),
    ("((x - {c}) / 8).sinh()", lambda c: at(x=c)),
    ("((x - {c}).cos() - 1)", lambda c: at(x=c)),
    ("((x - {c}).square() + 1).log()", lambda c: at(x=c)),
    ("(x - {c}).sign()", lambda c: at(x=c)),
    ("(sg.maximum(x, x - 1) - {c})", lambda c: at(x=c)),
    ("(x.cumsum(0) - {c})", lambda c: at(n=1, x=c)),
    ("(x * x + {c} * {c} + 1)", lambda c: at(x=c)),
    ("(x.exp() + 1)", lambda c: at(x=c)),
)  # fmt: skip
# what is 1 where P is not 0
FACTORS = (
    "{P} / {P}", "{P} * {P} ** -1", "({P} != 0)", "({P}).sign() ** 2", "({P}).sign().abs()",
    "(({P} > 0) * 1.0 + ({P} < 0) * 1.0)", "sg.where({P} == 0, {v}, 1.0)",
    "(1 - {v} * ({P} == 0))", "(~({P} == 0))", "(({P}).abs() > 0)", "({P}) ** 3 / ({P}) ** 3",
    "(1 + 0 * ({P}).reciprocal())", "(1 + ({P}).reciprocal() - ({P}).reciprocal())",
    "sg.ones_like(x).masked_fill({P} == 0, {v})", "(1 - (({P} >= 0) & ({P} <= 0)) * {v})",
    "({P}).sqrt().square() / ({P})", "(({P}) ** 2).sqrt() / ({P}).abs()", "({P}) ** 0",
    "sg.where({P} == 0, 1.0, 1.0)", "({P} / {P} + 1) / 2", "({P} < {P} + 1)",
)  # fmt: skip
TERMS = {
    "({x}).asin()": 3.0, "({x}).acos()": -1.5, "({x}).acosh()": 0.5, "({x}).atanh()": 2.0,
    "({x}).erfinv()": 1.5, "({x}).logit()": 2.0, "({x}).lgamma()": -1.0, "({x}).digamma()": -2.0,
    "({x}).log()": -1.0, "({x}).sqrt()": -2.0, "({x}).rsqrt()": 0.0, "({x}).reciprocal()": 0.0,
    "({x}).log1p()": -3.0, "({x}) ** 1.5": -1.0, "({x}) ** -2.0": 0.0, "({x}).abs().log()": 0.0,
    "({x}).atan()": 5.0, "({x}).asinh()": 5.0, "({x}).erf()": 5.0,
}  # fmt: skip
VANISHING = (
    "{G} + 0 * {T}", "{G} + {T} - {T}", "{G} * {T} / {T}", "{G} + (x - x) * {T}",
    "{G} * (1 + 0 * {T} * {T})", "{G} + 2 * {T} - {T} - {T}", "{G} * ({T} == {T})",
    "sg.where({T} > -1e9, {G}, {G} + 0 * {T})",
)  # fmt: skip
# f(s) / s^k: f, its limit at 0, the derivative, the limit of that
REMOVABLE = (
    ("s.sin() / s", 1.0, "(s * s.cos() - s.sin()) / (s * s)", 0.0),
    ("(s.exp() - 1) / s", 1.0, "(s * s.exp() - s.exp() + 1) / (s * s)", 0.5),
    ("s.tanh() / s", 1.0, "(s * (1 - s.tanh() ** 2) - s.tanh()) / (s * s)", 0.0),
    ("(1 - s.cos()) / (s * s)", 0.5, "s.sin() / (s * s) - 2 * (1 - s.cos()) / s ** 3", 0.0),
    ("s.atan() / s", 1.0, "(s / (1 + s * s) - s.atan()) / (s * s)", 0.0),
    ("s / s.sinh()", 1.0, "(s.sinh() - s * s.cosh()) / s.sinh() ** 2", 0.0),
    ("s / (s.exp() - 1)", 1.0, "(s.exp() - 1 - s * s.exp()) / (s.exp() - 1) ** 2", -0.5),
    ("(s.exp() - 1 - s) / (s * s)", 0.5,
     "(s.exp() - 1) / (s * s) - 2 * (s.exp() - 1 - s) / s ** 3", 1 / 6),
    ("s.sinh() / s", 1.0, "(s * s.cosh() - s.sinh()) / (s * s)", 0.0),
    ("s * s / s", 0.0, "s / s", 1.0),
)  # fmt: skip
# a question, the circumstances in which an answer differs, what a condition in words says
QUESTIONS = (
    ("x.requires_grad", at(frozen="x"), "requires_grad"),
    ("w.requires_grad", at(frozen="w"), "requires_grad"),
    ("x.is_leaf", at(how="computed"), "is_leaf"),
    ("x.grad_fn is None", at(how="computed"), "grad_fn"),
    ("x.grad is None", at(how="graded"), r"\bgrad\b"),
    ("x is w", at(how="same"), r"\bis\b|same|identity"),
    ("len({x, w}) == 2", at(how="same"), "hash|same|identity"),
    ("id(x) == id(w)", at(how="same"), r"\bid\b|same|identity"),
    ("x in [w]", at(how="same"), "same|identity|value|list"),
    ("x.dtype == sg.float32", at(how="float32"), "dtype|float|f32|f64"),
    ("'float32' in str(x.dtype)", at(how="float32"), "dtype|float|f32|f64"),
    ("x.dtype.is_floating_point", at(), "dtype"),
    ("type(x).__name__ == 'Parameter'", at(how="parameter"), "type|class|name"),
    ("isinstance(x, sg.Tensor)", at(), "isinstance|type|class"),
    ("isinstance(x.shape[0], int)", at(), "isinstance|type|int"),
    ("type(x.shape[0]) is int", at(), "type|int"),
    ("hasattr(x, 'is_sparse')", at(), "hasattr|attribute"),
    ("x.shape[0] in {{{a}: 1}}", "a", "hash"),
    ("x.shape[0] in ({a}, 100)", "a", "hash"),
    ("str(x.shape[0]) == '{a}'", "a", "text|str"),
    ("len(str(x.shape[0])) > 1", at(n=11), "text|str"),
    ("f'{{x.shape[0]:d}}' == '{a}'", "a", "text|str|format"),
    ("hash(x.shape[0]) == {a}", "a", "hash"),
    ("x.numel() == {a}", "a", "hash"),
    ("len(x) > {a}", "a", "hash"),
    ("list(range(x.shape[0]))[-1:] == [{a}]", "a", "range|list"),
    ("bool(x.shape[0] % {a} == 0)", "a", "hash"),
    ("x.is_contiguous()", at(how="strided"), "contiguous"),
    ("repr(x)[:6] == 'tensor'", at(), "text|repr|str"),
    ("x.ndim == 1", at(), "ndim"),
    ("x.device.type == 'cpu'", at(how="gpu"), "device|GPU"),
)  # fmt: skip

few = st.integers(1, 4)
far = st.integers(6, 29)
dyadic = st.integers(-400, 400).filter(bool).map(lambda k: k / 4)
value = st.sampled_from((0.0, 2.0, -1.0, 0.5))


def zeros(text: str, names: tuple[str, ...]) -> At | None:
    """The least sizes at which an integer polynomial of sizes and indices is zero somewhere."""
    code = compile(text, "<whole>", "eval")
    for total in range(2, MOST):
        for sizes in itertools.product(range(1, total + 1), repeat=len(names)):
            largest = sum(sizes) if len(names) > 1 else max(sizes)
            if largest != total:  # tried before
                continue
            given = dict(zip(names, sizes, strict=True))
            ranges = [range(size) if letter in text else (0,) for letter, size in zip("ij", sizes)]  # noqa: B905
            for indices in itertools.product(*ranges):
                if eval(code, {**given, **dict(zip("ij", indices))}) == 0:  # noqa: B905
                    return At(given)
    return None


@st.composite
def whole(draw: Draw) -> tuple[str, tuple[str, ...], str, tuple[At, ...]]:
    """A factor that is zero at a size or index, or never: its text, the sizes, the lines before."""
    matrix = draw(st.booleans())
    names = ("n", "m") if matrix else ("n",)
    text = draw(st.sampled_from(MATRIX_WHOLES if matrix else VECTOR_WHOLES))
    text = text.format(a=draw(far), b=draw(st.integers(2, 7)))
    found = zeros(text, names)
    head = "n, m = x.shape\n" if matrix else "n = x.shape[0]\n"
    if "i" in text:
        head += "i = sg.arange(n)" + (".unsqueeze(1)\n" if matrix else "\n")
    if "j" in text:
        head += "j = sg.arange(m)\n"
    return text, names, head, () if found is None else (found,)


@st.composite
def witnesses(draw: Draw) -> Draft:
    """What vanishes at a size or index alone."""
    text, names, head, suspects = draw(whole())
    real = draw(st.sampled_from(NEVER_ZERO)).format(c=draw(few))
    return _factored(draw, f"({text} * {real})", head, names, suspects, "witness")


@st.composite
def null_sets(draw: Draw) -> Draft:
    """What vanishes on a set of reals."""
    text, point = draw(st.sampled_from(REALS))
    number = draw(dyadic)
    return _factored(draw, text.format(c=f"({number})"), "", ("n",), (point(number),), "null set")


def _factored(
    draw: Draw, base: str, head: str, names: tuple[str, ...], suspects: tuple[At, ...], family: str
) -> Draft:
    forward = draw(st.sampled_from(sorted(SLOPES)))
    factor = draw(st.sampled_from(FACTORS)).format(P=base, v=draw(value))
    summed = draw(st.sampled_from(("", "", ".sum()")))
    order = draw(st.sampled_from((1, 1, 1, 1, 2))) if not summed else 1
    lines = f"{head}g * ({SLOPES[forward]}) * {factor}"
    text = class_text("Drawn", f"({forward}){summed}", lines, "x")
    inside = {} if "sqrt().square" not in factor else {"x": (0.6, 0.9)}
    return Draft(family, text, (" ".join(names),), suspects, order=order, inside=inside)


@st.composite
def undefined(draw: Draw) -> Draft:
    """A term that is not a number somewhere, and counts for nothing."""
    term, place = draw(st.sampled_from(sorted(TERMS.items())))
    shift = draw(dyadic)
    inner = draw(
        st.sampled_from(("x - ({c})", "(x - ({c})) / 4", "({c}) - x", "x * x - x * ({c})"))
    )
    back = {"x - ({c})": place + shift, "(x - ({c})) / 4": 4 * place + shift,
            "({c}) - x": shift - place, "x * x - x * ({c})": 0.0}[inner]  # fmt: skip
    forward = draw(st.sampled_from(sorted(SLOPES)))
    hidden = draw(st.sampled_from(VANISHING)).format(
        G=f"g * ({SLOPES[forward]})", T=term.format(x=inner.format(c=shift))
    )
    suspects = (at(x=back), at(x=0.0), at(x=30.0), at(x=-30.0), at(x=shift))
    return Draft("undefined", class_text("Drawn", forward, hidden, "x"), ("n",), suspects)


@st.composite
def removable(draw: Draw) -> Draft:
    """A comparison that forward shares, and the derivative at it."""
    quotient, limit, slope, right = draw(st.sampled_from(REMOVABLE))
    centre = draw(st.sampled_from((0.0, 0.0, 1.5, -3.0)))
    given = draw(st.sampled_from((right, right, 0.0, 1.0, limit, -right, 0.25)))
    head = f"u = x - ({centre})\nz = u == 0\ns = sg.where(z, 1.0, u)\n"
    text = class_text(
        "Drawn", f"{head}sg.where(z, {limit}, {quotient})",
        f"{head}g * sg.where(z, {given!r}, {slope})", "x",
    )  # fmt: skip
    return Draft("removable", text, ("n",), (at(x=centre),), wide=True)


@st.composite
def open_sets(draw: Draw) -> Draft:
    """Wrong on an interval far away, or a narrow one."""
    forward = draw(st.sampled_from(sorted(SLOPES)))
    place, width = abs(draw(dyadic)) + 2, draw(st.sampled_from((0.001, 1.0, 50.0)))
    slip = draw(st.sampled_from((
        "+ (x - {c}).relu()", "+ (x > {c})", "* (1 - ((x > {c}) & (x < {d})) * 1.0)",
        "+ 0 * (x > {c})", "+ (x - {c}).relu() - (x - {c}) * (x > {c})", "* (x < {c})",
        "+ 3 * ((x - {c}) * ({d} - x) > 0)", "+ sg.where(x > {d}, x, 0.0)",
    )))  # fmt: skip
    slip = slip.format(c=place, d=place + width)
    text = class_text("Drawn", forward, f"g * (({SLOPES[forward]}) {slip})", "x")
    suspects = (at(x=place + width / 2), at(x=place + width + 1))
    return Draft("open set", text, ("n",), suspects)


_PRODUCT = """class Drawn(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
{before}        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
{lines}
"""


@st.composite
def questions(draw: Draw) -> Draft:
    """A question that Python can ask of the tracer, in forward or in backward."""
    asked, where, words = draw(st.sampled_from(QUESTIONS))
    number = draw(far)
    asked = asked.format(a=number) if "{" in asked and "{x, w}" not in asked else asked
    harm = draw(st.sampled_from(("2.0", "2.0", "1.0")))
    caught = draw(st.booleans())
    line = f"k = {harm} if {asked} else 1.0"
    if draw(st.booleans()):
        line = f"k = 1.0 if {asked} else {harm}"
    lines = [line]
    if caught:
        lines = ["try:", f"    {line}", "except Exception:", "    k = 1.0"]
    in_forward = draw(st.booleans())
    before = "".join(f"        {one}\n" for one in [*lines, "ctx.k = k"]) if in_forward else ""
    lines = ["k = ctx.k"] if in_forward else lines
    lines.append("return g * w, g * x * k")
    text = _PRODUCT.format(before=before, lines="\n".join(f"        {one}" for one in lines))
    points = [at(n=number), at(n=number + 1), at(n=number * 2)] if where == "a" else [where]
    other = asked.replace("'cpu'", "'cuda'")  # what torch would answer on a GPU
    every = [*points, *(at(how=how) for how in ("computed", "float32", "same", "parameter"))]
    elsewhere = text.replace(asked, other) if other != asked else ""
    return Draft("question", text, ("n", "n"), tuple(every), unless=words, elsewhere=elsewhere)


@st.composite
def masks(draw: Draw) -> Draft:
    """Wrong for one pattern of the inputs that require gradients."""
    count = draw(st.integers(2, 5))
    names = "abcde"[:count]
    frozen = draw(st.sets(st.sampled_from(names), min_size=1, max_size=count - 1))
    victim = draw(st.sampled_from(sorted(set(names) - frozen)))
    pairs = [(names[k], names[k + 1]) for k in range(count - 1)]
    forward = " + ".join(f"{a} * {b}" for a, b in pairs)
    tests = [
        f"flags == {tuple(name not in frozen for name in names)}",
        " and ".join(f"not flags[{names.index(name)}]" for name in sorted(frozen)),
        f"sum(flags) == {count - len(frozen)} and flags[{names.index(victim)}]",
        f"not flags[{names.index(min(frozen))}]",
    ]
    harm = draw(st.sampled_from(("2", "2", "0", "1")))
    grads = {
        name: [f"g * {b if a == name else a}" for a, b in pairs if name in (a, b)] for name in names
    }
    found = ", ".join(
        f"({' + '.join(grads[name])})" + (" * k" if name == victim else "") for name in names
    )
    params = ", ".join(names)
    text = (
        "def flags_of(ctx):\n    return tuple(ctx.needs_input_grad)\n\n\n"
        f"class Drawn(sg.Function):\n    @staticmethod\n    def forward(ctx, {params}):\n"
        f"        ctx.save_for_backward({params})\n        return {forward}\n\n"
        "    @staticmethod\n    def backward(ctx, g):\n"
        f"        {params} = ctx.saved_tensors\n"
        f"        flags = {draw(st.sampled_from(('flags_of(ctx)', 'ctx.needs_input_grad')))}\n"
        f"        k = {harm} if {draw(st.sampled_from(tests))} else 1\n"
        f"        return {found}\n"
    )
    suspects = tuple(
        at(frozen=" ".join(some))
        for size in range(1, count)
        for some in itertools.combinations(names, size)
    )
    return Draft("mask", text, ("n",) * count, suspects, unless="needs_input_grad|requires? ")


@st.composite
def absences(draw: Draw) -> Draft:
    """Wrong for one pattern of cotangents that are None."""
    count = draw(st.integers(2, 4))
    parts = draw(st.lists(st.sampled_from(sorted(SLOPES)), min_size=count, max_size=count))
    absent = draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count))
    harm = draw(st.sampled_from(("2", "1", "0", "unguarded")))
    slopes = ", ".join(f"({SLOPES[part]})" for part in parts)
    pattern = tuple(k not in absent for k in range(count))
    body = [
        f"parts = [{slopes}]",
        "given = tuple(g is not None for g in gs)",
        f"k = {harm if harm != 'unguarded' else 1} if given == {pattern} else 1",
        f"found = {harm if len(absent) == count and harm in '12' else 0} * sg.ones_like(x)",
        "found = found if not any(given) else sg.zeros_like(x)",
        "for g, part in zip(gs, parts):",
        f"    if g is not None{f' or given == {pattern}' if harm == 'unguarded' else ''}:",
        "        found = found + k * g * part",
        "return found",
    ]
    outputs = ", ".join(f"({part})" for part in parts)
    text = (
        "class Drawn(sg.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.set_materialize_grads(False)\n        ctx.save_for_backward(x)\n"
        f"        return {outputs}\n\n    @staticmethod\n    def backward(ctx, *gs):\n"
        "        (x,) = ctx.saved_tensors\n" + "".join(f"        {one}\n" for one in body)
    )
    suspects = tuple(
        at(absent=some) for size in range(1, count + 1)
        for some in itertools.combinations(range(count), size)
    )  # fmt: skip
    unless = "not all incoming gradients are None" if len(absent) == count else ""
    return Draft("absent cotangent", text, ("n",), suspects, unless=unless)


@st.composite
def plain(draw: Draw) -> Draft:
    """A plain number, and another value of it at which backward is wrong."""
    forward = draw(st.sampled_from(sorted(SLOPES)))
    judged, other = draw(st.sampled_from(((2.0, 5.0), (2, 5), (0.5, -1.5), (1.0, 0.0), (3, 30))))
    kept = draw(st.sampled_from((
        f"(7.0 if ctx.alpha == {other} else ctx.alpha)",
        f"max(ctx.alpha, {min(judged, other) + 0.25})",
        "ctx.alpha", "abs(ctx.alpha)", f"ctx.alpha ** 2 / {judged}", "float(ctx.alpha)",
        f"({judged} + 0 * ctx.alpha)",
        f"(ctx.alpha if ctx.alpha < {max(judged, other) - 0.25} else 1)",
        "{0: 9.0}.get(ctx.alpha, ctx.alpha)", f"({{{other}: 9.0}}.get(ctx.alpha, ctx.alpha))",
        "(2 * ctx.alpha - ctx.alpha)", "(ctx.alpha * ctx.alpha / ctx.alpha if ctx.alpha else 0)",
    )))  # fmt: skip
    text = (
        "class Drawn(sg.Function):\n    @staticmethod\n    def forward(ctx, x, alpha):\n"
        "        ctx.save_for_backward(x)\n        ctx.alpha = alpha\n"
        f"        return alpha * ({forward})\n\n    @staticmethod\n    def backward(ctx, g):\n"
        f"        (x,) = ctx.saved_tensors\n        return g * ({SLOPES[forward]}) * {kept}, None\n"
    )
    suspects = (at(alpha=other), at(alpha=-judged), at(alpha=judged * 4))
    return Draft("plain value", text, ("n",), suspects, static={"alpha": judged})


KEEPS = (
    ("STORE['x'] = x", "STORE['x']"), ("STORE.setdefault('x', x)", "STORE['x']"),
    ("Drawn.kept = x", "Drawn.kept"), ("KEPT.append(x)", "KEPT[-1]"),
    ("STORE[x.shape[0]] = x", "STORE[g.shape[0]]"), ("ctx.kept = x", "ctx.kept"),
    ("ctx.kept = STORE['x'] = x", "ctx.kept"), ("ctx.kept = [x]", "ctx.kept[0]"),
    ("ctx.kept = {'x': x}", "ctx.kept['x']"), ("KEPT[:] = [x]", "KEPT[0]"),
    ("Drawn.size = x.shape[0]\n        ctx.kept = x", "ctx.kept * (g.shape[0] / Drawn.size)"),
    ("globals()['LAST'] = x", "LAST"),
)  # fmt: skip


@st.composite
def states(draw: Draw) -> Draft:
    """What forward leaves for backward outside of ctx, or backward for the next one."""
    keep, kept = draw(st.sampled_from(KEEPS))
    slip = draw(st.sampled_from((
        "", "", "", "ctx.n = getattr(ctx, 'n', 0) + 1\n        g = g * ctx.n\n        ",
        "g = STORE.setdefault('g', g)\n        ", "ctx.n = 1\n        g = g * ctx.n\n        ",
    )))  # fmt: skip
    text = (
        "STORE = {}\nKEPT = []\n\n\n"
        "class Drawn(sg.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        f"        {keep}\n        return x * x\n\n    @staticmethod\n    def backward(ctx, g):\n"
        f"        {slip}return 2 * g * {kept}\n"
    )
    suspects = (at(how="between"), at(how="twice"))
    return Draft("state", text, ("n",), suspects, unless="state|another call|leak|kept|foreign")


# forward, backward with a literal {c}, and what that has to be, from the numbers p and q
ROUNDINGS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "{p} * ({q} * x).sin()": ("g * {c} * ({q} * x).cos()", lambda p, q: p * q),
    "{p} * x * {q}": ("g * {c}", lambda p, q: p * q),
    "{p} * x * x / {q}": ("g * {c} * x", lambda p, q: 2 * p / q),
    "({q} * x) ** 2 * {p}": ("g * {c} * x", lambda p, q: 2 * p * q**2),
    "({q} * x) ** 3 / {p}": ("g * {c} * x * x", lambda p, q: 3 * q**3 / p),
    "{p} * ({q} * x).exp()": ("g * {c} * ({q} * x).exp()", lambda p, q: p * q),
    "({p} * x).tanh() * {q}": ("g * {c} * (1 - ({p} * x).tanh() ** 2)", lambda p, q: p * q),
    "{p} * x + x * {q}": ("g * {c}", lambda p, q: p + q),
    "{p} * x.exp() + (x / {q}).sin()": (
        "g * ({p} * x.exp() + {c} * (x / {q}).cos())", lambda p, q: 1 / q,
    ),
    "({p} * x * x + {q}).sqrt()": (
        "g * {c} * x * ({p} * x * x + {q}) ** -0.5", lambda p, q: p,
    ),
    "({p} * x * x + {q}) ** 1.5": (
        "g * {c} * x * ({p} * x * x + {q}).sqrt()", lambda p, q: 3 * p,
    ),
    "({q} * x.exp()) ** 0.4 * {p}": (
        "g * {c} * (0.4 * x).exp()", lambda p, q: 2 * p * q ** (mpmath.mpf(2) / 5) / 5,
    ),
    "{p} * {q} ** x": ("g * {c} * {q} ** x", lambda p, q: p * mpmath.log(q)),
    "0.5 * x * (1 + ({p} * (x + {q} * x ** 3)).tanh())": (
        "t = ({p} * (x + {q} * x ** 3)).tanh()\n"
        "g * 0.5 * (1 + t + x * (1 - t * t) * ({p} + {c} * x * x))",
        lambda p, q: 3 * p * q,
    ),
    "(x * {p}).sigmoid() * (x * {q}).tanh()": (
        "s = (x * {p}).sigmoid()\nt = (x * {q}).tanh()\n"
        "g * (s * (1 - s) * {p} * t + s * (1 - t) * (1 + t) * {q}) + 0 * {c}",
        lambda p, q: p / q,
    ),
    "(x * 0.7071067811865476 * {p}).erf() * {q}": (
        "g * {c} * (-0.5 * ({p} * x) ** 2).exp()",
        lambda p, q: p * q * mpmath.sqrt(2 / mpmath.pi),
    ),
}  # fmt: skip


@st.composite
def literals(draw: Draw) -> Draft:
    """A literal that the derivative asks for, rounded, or off by units of its last digit."""
    digits, known = draw(st.integers(5, 10)), draw(st.integers(1, 8))
    first = Decimal(draw(st.integers(10**9, 10**10 - 1))).scaleb(-9).__round__(known)
    second = Decimal(draw(st.integers(10**8, 10**9 - 1))).scaleb(-9).__round__(known)
    form = draw(st.sampled_from(sorted(ROUNDINGS)))
    backward, exactly = ROUNDINGS[form]
    with mpmath.workdps(50):
        value = exactly(mpmath.mpf(str(first)), mpmath.mpf(str(second or 1)))
        exact = Decimal(mpmath.nstr(value, 40)) or Decimal(1)
    last = exact.adjusted() - digits + 1
    units = draw(st.sampled_from((0, 0, 0, 1, -1, 2, 10, -100)))
    written = exact.__round__(-last) + units * Decimal(1).scaleb(last)
    off = (abs(exact) - abs(written)).scaleb(-last)
    cut = KNOWN_CUT if first == second == 1 else CUT
    if "+ 0 * {c}" in backward or (digits >= cut and 0 <= off < 1):
        off = Decimal(0)
    names = {"p": first, "q": second or 1, "c": f"({written:f})"}
    text = class_text("Drawn", form.format(**names), backward.format(**names), "x")
    return Draft(
        "literal", text, ("n",), (at(x=1.0), at(x=0.25)), rounded=True, off=float(abs(off))
    )


@st.composite
def rewritten(draw: Draw) -> Draft:
    """A right backward in another spelling: large numbers that cancel, detours, splits."""
    forward = draw(st.sampled_from(sorted(SLOPES)))
    slope = SLOPES[forward]
    number = draw(st.sampled_from(("1000.0", "2.0 ** 20", "0.125", "3", "-7.5")))
    spelling = draw(st.sampled_from((
        "g * (({S}) + {c} * x - {c} * x)", "(g * ({S}) * {c}) / {c}", "g * ({S}) + {c} - {c}",
        "sg.where(x > {c}, g * ({S}), g * ({S}))", "g * ({S}) * (x > {c}) + g * ({S}) * (x <= {c})",
        "g * (({S}) * (1 + x * x)) / (1 + x * x)", "(g + g) * ({S}) / 2",
        "g * ({S}) * (x.sin() ** 2 + x.cos() ** 2)", "g * ({S}) * x.exp() * (-x).exp()",
        "sg.where(x == {c}, g * ({S}), g * ({S}))", "g.flip(0).flip(0) * ({S})",
        "g * sg.maximum(({S}), ({S}))", "g * ({S}) * (x.cosh() ** 2 - x.sinh() ** 2)",
        "g * ({S}) - g.sum() + g.sum()", "sg.stack([g * ({S}), g])[0]",
        "g * (({S}) ** 2 + 1 - 1) / ({S})", "g * ({S}).abs() * ({S}).sign()",
    )))  # fmt: skip
    text = class_text("Drawn", forward, spelling.format(S=slope, c=number), "x")
    return Draft("spelling", text, ("n",), (at(x=0.0), at(x=3.0)))


FAMILIES: dict[str, Callable[[], st.SearchStrategy[Draft]]] = {
    "witness": witnesses, "null set": null_sets, "undefined": undefined, "removable": removable,
    "open set": open_sets, "question": questions, "mask": masks, "absent cotangent": absences,
    "plain value": plain, "state": states, "literal": literals, "spelling": rewritten,
}  # fmt: skip


def drafts(families: tuple[str, ...] = tuple(FAMILIES)) -> st.SearchStrategy[Draft]:
    """Programs of these families."""
    return st.one_of([FAMILIES[name]() for name in families])
