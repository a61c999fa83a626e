"""A counterexample as a program that needs NumPy alone.

In: the nodes of a case and a point.  Out: Python text that computes the gradient as written and
the difference quotient of the forward, and prints both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.oracle.refute import Counterexample
from symgrad.proof.oracle.subject import Subject

_CALLS = {
    "neg": "-{0}", "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}",
    "pow": "{0} ** {1}", "abs": "np.abs({0})", "acos": "np.arccos({0})",
    "acosh": "np.arccosh({0})", "asin": "np.arcsin({0})", "asinh": "np.arcsinh({0})",
    "atan": "np.arctan({0})", "atanh": "np.arctanh({0})", "atan2": "np.arctan2({0}, {1})",
    "relu": "np.maximum({0}, 0.0)", "rsqrt": "1 / np.sqrt({0})", "reciprocal": "1 / {0}",
    "sigmoid": "1 / (1 + np.exp(-{0}))", "softplus": "np.logaddexp({0}, 0.0)",
    "log_sigmoid": "-np.logaddexp(-{0}, 0.0)", "silu": "{0} / (1 + np.exp(-{0}))",
    "round": "np.round({0})", "erf": "np.vectorize(math.erf, otypes=[float])({0})",
    "erfc": "np.vectorize(math.erfc, otypes=[float])({0})",
    "lgamma": "np.vectorize(math.lgamma, otypes=[float])({0})",
    "eq": "np.equal({0}, {1})", "ne": "np.not_equal({0}, {1})", "lt": "np.less({0}, {1})",
    "le": "np.less_equal({0}, {1})", "gt": "np.greater({0}, {1})",
    "ge": "np.greater_equal({0}, {1})", "where": "np.where({0}, {1}, {2})",
    "mod": "np.mod({0}, {1})", "shift": "{0}",
    "logaddexp": "np.logaddexp({0}, {1})", "root": "np.sqrt({0})",
    "hypot": "np.hypot({0}, {1})", "copysign": "np.copysign({0}, {1})",
    "floordiv": "np.floor_divide({0}, {1})",
}  # fmt: skip
_SAME_NAME = frozenset(
    [
        "exp",
        "expm1",
        "exp2",
        "log",
        "log1p",
        "log2",
        "log10",
        "sqrt",
        "square",
        "sign",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "floor",
        "ceil",
        "trunc",
        "maximum",
        "minimum",
        "fmod",
        "logical_and",
        "logical_or",
        "logical_not",
        "logical_xor",
    ]
)
_REDUCTIONS = {"sum": "np.sum", "prod": "np.prod", "amax": "np.max", "amin": "np.min",
               "max": "np.max", "min": "np.min",
               "any": "np.any", "all": "np.all"}  # fmt: skip


def numpy_snippet(subject: Subject, found: Counterexample) -> str | None:
    """The program; None where an op has no NumPy spelling here."""
    roots = [node for pair in subject.outputs for node in pair]
    gradient = subject.gradients[found.input]
    try:
        forward = _Writer(found.point.sizes).function(ancestors(roots), subject, "objective")
        backward = _Writer(found.point.sizes).function(
            ancestors([gradient]), subject, "gradient", gradient
        )  # fmt: skip
    except KeyError:
        return None
    names = ", ".join(node.attributes["name"] for node in subject.sampler.inputs)
    lines = ["import math", "", "import numpy as np", "", *forward, "", *backward, ""]
    for node in subject.sampler.inputs:
        lines.append(f"{node.attributes['name']} = {_array(subject, found, node)}")
    index = f"[{', '.join(map(str, found.at))}]" if found.at else "[()]"
    lines += [
        "step = 1e-6",
        f"ahead, behind = {found.input}.copy(), {found.input}.copy()",
        f"ahead{index} += step",
        f"behind{index} -= step",
        f"true = (objective({_moved(names, found.input, 'ahead')}) - "
        f"objective({_moved(names, found.input, 'behind')})) / (2 * step)",
        f'print("as written:", gradient({names}){index})',
        'print("difference quotient of the forward:", true)',
    ]
    return "\n".join(lines) + "\n"


def _moved(names: str, name: str, by: str) -> str:
    return ", ".join(by if part == name else part for part in names.split(", "))


def _array(subject: Subject, found: Counterexample, node: Node) -> str:
    name = node.attributes["name"]
    shape = tuple(size.at(found.point.sizes) for size in node.shape)
    if node.dtype.is_float:
        values: Sequence[Any] = [float(value) for value in found.point.fractions(name)]
    else:
        values = found.point.integers[name].ravel().tolist()
    kind = numpy_name(node.dtype)
    return f"np.array({list(values)!r}, dtype={kind}).reshape({shape!r})"


class _Writer:
    """Nodes as NumPy statements at concrete sizes."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.names: dict[Node, str] = {}

    def function(
        self, nodes: Sequence[Node], subject: Subject, name: str, result: Node | None = None
    ) -> list[str]:
        parameters = [node.attributes["name"] for node in subject.sampler.inputs]
        lines = [f"def {name}({', '.join(parameters)}):"]
        for node in nodes:
            if node.op == "input":
                self.names[node] = node.attributes["name"]
                continue
            self.names[node] = f"v{node.index}"
            lines.append(f"    v{node.index} = {self.expression(node)}")
        if result is not None:
            lines.append(f"    return {self.names[result]}")
        else:
            terms = [f"np.sum({self.names[o]} * {self.names[c]})" for o, c in subject.outputs]
            lines.append(f"    return {' + '.join(terms) or '0.0'}")
        return [*lines, ""]

    def expression(self, node: Node) -> str:
        """One node; raises KeyError for an op without a spelling."""
        args = [self.names[arg] for arg in node.args]
        if node.op in _CALLS:
            return _CALLS[node.op].format(*args)
        if node.op in _SAME_NAME:
            return f"np.{node.op}({', '.join(args)})"
        attributes = node.attributes
        if node.op in _REDUCTIONS:
            return f"{_REDUCTIONS[node.op]}({args[0]}, axis={attributes['axes']!r})"
        return _STRUCTURAL[node.op](self, node, args)

    def shape(self, shape: Sequence[Any]) -> str:
        return repr(tuple(Dim.of(size).at(self.sizes) for size in shape))


