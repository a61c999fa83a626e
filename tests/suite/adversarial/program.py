"""Programs that were written to deceive a judge, each with a label.

In: the tables and the classes of this folder's kinds, over symgrad or, with the same text, over
torch.  Out: ``Program`` records, by kind and name.

A label says what is true, not what symgrad answers.  ``right``: backward is the vector-Jacobian
product wherever forward has one.  ``wrong``: it is not, at each point of ``fails``; PROVED is an
answer only where a printed condition excludes every one of these points.
"""

from __future__ import annotations

import linecache
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

RIGHT, WRONG = "right", "wrong"


@dataclass(frozen=True, eq=False)
class At:
    """A point: sizes and plain values, tensors as a number for all elements or as nested lists.

    What is not named is generic.  ``frozen``: inputs that require no gradient there.
    ``absent``: numbers of the outputs whose cotangent is None there; where these are all, backward
    is called by a Function that gives None for each.  ``how``: what the tensors
    are besides their values, of ``HOW``.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()
    absent: tuple[int, ...] = ()
    how: str = ""


# leaves of the graph or computed, of 32 bits, with other strides, the same tensor twice, a
# parameter of a module, with a gradient from before; with another call between forward and
# backward, with a second backward after the first, with five more; after many calls, with many
# forwards between forward and backward; with the input itself as its cotangent, with one tensor as
# cotangent of all outputs; on a GPU
HOW = (
    "",
    "leaf",
    "computed",
    "float32",
    "strided",
    "same",
    "parameter",
    "graded",
    "between",
    "twice",
    "again",
    "often",
    "begun",
    "own",
    "shared",
    "pushed",
    "gpu",
)


def at(*, frozen: str = "", absent: tuple[int, ...] = (), how: str = "", **values: Any) -> At:
    """``at(n=29, x=3.0)``: a point by the names of sizes, tensors and plain arguments."""
    return At(values, tuple(frozen.split()), absent, how)


@dataclass(frozen=True)
class Program:
    """A Function and what is true of it.

    ``specs``, ``static``, ``assume``, ``order``: how it is judged.  ``fails``: where a wrong one
    is wrong.  ``unless``: a regular expression; a report that matches it names the condition in
    words that cannot be computed.  ``hides``: a wrong one is right at generic points.
    ``holds``: special points at which a right one is right.  ``rounded``: right but for the last
    digits of its literals.  ``tiny``: a wrong one differs by less than difference quotients see.
    ``wide``: forward cancels near its points, so that quotients need wide steps.
    ``scale``: of generic inputs; ``inside``: the interval that they are drawn from, instead.
    """

    name: str
    function: Any
    specs: tuple[str | None, ...]
    label: str
    static: Mapping[str, Any] = field(default_factory=dict)
    assume: Mapping[str, str] = field(default_factory=dict)
    order: int = 1
    fails: tuple[At, ...] = ()
    unless: str = ""
    hides: bool = True
    holds: tuple[At, ...] = ()
    rounded: bool = False
    tiny: bool = False
    wide: bool = False
    scale: float = 1.0
    inside: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    kind: str = ""
    source: str = ""


class Programs:
    """The programs of one kind, over ``sg``: symgrad, or torch in its place."""

    def __init__(self, sg: Any, kind: str) -> None:
        self.sg, self.kind = sg, kind.rpartition(".")[2]
        self.found: dict[str, Program] = {}

    def right(self, *specs: str | None, **about: Any) -> Any:
        """Mark a class whose backward is right."""
        return lambda function: self._add(function.__name__, function, specs, RIGHT, (), about)

    def wrong(self, *specs: str | None, fails: Any, **about: Any) -> Any:
        """Mark a class whose backward is wrong at the points ``fails``."""
        points = fails if isinstance(fails, tuple) else (fails,)
        return lambda function: self._add(function.__name__, function, specs, WRONG, points, about)

    def op(self, name: str, forward: str, backward: str, *specs: str, **about: Any) -> None:
        """A program in one line: ``forward`` of its tensors, ``backward`` of these and of g.

        Both are the lines of a body, the last one an expression.  It is wrong where ``fails``
        is given, and right otherwise.
        """
        fails = about.pop("fails", ())
        points = fails if isinstance(fails, tuple) else (fails,)
        text = class_text(name, forward, backward, about.pop("takes", "xyzw"[: len(specs)]))
        function = class_of(name, text, self.sg)
        about["source"] = text
        self._add(name, function, specs, WRONG if points else RIGHT, points, about)

    def _add(
        self, name: str, function: Any, specs: Any, label: str, fails: Any, about: dict[str, Any]
    ) -> Any:
        if name in self.found:
            raise ValueError(f"two programs of {self.kind} are called {name}")
        made = Program(name, function, specs, label, fails=fails, kind=self.kind)
        self.found[name] = replace(made, **about)
        return function


def class_text(name: str, forward: str, backward: str, takes: Sequence[str]) -> str:
    """The text of a Function whose forward saves its tensors."""
    params = ", ".join(takes)
    return (
        f"class {name}(sg.Function):\n"
        f"    @staticmethod\n"
        f"    def forward(ctx, {params}):\n"
        f"        ctx.save_for_backward({params})\n"
        f"{_body(forward)}\n\n"
        f"    @staticmethod\n"
        f"    def backward(ctx, g):\n"
        f"        ({params},) = ctx.saved_tensors\n"
        f"{_body(backward)}\n"
    )


def class_of(name: str, text: str, sg: Any) -> Any:
    """The class of a text over ``sg``; tracebacks show the text."""
    path = f"<adversarial {name}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    space: dict[str, Any] = {"sg": sg, "__name__": __name__}
    exec(compile(text, path, "exec"), space)
    return space[name]


def _body(text: str) -> str:
    lines = [line for part in text.strip().split("\n") for line in part.strip().split("; ")]
    return textwrap.indent("\n".join([*lines[:-1], f"return {lines[-1]}"]), " " * 8)
