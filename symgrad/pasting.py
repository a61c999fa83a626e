"""Repairs tried in the user's own text: pasted into backward, traced again and proved there.

In: a Function and how it was traced.  Out: code that was proved where it is to stand; a unified
diff of the user's file with all of it.
Imports: ``symgrad.frontend``, ``symgrad.proof``, ``symgrad.ir``, ``symgrad.errors``.

What can be named at a return statement is found by running it: backward is compiled with its
return statements handing over their variables, and is traced once more.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

from symgrad.errors import SymgradError
from symgrad.frontend.context import Context, attributes_of, state_of
from symgrad.frontend.function import Function, class_of, raw_method, separate_setup
from symgrad.frontend.sizes import SymInt
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dim import Size
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Node
from symgrad.proof import patch
from symgrad.proof.patch import Edit, Method, Snippet
from symgrad.proof.report import Report
from symgrad.proof.scope import Scope, Spell
from symgrad.proof.verdict import Verdict
from symgrad.proof.verify import VerifyOptions, gradient_is_proved, verify_function

AnyFunction = type[Function] | Function
Trace = Callable[[AnyFunction], FunctionGraphs]
Whole = Callable[[AnyFunction], Report]
_PLAIN = frozenset((0.0, 1.0, 2.0, 3.0, 4.0, 0.5, 0.25))
_NOTE, _LOCALS = "__symgrad_note__", "__symgrad_locals__"


@dataclass(frozen=True)
class Return:
    """What a return statement sees in one case: ``number`` counts the statements."""

    number: int
    scope: Scope
    case: FunctionCase


@dataclass(frozen=True)
class Repair:
    """The code that was proved for one gradient; ``saved``: inputs to be saved for it."""

    spell: Spell
    code: str
    seen: Return
    saved: tuple[str, ...] = ()


def verify_and_mend(
    graphs: FunctionGraphs, options: VerifyOptions, pasting: Pasting, whole: Whole
) -> Report:
    """Judge a traced Function; the report's diff is made when it is asked for.

    ``whole``: judges a changed Function as a whole.
    """
    report = verify_function(graphs, replace(options, paste=pasting))
    wrong = [one.name for one in report.inputs.values() if one.verdict is Verdict.REFUTED]
    if not wrong or not all(name in pasting.repairs for name in wrong):
        return report
    before = {finding.name: finding.verdict for finding in report.protocol}

    def accepts(changed: AnyFunction) -> bool:
        try:
            after = whole(changed)
        except (SymgradError, ArithmeticError, TypeError, ValueError):
            return False
        return all(after.inputs[name].verdict is Verdict.PROVED for name in wrong) and all(
            finding.verdict <= before.get(finding.name, Verdict.PROVED)
            for finding in after.protocol
        )

    return replace(report, mend=lambda: pasting.diff(accepts))


class Pasting:
    """The repairs of one Function.

    ``trace``: traces any Function like the one that was judged; ``options``: how it is judged.
    ``positions``: where in backward's result the gradient of an input is.
    """

    def __init__(
        self, function: AnyFunction, trace: Trace, options: VerifyOptions,
        positions: Mapping[str, int],
    ) -> None:  # fmt: skip
        self.function, self.trace, self.options = function, trace, options
        self.positions = dict(positions)
        self.repairs: dict[str, Repair] = {}
        self._returns: list[Return] | None = None

    @cached_property
    def backward(self) -> Method | None:
        """The source of backward, where it can be read."""
        return patch.read(raw_method(self.function, "backward")[0])

    @cached_property
    def _saver(self) -> str:
        """The method that saves."""
        return "setup_context" if separate_setup(self.function) else "forward"

    @cached_property
    def forward(self) -> Method | None:
        """The source of the method that saves."""
        return patch.read(raw_method(self.function, self._saver)[0])

    # -- what backward can name

    def _seen(self, case: FunctionCase) -> Return | None:
        """What the return statement that was taken in a case can name."""
        if self._returns is None:
            self._returns = self._watched()
        same = [one for one in self._returns if one.case.conditions == case.conditions]
        if not same:
            return None
        (seen, *_) = same
        pairs = list(zip(seen.case.graph.nodes, case.graph.nodes, strict=False))
        if any(one.op != other.op or one.type != other.type for one, other in pairs):
            return None
        own = dict(pairs)
        names = {own[node]: text for node, text in seen.scope.names.items() if node in own}
        unsaved = {
            node: node.attributes["name"] for node in case.inputs if node not in names
        }  # fmt: skip
        return replace(seen, scope=replace(seen.scope, names=names, unsaved=unsaved), case=case)

    def _watched(self) -> list[Return]:
        """Trace once more, with return statements that hand over their variables."""
        notes: list[tuple[int, dict[str, Any]]] = []

        def note(number: int, variables: dict[str, Any], value: Any) -> Any:
            notes.append((number, dict(variables)))
            return value

        watching = self._changed({}, note)
        if watching is None:
            return []
        try:
            cases = self.trace(watching).cases
        except SymgradError:
            return []
        module = self._module()
        found = []
        for case in cases:
            for number, variables in notes:
                if any(node.graph is case.graph for node, _ in _tensors(variables)):
                    found.append(Return(number, _scope(variables, case, module), case))
                    break
        return found

    def _module(self) -> str:
        """What the user calls symgrad."""
        plain = inspect.unwrap(raw_method(self.function, "backward")[0])
        named = [
            name for name, value in plain.__globals__.items()
            if isinstance(value, ModuleType) and value.__name__ == "symgrad"
        ]  # fmt: skip
        return named[0] if named else "sg"

    # -- trying

    def scope(self, case: FunctionCase) -> Scope | None:
        """What backward can name where it returns in a case."""
        seen = self._seen(case) if self.backward is not None else None
        return None if seen is None else seen.scope

    def offer(self, case: FunctionCase, name: str, spell: Spell) -> str | None:
        """The code of a gradient if, pasted where backward returns it, it is PROVED."""
        if self.backward is None:
            return None
        seen = self._seen(case)
        position = self.positions.get(name)
        if seen is None or position is None:
            return None
        for saved in _choices(seen.scope):
            scope = _with_saved(seen.scope, saved)
            code = None if scope is None else spell(scope)
            if scope is None or code is None:
                continue
            names = tuple(scope.names[node] for node in saved)
            methods = self._methods(seen.number, {position: code}, names)
            changed = None if methods is None else self._changed(methods)
            if changed is not None and self._holds(changed, name):
                self.repairs[name] = Repair(spell, code, seen, names)
                return code
            return None
        return None

    def saves(self, name: str) -> str:
        """What has to be saved for the code that was offered, in words."""
        repair = self.repairs.get(name)
        if repair is None or not repair.saved or self.forward is None:
            return ""
        listed = ", ".join(repair.saved)
        return f"save {listed} too, in {self._saver} ({self.forward.file}:{self.forward.line})"

    def _holds(self, function: AnyFunction, name: str) -> bool:
        try:
            return gradient_is_proved(self.trace(function), name, self.options)
        except (SymgradError, ArithmeticError, TypeError, ValueError):
            return False

    def _methods(
        self, number: int, codes: Mapping[int, str], saved: Sequence[str]
    ) -> dict[str, Method] | None:
        """The methods with gradients replaced where they are returned."""
        assert self.backward is not None
        edits: list[Edit] = []
        for position, code in codes.items():
            own = patch.in_return(self.backward, number, position, Snippet.of(code))
            if own is None:
                return None
            edits += own
        return self._edited(edits, saved)

    def _edited(self, edits: list[Edit], saved: Sequence[str]) -> dict[str, Method] | None:
        assert self.backward is not None
        try:
            if not saved:
                return {"backward": self.backward.edited(edits)}
            taken = patch.unpacking(self.backward, saved)
            kept = None if self.forward is None else patch.saving(self.forward, saved)
            if taken is None or kept is None or self.forward is None:
                return None
            return {
                "backward": self.backward.edited([*edits, *taken]),
                self._saver: self.forward.edited(kept),
            }
        except (SyntaxError, UnicodeDecodeError):
            return None

    # -- a changed Function

    def _changed(
        self, methods: Mapping[str, Method], note: Callable[..., Any] | None = None
    ) -> AnyFunction | None:
        """The Function with other methods; with ``note``, its own backward watched."""
        found = class_of(self.function)
        members: dict[str, Any] = {"__module__": found.__module__, "__doc__": found.__doc__}
        if note is not None:
            if self.backward is None:
                return None
            methods = {"backward": self.backward}
        for name, method in methods.items():
            made = _compiled(found, name, method, note)
            if made is None:
                return None
            members[name] = made
        kind: Any = type(found.__name__, (found,), members)
        if isinstance(self.function, type):
            return kind  # type: ignore[no-any-return]
        instance = object.__new__(kind)
        instance.__dict__.update(self.function.__dict__)
        return instance  # type: ignore[no-any-return]

    # -- the diff

    def diff(self, accepts: Callable[[AnyFunction], bool]) -> str:
        """A unified diff of the user's file with every repair, or nothing.

        ``accepts``: is a changed Function good as a whole?  A gradient is mended where it is
        assigned, if it is assigned once; else where it is returned.
        """
        found = class_of(self.function)
        if self.backward is None or not self.repairs or "backward" not in vars(found):
            return ""
        saved = list(dict.fromkeys(n for one in self.repairs.values() for n in one.saved))
        for in_place in (True, False):
            edits = self._all_edits(in_place)
            methods = None if edits is None else self._edited(edits, saved)
            changed = None if methods is None else self._changed(methods)
            if changed is not None and accepts(changed):
                return patch.difference(
                    [(self._own(name), method) for name, method in (methods or {}).items()]
                )
        return ""

    def _own(self, name: str) -> Method:
        method = self.backward if name == "backward" else self.forward
        assert method is not None
        return method

    def _all_edits(self, in_place: bool) -> list[Edit] | None:
        assert self.backward is not None
        found: list[Edit] = []
        for name, repair in self.repairs.items():
            position = self.positions[name]
            number = repair.seen.number
            variable = patch.returned_name(self.backward, number, position) if in_place else None
            own = None if variable is None else self._in_place(repair, variable)
            if own is None:
                snippet = Snippet.of(repair.code)
                own = patch.in_return(self.backward, number, position, snippet)
            if own is None:
                return None
            found += own
        return found

    def _in_place(self, repair: Repair, variable: str) -> list[Edit] | None:
        """The edits where a variable is assigned, in terms of what is known there."""
        assert self.backward is not None
        binding = patch.only_assignment(self.backward, variable)
        if binding is None:
            return None
        known = patch.names_before(self.backward, binding.lineno)
        scope = _with_saved(repair.seen.scope, [
            node for node, text in repair.seen.scope.unsaved.items() if text in repair.saved
        ])  # fmt: skip
        if scope is None:
            return None
        here = replace(
            scope,
            names={n: t for n, t in scope.names.items() if _root(t) in {*known, *repair.saved}},
            sizes={n: t for n, t in scope.sizes.items() if _root(t) in known},
            numbers={n: t for n, t in scope.numbers.items() if _root(t) in known},
        )
        code = repair.spell(here)
        return None if code is None else patch.in_assignment(
            self.backward, binding, Snippet.of(code)
        )  # fmt: skip


def _compiled(
    found: type[Function], name: str, method: Method, note: Callable[..., Any] | None
) -> Any:
    """The method as what a class would hold; None where it cannot be made."""
    wrapped = inspect.getattr_static(found, name)
    plain = inspect.unwrap(raw_method(found, name)[0])
    cells = plain.__closure__ or ()
    try:
        closed = dict(
            zip(plain.__code__.co_freevars, (c.cell_contents for c in cells), strict=True)
        )
        names = (_NOTE, _LOCALS) if note is not None else None
        scope: dict[str, Any] = {}
        exec(patch.factory(method, list(closed), names), plain.__globals__, scope)
        extra = {_NOTE: note, _LOCALS: locals} if note is not None else {}
        made = scope["make"](**closed, **extra)
    except Exception:  # decorators and names of the class's body may be out of reach
        return None
    if isinstance(made, (staticmethod, classmethod)):
        return made
    kind = type(wrapped)
    return kind(made) if kind in (staticmethod, classmethod) else made


# -- what variables hold


def _tensors(variables: Mapping[str, Any]) -> Iterator[tuple[Node, str]]:
    """The tensors in variables, in containers and on ctx, with their texts, plainest first."""
    later: list[tuple[Node, str]] = []
    for name, value in variables.items():
        if isinstance(value, SymbolicTensor):
            node = value.known_node()
            if node is not None:
                yield node, name
        elif isinstance(value, Context):
            later += _inside(attributes_of(value), name + ".{}")
            saved = dict(enumerate(state_of(value).saved))
            later += _inside(saved, name + ".saved_tensors[{}]")
        else:
            later += _elements(value, name)
    yield from later


def _inside(values: Mapping[Any, Any], pattern: str) -> list[tuple[Node, str]]:
    found: list[tuple[Node, str]] = []
    for key, value in values.items():
        if isinstance(value, SymbolicTensor):
            node = value.known_node()
            found += [(node, pattern.format(key))] if node is not None else []
        else:
            found += _elements(value, pattern.format(key))
    return found


def _elements(value: Any, text: str) -> list[tuple[Node, str]]:
    items: Any = ()
    if isinstance(value, (list, tuple)):
        items = enumerate(value)
    elif isinstance(value, dict):
        items = value.items()
    found = []
    for key, item in items:
        node = item.known_node() if isinstance(item, SymbolicTensor) else None
        if node is not None:
            found.append((node, f"{text}[{key!r}]"))
    return found


def _scope(variables: Mapping[str, Any], case: FunctionCase, module: str) -> Scope:
    names: dict[Node, str] = {}
    for node, text in _tensors(variables):
        if node.graph is case.graph and node.op not in ("constant", "size"):
            names.setdefault(node, text)
    numbers: dict[float, str] = {}
    sizes: dict[str, str] = {}
    for text, value in _plain_values(variables):
        if isinstance(value, SymInt) and isinstance(value.dim.atom, Size):
            sizes.setdefault(value.dim.atom.name, text)
        elif type(value) in (int, float) and math.isfinite(value) and abs(value) not in _PLAIN:
            numbers.setdefault(value, text)
    for node, text in names.items():
        for axis, size in enumerate(node.shape):
            if isinstance(size.atom, Size):
                sizes.setdefault(size.atom.name, f"{text}.shape[{axis}]")
    return Scope(names, sizes, numbers, module, frozenset(variables))


def _plain_values(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in variables.items():
        if isinstance(value, Context):
            for key, held in attributes_of(value).items():
                yield f"{name}.{key}", held
        else:
            yield name, value


def _choices(scope: Scope) -> Iterator[list[Node]]:
    """What to save beside what is saved: nothing; one input; all of them."""
    unsaved = list(scope.unsaved)
    yield []
    for node in unsaved[:4]:
        yield [node]
    if len(unsaved) > 1:
        yield unsaved


def _with_saved(scope: Scope, nodes: Sequence[Node]) -> Scope | None:
    """The scope after some inputs have been saved as well; None where their names are taken."""
    names, taken, sizes = dict(scope.names), set(scope.taken), dict(scope.sizes)
    for node in nodes:
        text = scope.unsaved[node]
        if text in taken:
            return None
        names[node] = text
        taken.add(text)
        for axis, size in enumerate(node.shape):
            if isinstance(size.atom, Size):
                sizes.setdefault(size.atom.name, f"{text}.shape[{axis}]")
    return replace(scope, names=names, taken=frozenset(taken), sizes=sizes)


def _root(text: str) -> str:
    """The variable that a text starts from: ``ctx`` of ``ctx.saved_tensors[0]``."""
    for mark in ".[":
        text = text.partition(mark)[0]
    return text