def _constant(writer: _Writer, node: Node, args: list[str]) -> str:
    kind = f", {numpy_name(node.dtype)}" if node.dtype.wraps else ""
    return f"np.asarray({node.attributes['value'].value!r}{kind})"


def _cast(writer: _Writer, node: Node, args: list[str]) -> str:
    kind = numpy_name(node.dtype)
    through = ".astype(int)" if node.dtype.wraps else ""
    return f"np.asarray({args[0]}){through}.astype({kind})"


def numpy_name(dtype: DType) -> str:
    """How a program calls a dtype: every float is a double, integers wrap around at their range."""
    if dtype.wraps:
        return f"np.{dtype}"
    return "float" if dtype.is_float else "int" if dtype.is_integer else "bool"


def _slices(writer: _Writer, node: Node, part: Sequence[Any]) -> str:
    attributes, found = node.attributes, []
    for start, step, size in zip(attributes["starts"], attributes["steps"], part, strict=True):
        first, taken = Dim.of(start).at(writer.sizes), Dim.of(size).at(writer.sizes)
        stop = first + step * taken
        found.append(f"slice({first}, {stop if stop >= 0 else None}, {step})")
    return f"({', '.join(found)},)" if found else "()"


def _unslice(writer: _Writer, node: Node, args: list[str]) -> str:
    where = _slices(writer, node, node.args[0].shape)
    whole = f"np.zeros({writer.shape(node.shape)})"
    return f"(lambda whole: (whole.__setitem__({where}, {args[0]}), whole)[1])({whole})"


def _index_add(writer: _Writer, node: Node, args: list[str]) -> str:
    places = f"({', '.join(args[1:])},)"
    whole = f"np.zeros({writer.shape(node.shape)})"
    return f"(lambda whole: (np.add.at(whole, {places}, {args[0]}), whole)[1])({whole})"


def _scan(writer: _Writer, node: Node, args: list[str]) -> str:
    axis, name = node.attributes["axis"], f"np.{node.op}"
    if node.attributes["reverse"]:
        return f"np.flip({name}(np.flip({args[0]}, {axis}), axis={axis}), {axis})"
    return f"{name}({args[0]}, axis={axis})"


_STRUCTURAL: dict[str, Callable[[_Writer, Node, list[str]], str]] = {
    "constant": _constant,
    "cast": _cast,
    "size": lambda w, n, a: f"np.asarray({n.attributes['dim'].at(w.sizes)}.0)"
    if n.dtype.is_float else f"np.asarray({n.attributes['dim'].at(w.sizes)})",
    "iota": lambda w, n, a: f"np.arange({Dim.of(n.attributes['length']).at(w.sizes)})",
    "expand": lambda w, n, a: f"np.broadcast_to({a[0]}, {w.shape(n.shape)})",
    "reshape": lambda w, n, a: f"np.reshape({a[0]}, {w.shape(n.shape)})",
    "permute": lambda w, n, a: f"np.transpose({a[0]}, {n.attributes['axes']!r})",
    "einsum": lambda w, n, a: f"np.einsum({n.attributes['spec']!r}, {a[0]}, {a[1]})",
    "slice": lambda w, n, a: f"{a[0]}[{_slices(w, n, n.shape)}]",
    "unslice": _unslice,
    "concat": lambda w, n, a: f"np.concatenate([{', '.join(a)}], axis={n.attributes['axis']})",
    "index": lambda w, n, a: f"{a[0]}[{', '.join(a[1:])}]",
    "index_add": _index_add,
    "cumsum": _scan,
    "cumprod": _scan,
    "argmax": lambda w, n, a: f"np.argmax({a[0]}, axis={n.attributes['axes'][0]})",
    "argmin": lambda w, n, a: f"np.argmin({a[0]}, axis={n.attributes['axes'][0]})",
    "diagonal": lambda w, n, a: f"np.diagonal({a[0]}, {n.attributes['offset']!r}, "
    f"*{n.attributes['axes']!r})",
}  # fmt: skip
