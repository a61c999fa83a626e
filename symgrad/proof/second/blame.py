"""Which marker makes a second derivative wrong, in words.

In: the markers of a backward, the adjoints that went through them, a point.  Out: sentences.

Nothing here is trusted: a refutation stands without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from symgrad.autodiff.reverse import adjoints, by_rule
from symgrad.errors import SymgradError
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.oracle.numbers import Double
from symgrad.proof.oracle.refute import Counterexample
from symgrad.proof.oracle.values import DomainError, Evaluator
from symgrad.proof.second.history import Marker, Recorded, stripped

_MOST = 3
_MOSTLY = 1e-6


def blamed(
    recorded: Recorded,
    adjoint: Mapping[Node, Node],
    name: str,
    found: Counterexample | None,
    text: Callable[[Node], str],
) -> list[str]:
    """What is said of the markers that make the derivative by ``name`` wrong.

    ``text``: the formula of a value without a name.
    """
    suspects = [
        marker for marker in recorded.markers if name in marker.depends and marker.node in adjoint
    ]
    if len(suspects) > 1 and found is not None:
        shares = [_share(recorded, adjoint, one, name, found) for one in suspects]
        least = _MOSTLY * max(map(abs, shares))
        suspects = [one for one, share in zip(suspects, shares, strict=True) if abs(share) >= least]
    return _sentences(suspects, name, text)


def _sentences(
    suspects: Sequence[Marker], name: str, text: Callable[[Node], str]
) -> list[str]:  # fmt: skip
    """One sentence for all markers of a kind."""
    said = [_rule_said(marker, name) for marker in suspects if marker.rule is not None]
    kinds: dict[str, list[str]] = {}
    for marker in suspects:
        if marker.rule is None:
            kinds.setdefault(_kind(marker.node), []).append(_called(marker.node, text))
    for kind, values in kinds.items():
        distinct = list(dict.fromkeys(values))
        said.append(_TEXTS[kind].format(_listed(distinct), name, *_number(distinct)))
    return list(dict.fromkeys(said))


_LOST = "{2} dependence on {1} is lost in double backward"
_TEXTS = {
    "saved": "{0} {3} computed in forward and saved: " + _LOST + "; save {1} and "
    "recompute {4}, or return {4} as an output",
    "copied": "a copy of {0} is saved instead of {0} itself: " + _LOST,
    "detached": "{0} {3} detached in backward: " + _LOST + "; remove detach",
    "gradient": "the gradient {0} is computed without create_graph: " + _LOST,
    "unrecorded": "{0} {3} computed under no_grad in backward: " + _LOST,
}


def _number(values: Sequence[str]) -> tuple[str, str, str]:
    return ("its", "is", "it") if len(values) == 1 else ("their", "are", "them")


def _listed(values: Sequence[str]) -> str:
    shown = [*values[:_MOST], *([f"{len(values) - _MOST} more"] if len(values) > _MOST else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _share(
    recorded: Recorded,
    adjoint: Mapping[Node, Node],
    marker: Marker,
    name: str,
    found: Counterexample,
) -> float:
    """What the marker does not pass on to the wrong element, though its value depends on it."""
    passed = _passed(recorded, marker, adjoint[marker.node])
    roots = [marker.node, adjoint[marker.node], *(node for pair in passed for node in pair)]
    _, new = stripped(roots)
    try:
        true = _by_input([(new[marker.node], new[adjoint[marker.node]])], name)
        claimed = _by_input([(new[node], new[part]) for node, part in passed], name)
        program = Evaluator([node for node in (true, claimed) if node is not None])
        values = program.run(Double(), found.point.doubles(), found.point.sizes)
    except (SymgradError, DomainError, ValueError, KeyError):
        return 0.0
    parts = [0.0 if node is None else float(values[node][found.at]) for node in (true, claimed)]
    return parts[0] - parts[1] if np.isfinite(parts[0] - parts[1]) else 0.0


def _passed(recorded: Recorded, marker: Marker, cotangent: Node) -> list[tuple[Node, Node]]:
    if marker.rule is None:
        return []
    return by_rule(marker.node, marker.rule, cotangent)


def _by_input(outputs: Sequence[tuple[Node, Node]], name: str) -> Node | None:
    nodes = ancestors([node for node, _ in outputs])
    found = adjoints(outputs, nodes)
    return next((found.get(n) for n in nodes if n.attributes.get("name") == name), None)


def _rule_said(marker: Marker, name: str) -> str:
    rule = marker.rule
    assert rule is not None
    if marker.node.attributes["rule"] == 0:
        return f"the derivative of a saved output by {name} is what backward itself gives"
    return (
        f"the backward of {rule.name}, applied in backward ({rule.location}), is not its "
        f"derivative by {name}"
    )


def _kind(marker: Node) -> str:
    why = str(marker.attributes["why"])
    return "copied" if why == "saved" and marker.args[0].op == "input" else why


def _called(marker: Node, text: Callable[[Node], str]) -> str:
    """The user's name of a value, or its formula, and the line to look at."""
    value, why = marker.args[0], marker.attributes["why"]
    where = value.location if why == "saved" else marker.location
    line = f" ({where})" if where is not None else ""
    return f"`{value.name or marker.name or text(value)}`{line}"
