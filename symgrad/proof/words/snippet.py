"""A counterexample as a report shows it, with a program that needs NumPy alone.

In: the nodes of a case and a point.  Out: ``CounterexampleReport``; Python text that computes the
gradient as written and the difference quotient of the forward, and prints both.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType
from symgrad.ir.function import SizeCondition
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.record import get
from symgrad.proof.oracle.refute import Counterexample, input_values
from symgrad.proof.oracle.sizes import completed
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import CounterexampleReport


def counterexample_report(
    subject: Subject, found: Counterexample, element: str,
    conditions: Sequence[SizeCondition] = (), aliases: Mapping[str, str] | None = None,
    cotangents: Sequence[Node | None] = (),
) -> CounterexampleReport:  # fmt: skip
    """A counterexample as a report shows it.

    ``element``: what is called wrong.  ``conditions``: of the case, by which it has replaced sizes.
    ``cotangents``: one for each output of forward.
    """
    values = input_values(subject, found.point)
    inputs: dict[str, Any] = {}
    for node in subject.sampler.inputs:
        name = node.attributes["name"]
        shape = tuple(size.at(found.point.sizes) for size in node.shape)
        plain = [float(v) if node.dtype.is_float else v for v in values[name]]
        inputs[name] = np.array(plain, dtype=object).reshape(shape).tolist()
    return CounterexampleReport(
        sizes=dict(sorted(completed(found.point.sizes, conditions).items())),
        inputs=inputs,
        element=element,
        hand=found.hand,
        true=found.true,
        hand_text=found.hand_text,
        true_text=found.true_text,
        snippet="" if subject.apart else numpy_snippet(subject, found, aliases) or "",
        aliases=aliases or {},
        cotangents=tuple(
            None if node is None else str(node.attributes["name"]) for node in cotangents
        ),
    )


UNSEEN = 1e-5
"""A relative difference that a quotient in doubles, with its step, may not show."""


def numpy_snippet(
    subject: Subject, found: Counterexample, aliases: Mapping[str, str] | None = None
) -> str | None:  # fmt: skip
    """The program; None where an op has none in NumPy: its record says why.

    ``aliases``: what inputs are called there, if it is not by their names.
    """
    roots = [node for pair in subject.outputs for node in pair]
    gradient = subject.gradients[found.input]
    own = Writer.called(subject, aliases or {})
    writers = Writer(found.point.sizes, own), Writer(found.point.sizes, own)
    try:
        forward = writers[0].function(ancestors(roots), subject, "objective")
        backward = writers[1].function(ancestors([gradient]), subject, "gradient", gradient)
    except NoProgram:
        return None
    names = ", ".join(own[node] for node in subject.sampler.inputs)
    preludes = [f"\n{text}" for text in writers[0].preludes | writers[1].preludes]
    lines = ["import math", "", "import numpy as np", *preludes, "", *forward, "", *backward, ""]
    for node in subject.sampler.inputs:
        lines.append(f"{own[node]} = {_array(subject, found, node)}")
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
    if abs(found.hand - found.true) <= UNSEEN * (1 + abs(found.true)):
        lines += [
            "# The difference is too small for a quotient in doubles.  Both sides, enclosed:",
            f"# as written {found.hand_text}, true {found.true_text}",
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


class NoProgram(Exception):
    """An op that NumPy does not have."""


class Writer:
    """Nodes as NumPy statements at concrete sizes; ``names``: those that have a name already.

    ``preludes``: the functions that the statements call, each once.
    """

    def __init__(self, sizes: Mapping[str, int], names: Mapping[Node, str] | None = None) -> None:
        self.sizes = sizes
        self.names: dict[Node, str] = dict(names or {})
        self.preludes: dict[str, None] = {}

    @staticmethod
    def called(subject: Subject, aliases: Mapping[str, str]) -> dict[Node, str]:
        """What the inputs are called: aliases, unless the program has another use for them."""
        taken = {"math", "np", "objective", "gradient", "step", "ahead", "behind", "true"}
        names = {node: str(node.attributes["name"]) for node in subject.sampler.inputs}
        return {
            node: name if (word := aliases.get(name, name)) in taken or keyword.iskeyword(word)
            else word
            for node, name in names.items()
        }  # fmt: skip

    def function(
        self, nodes: Sequence[Node], subject: Subject, name: str, result: Node | None = None
    ) -> list[str]:
        """A function of the inputs: of one node, or else the objective."""
        parameters = [
            self.names.get(node, node.attributes["name"]) for node in subject.sampler.inputs
        ]
        lines = [f"def {name}({', '.join(parameters)}):"]
        for node in nodes:
            if node.op == "input":
                self.names.setdefault(node, node.attributes["name"])
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
        """One node.  Raises NoProgram."""
        op = get(node.op)
        text = op.numpy_text([self.names[arg] for arg in node.args], self.facts(node))
        if text is None:
            raise NoProgram(node.op)
        if op.prelude:
            self.preludes[op.prelude] = None
        return text

    def facts(self, node: Node) -> dict[str, Any]:
        """What the record of an op says its text with, at these sizes."""
        given = {**node.attributes, "shape": node.shape, "shapes": [a.shape for a in node.args]}
        given = {name: self._at(value) for name, value in given.items()}
        return {**given, "dtype": node.dtype, "kind": numpy_name(node.dtype)}

    def _at(self, value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(self._at, value))
        return value.at(self.sizes) if isinstance(value, Dim) else value


def numpy_name(dtype: DType) -> str:
    """How a program calls a dtype: every float is a double, integers wrap around at their range."""
    if dtype.wraps:
        return f"np.{dtype}"
    return "float" if dtype.is_float else "int" if dtype.is_integer else "bool"
