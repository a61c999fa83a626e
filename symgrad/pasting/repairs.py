"""Repairs written into the user's own text, traced again and proved there.

In: a Function and how it was traced.  Out: code that was proved at its place in backward; a unified
diff of the user's file with all repairs.

To find what a return statement can name, backward is compiled so that its return statements pass on
their local variables, and is traced once more.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice
from types import ModuleType
from typing import Any

from symgrad.budgets import MOST_SLIPS, REPAIR_EXTRAS, SLIP_SECONDS, VERDICT_SECONDS
from symgrad.deadline import TimeUp, check, limited
from symgrad.errors import ShapeError, SymgradError
from symgrad.frontend.evidence import AnyFunction, Kind, counts_from_the_end, parameters
from symgrad.frontend.function import class_of, raw_method, separate_setup
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Node
from symgrad.pasting import patch
from symgrad.pasting.dropped import left_out
from symgrad.pasting.patch import Edit, Method, Snippet, changed
from symgrad.pasting.reach import (
    from_the_end,
    nodes_in,
    root_of,
    scope_of,
    sizes_of,
    with_sizes,
)
from symgrad.pasting.slips import Failure, failure
from symgrad.pasting.tokens import token_edits
from symgrad.proof.repair.suggest import Offer, Scope, Spell
from symgrad.proof.repair.trials import Trials
from symgrad.proof.report.records import Condition, Diff, Finding, InputReport, Repaired, Report
from symgrad.proof.report.verdict import Verdict
from symgrad.proof.verify import VerifyOptions, proved_under, subject_of, verify_function
from symgrad.proof.words.code import CodeWriter
from symgrad.proof.words.jnp_code import JnpWriter

Trace = Callable[[AnyFunction], FunctionGraphs]
_BY_PLACE = (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)
LONG = 64
"""Characters of an expression; a longer one gets a variable of its own."""
Whole = Callable[[AnyFunction], Report]
Accepts = Callable[[AnyFunction], Report | None]


@dataclass(frozen=True)
class Return:
    """What return statement ``number`` of a method can name in one case."""

    method: Method
    number: int
    scope: Scope
    case: FunctionCase


@dataclass(frozen=True)
class Extra:
    """A node that backward can read as ``text`` only after a change elsewhere.

    ``parameter``: the parameter of backward that holds it and is overwritten; empty for an input
    that forward does not save.  ``kept``: the attribute of ctx in which forward keeps a number,
    which ``save_for_backward`` does not take; ``given``: what forward calls it.
    """

    node: Node
    text: str
    parameter: str = ""
    kept: str = ""
    given: str = ""


@dataclass(frozen=True)
class Repair:
    """The code that was proved for one gradient, and the other changes that it needs."""

    spell: Spell
    code: str
    seen: Return
    extras: tuple[Extra, ...] = ()


def verify_and_repair(
    graphs: FunctionGraphs, options: VerifyOptions, pasting: Pasting, whole: Whole
) -> Report:
    """Judge a traced Function.  The report's diff is made on demand.

    ``whole``: judges all gradients and the protocol of a changed Function.
    """
    failed = pasting.failure(graphs)
    if failed is not None and failed.repaired is not None:
        return _with_one_name(pasting, graphs, options, failed, whole)
    explained = {} if failed is None else failed.said
    report = verify_function(graphs, replace(options, paste=pasting, explained=explained))
    wrong = [one.name for one in report.inputs.values() if one.verdict is Verdict.REFUTED]
    codes = {name: pasting.repairs[name].code for name in wrong if name in pasting.repairs}
    pasted = pasting.pasted([*codes]) if codes and not explained else None
    if pasted is not None:
        asks = bool(options.variants or options.undefined or options.untraced or options.order > 1)
        report = replace(report, repaired=Repaired(pasted, codes, asks))
    if not wrong:
        return report
    written = bool(codes) and len(codes) >= len(wrong) - len(explained)
    accepts = _accepts(report, wrong, whole, pasting.function)
    kept = [one.name for one in report.inputs.values() if one.verdict is Verdict.PROVED]

    def repair() -> Diff:
        with suppress(Exception, TimeUp), limited(VERDICT_SECONDS):  # then there is no diff
            return pasting.diff(wrong, kept, accepts, written=written)
        return Diff()

    return replace(report, repair=repair)


def _accepts(report: Report, wrong: Sequence[str], whole: Whole, function: AnyFunction) -> Accepts:
    """The report on a changed Function that is right, and worse nowhere; None for any other.

    What was ``wrong`` is PROVED then; all else is judged as ``function`` is as a whole, and what
    the report proves it proves under nothing more.
    """

    @cache
    def before() -> Report:
        return whole(function)

    def kept(name: str, after: InputReport) -> bool:
        own = report.inputs.get(name)
        return bool(own and _is_kept(own, after)) or _is_kept(before().inputs.get(name), after)

    def held(after: Finding) -> bool:
        known = [one.verdict for one in before().protocol if one.name == after.name]
        return after.verdict <= (known or [Verdict.PROVED])[0]

    def accepts(changed: AnyFunction) -> Report | None:
        try:
            after = whole(changed)
            right = (
                after.inputs.keys() >= {*wrong}
                and all(
                    bool(one) if name in wrong else kept(name, one)
                    for name, one in after.inputs.items()
                )
                and all(bool(finding) or held(finding) for finding in after.protocol)
            )
        except (SymgradError, ArithmeticError, TypeError, ValueError):
            return None
        return after if right else None

    return accepts


def _scope(after: Report, wrong: Sequence[str]) -> tuple[str, ...]:
    """What repaired gradients were proved for, where that is less than all that can be passed."""
    chosen = dict(after.values)

    def shapes(text: str) -> str:
        for name, values in chosen.items():
            for value in values.split(" or "):
                text = re.sub(rf"(, |^){re.escape(f'{name} = {value}')}(?=, |$)", "", text)
        return text

    proved = [text for text, verdict in after.beside.items() if verdict == str(Verdict.PROVED)]
    inferred = dict.fromkeys(shapes(text) for text in (after.guessed, *proved) if text)
    if not (inferred or after.given):
        return ()
    about = " or ".join(inferred) or "the shapes that are stated"
    given = [f"{name} = {value}" for name, value in after.values]
    under = f" if {' and '.join(given)}" if given else ""
    under += "".join(f", for {text}" for text in after.quantified)
    under += f", with {' or '.join(after.presences)}" if after.presences else ""
    found = [f"proved for {about}{under}; other shapes and values were not judged"]
    conditions = [
        one for name in wrong for one in after.inputs[name].conditions if not one.excepted
    ]
    return (*found, *(f"if {one}" for one in dict.fromkeys(conditions)))


def _narrow(after: Report) -> dict[str, str]:
    """The arguments that have one value, or are absent, wherever a report is PROVED."""
    found = {name: text for name, text in after.values if " or " not in text}
    parts = [part for text in after.presences for part in text.split(", ")]
    named = {
        word: [name for part in parts if part.endswith(f" {word}")
               for name in part.removesuffix(f" {word}").split(" and ")]
        for word in ("given", "absent")
    }  # fmt: skip
    return found | {name: "None" for name in named["absent"] if name not in named["given"]}


def _is_kept(before: InputReport | None, after: InputReport) -> bool:
    """Is a gradient judged as well as before, and under nothing more if it was PROVED?"""
    if before is None or after.verdict > before.verdict:
        return False
    known = {condition.text for condition in before.conditions}
    return not before or all(condition.text in known for condition in after.conditions)


def _with_one_name(
    pasting: Pasting, graphs: FunctionGraphs, options: VerifyOptions, failed: Failure, whole: Whole
) -> Report:
    """The report where backward raises, and one other name makes it right as a whole."""
    told = replace(graphs, cases=tuple(map(_without_hint, graphs.cases)))
    report = verify_function(told, replace(options, paste=pasting, explained=failed.said))
    own, new = pasting.backward, failed.repaired
    assert own is not None
    assert new is not None
    wrong = [one.name for one in report.inputs.values() if one.verdict is Verdict.REFUTED]

    def repair() -> Diff:
        with suppress(Exception, TimeUp), limited(VERDICT_SECONDS):  # then there is no diff
            made = changed(pasting.function, {"backward": new})
            accepts = _accepts(report, wrong, whole, pasting.function)
            after = accepts(made) if made is not None else None
            if after is not None:
                return Diff(patch.difference([(own, new)]), _scope(after, wrong))
        return Diff()

    return replace(report, repair=repair)


def _without_hint(case: FunctionCase) -> FunctionCase:
    """The case without what would let backward run, though with other values."""
    problem = case.problem
    if not isinstance(problem, ShapeError) or not problem.equal:
        return case
    return replace(case, problem=ShapeError(problem.what, location=problem.location))


class Pasting:
    """The repairs of one Function.

    ``trace``: traces any Function like the one that was judged; ``options``: how it is judged.
    ``positions``: where in backward's result the gradient of an input is.  ``numbers``: the inputs
    that callers pass as Python numbers; ``runs``: does a Function run with such numbers?
    ``elsewhere``: for what else that is judged the gradient of an input is not PROVED.
    ``rule``: is backward a rule of JAX, ``bwd(residuals, cotangents)``?
    """

    def __init__(
        self, function: AnyFunction, trace: Trace, options: VerifyOptions,
        positions: Mapping[str, int], numbers: frozenset[str] = frozenset(),
        runs: Callable[[AnyFunction], bool] = lambda changed: True,
        elsewhere: Callable[[AnyFunction, str], str] | None = None,
    ) -> None:  # fmt: skip
        self.function, self.trace, self.options = function, trace, options
        self.numbers, self.runs, self.elsewhere = numbers, runs, elsewhere
        self.rule = class_of(function).symgrad_rewritten is not None
        self.writer: type[CodeWriter] = JnpWriter if self.rule else CodeWriter
        self.module, self.functional = self._module()
        self.positions = dict(positions)
        self.repairs: dict[str, Repair] = {}
        self._offered: dict[tuple[str, str], Repair] = {}
        self._returns: dict[Method, list[Return]] = {}

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
        """The source of the method that saves; none where a rule has its own."""
        return None if self.rule else patch.read(raw_method(self.function, self._saver)[0])

    # -- what backward can name

    def _seen(self, case: FunctionCase) -> Return | None:
        """What the return statement that a case reaches can name.

        Where backward fails: what a return statement right after its reads of ctx can name.
        """
        method = self._emptied if case.problem is not None else self.backward
        if method is None:
            return None
        if method not in self._returns:
            self._returns[method] = self._watched(method)
        same = [one for one in self._returns[method] if one.case.conditions == case.conditions]
        if not same:
            return None
        (seen, *_) = same
        pairs = list(zip(seen.case.graph.nodes, case.graph.nodes, strict=False))
        if any(one.op != other.op or one.type != other.type for one, other in pairs):
            return None
        own = dict(pairs)
        names = {own[node]: text for node, text in seen.scope.names.items() if node in own}
        scope = replace(seen.scope, names=names, plain=self._plain(case))
        return replace(seen, scope=scope, case=case)

    @cached_property
    def _emptied(self) -> Method | None:
        if self.backward is None:
            return None
        taken = {one.name for one in parameters(self.function) if one.kind in _BY_PLACE}
        passed = 1 + max(self.positions.values(), default=-1)
        return patch.emptied(self.backward, max(passed, len(taken)))

    def _of_rule(self, method: Method) -> list[Return]:
        """What a rule of one return statement can name: what it is called with, taken apart."""
        watched = class_of(self.function).symgrad_watched
        notes: list[dict[str, Any]] = []
        if watched is None or len(method.returns) != 1:
            return []

        def note(*values: Any) -> None:
            given = dict(zip(patch.parameters(method), values, strict=False))
            notes.append(patch.taken_apart(method, given))

        try:
            cases = self.trace(watched(note)).cases
        except SymgradError:
            return []
        found = []
        for case in cases:
            for variables in notes:
                if any(node.graph is case.graph for node, _ in nodes_in(variables)):
                    scope = scope_of(variables, case, self._plain(case), "size")
                    found.append(Return(method, 0, self._worded(scope), case))
                    break
        return found

    def _worded(self, scope: Scope) -> Scope:
        """The scope with the words of the user's library."""
        return replace(scope, module=self.module, functional=self.functional, writer=self.writer)

    def _watched(self, method: Method) -> list[Return]:
        """Trace a backward whose return statements pass on their local variables."""
        if self.rule:
            return self._of_rule(method)
        notes: list[tuple[int, dict[str, Any]]] = []

        def note(number: int, variables: dict[str, Any], value: Any) -> Any:
            notes.append((number, dict(variables)))
            return value

        watching = changed(self.function, {"backward": method}, note)
        if watching is None:
            return []
        try:
            cases = self.trace(watching).cases
        except SymgradError:
            return []
        found = []
        for case in cases:
            for number, variables in notes:
                if any(node.graph is case.graph for node, _ in nodes_in(variables)):
                    scope = scope_of(variables, case, self._plain(case))
                    found.append(Return(method, number, self._worded(scope), case))
                    break
        return found

    def _plain(self, case: FunctionCase) -> frozenset[Node]:
        """The inputs of a case that are Python numbers."""
        return frozenset(node for node in case.inputs if node.label in self.numbers)

    def _module(self) -> tuple[str, str]:
        """The names by which the user imports symgrad, or torch, and the module of activations."""
        guest = class_of(self.function).symgrad_guest is not None
        plain = inspect.unwrap(raw_method(self.function, "backward")[0])
        known = {
            value.__name__: name for name, value in plain.__globals__.items()
            if isinstance(value, ModuleType)
        }  # fmt: skip
        if not guest:
            own = known.get("symgrad", "sg")
            return own, own
        if self.rule:
            return known.get("jax.numpy", "jnp"), known.get("jax", "")
        own = known.get("torch", "torch")
        return own, known.get("torch.nn.functional", f"{own}.nn.functional")

    # -- trying

    def scope(self, case: FunctionCase) -> Scope | None:
        """What backward can name where it returns in a case."""
        seen = self._seen(case)
        return None if seen is None else seen.scope

    def offer(
        self, case: FunctionCase, name: str, spell: Spell, modes: Mapping[str, str]
    ) -> Offer | None:
        """The code of a gradient if, pasted where backward returns it, it is PROVED.

        Axes are counted as the class counts them; the other way, where more is proved of that.
        """
        seen = self._seen(case)
        position = self.positions.get(name)
        if seen is None or position is None:
            return None
        found: Offer | None = None
        ways = [seen, replace(seen, scope=from_the_end(seen.scope))]
        for one in reversed(ways) if counts_from_the_end(self.function) else ways:
            offer = self._offer(one, name, position, spell, modes)
            if offer is not None and not offer.alone:
                return offer
            found = found or offer
            if self.elsewhere is None:
                break
        return found

    def _offer(
        self, seen: Return, name: str, position: int, spell: Spell, modes: Mapping[str, str]
    ) -> Offer | None:
        """The offer in the words of one scope, with the fewest changes elsewhere."""
        for extras in self._choices(seen):
            scope = _with_extras(seen.scope, extras)
            code = spell(scope)
            if code is None:
                continue
            edits = patch.in_return(seen.method, seen.number, {position: Snippet.of(code)})
            methods = None if edits is None else self._edited(seen.method, edits, extras)
            made = None if methods is None else changed(self.function, methods)
            if methods is None:
                continue
            under = None if made is None else self._proved_under(made, name, modes)
            if made is None or under is None or not self._runs(made):
                return None
            alone = self.elsewhere(made, name) if self.elsewhere is not None else ""
            self._offered[name, code] = Repair(spell, code, seen, tuple(extras))
            return Offer(code, under, bool(alone))
        return None

    def take(self, name: str, offer: Offer) -> list[str]:
        """Keep what was offered as the repair of a gradient; the other changes that it needs."""
        repair = self.repairs[name] = self._offered[name, offer.code]
        if self.forward is None:
            return []
        saved = ", ".join(extra.text for extra in repair.extras if _is_saved(extra))
        where = f"{os.path.basename(self.forward.file)}:{self.forward.line}"
        found = [
            f"backward gives the name {own} to another value: keep it first, {extra.text} = {own}"
            for extra in repair.extras if (own := extra.parameter)
        ] + [
            f"keep {extra.given} too, in {self._saver} ({where}): {extra.kept} = {extra.given}"
            for extra in repair.extras if extra.kept
        ]  # fmt: skip
        return [*found, f"save {saved} too, in {self._saver} ({where})"] if saved else found

    def _proved_under(
        self, function: AnyFunction, name: str, modes: Mapping[str, str]
    ) -> tuple[Condition, ...] | None:
        try:
            return proved_under(self.trace(function), name, self.options, modes)
        except (SymgradError, ArithmeticError, TypeError, ValueError):
            return None

    def _choices(self, seen: Return) -> Iterator[list[Extra]]:
        """The changes elsewhere that are tried: none; each alone; all."""
        yield []
        if self.rule:
            return
        extras = [*_extras(seen), *self._numbers_kept(seen)]
        yield from ([extra] for extra in extras[:REPAIR_EXTRAS])
        if len(extras) > 1:
            yield extras

    def _numbers_kept(self, seen: Return) -> Iterator[Extra]:
        """The numbers that forward can keep on ctx, where backward cannot read them."""
        if self.forward is None:
            return
        (own, *rest), (there, *_) = patch.parameters(self.forward), patch.parameters(seen.method)
        used = patch.attributes(self.forward, own) | patch.attributes(seen.method, there)
        for node in seen.scope.plain - seen.scope.names.keys():
            name = node.label
            word = next(w for w in (name, f"{name}_value", f"{name}_") if w not in used)
            given = name
            if self._saver != "forward":
                given = f"{rest[0]}[{self.positions[name]}]" if name in self.positions else ""
            if given:
                yield Extra(node, f"{there}.{word}", kept=f"{own}.{word}", given=given)

    def _runs(self, function: AnyFunction) -> bool:
        """Does it run where numbers are passed as Python numbers?"""
        return not self.numbers or self.runs(function)

    def _edited(
        self, backward: Method, edits: list[Edit], extras: Sequence[Extra]
    ) -> dict[str, Method] | None:
        """The methods with ``edits`` in backward, and with more saved and kept."""
        saved = [extra.text for extra in extras if _is_saved(extra)]
        numbers = [f"{extra.kept} = {extra.given}" for extra in extras if extra.kept]
        kept = [f"{extra.text} = {extra.parameter}" for extra in extras if extra.parameter]
        first = patch.at_start(backward, kept) if kept else []
        others = self.forward is not None and patch.saves(self.forward)
        taken = patch.unpacking(backward, saved, others=others) if saved else []
        if first is None or taken is None:
            return None
        try:
            found = {"backward": backward.edited([*first, *taken, *edits])}
            if saved or numbers:
                if self.forward is None:
                    return None
                more = patch.saving(self.forward, saved) if saved else []
                held = patch.at_start(self.forward, numbers) if numbers else []
                if more is None or held is None:
                    return None
                found[self._saver] = self.forward.edited([*held, *more])
        except (SyntaxError, UnicodeDecodeError):
            return None
        return found

    # -- where backward raises

    def failure(self, graphs: FunctionGraphs) -> Failure | None:
        """What is known of the line at which backward raises, if it does at one."""
        failing = any(case.problem is not None for case in graphs.cases)
        if not failing or self.backward is None or self.rule:
            return None
        return failure(
            graphs, self.backward, self._traced,
            lambda made, name: proved_under(made, name, self.options),
        )  # fmt: skip

    def _traced(self, method: Method) -> FunctionGraphs | None:
        made = changed(self.function, {"backward": method})
        try:
            graphs = None if made is None else self.trace(made)
        except (SymgradError, ArithmeticError, TypeError, ValueError):
            return None
        raises = graphs is None or any(case.problem is not None for case in graphs.cases)
        return None if raises else graphs

    # -- the diff

    def diff(
        self, wrong: Sequence[str], kept: Sequence[str], accepts: Accepts, *, written: bool
    ) -> Diff:
        """A unified diff of the user's file with a repair of each wrong gradient, or nothing.

        ``kept``: the gradients that are right, and stay so.  ``accepts``: is a changed Function
        right as a whole, and worse nowhere?  Where an edit of one token is right,
        it is that.  Else, if all repairs are ``written``, a gradient is repaired where it is
        assigned, if it is assigned once, or where it is returned.
        """
        if "backward" not in vars(class_of(self.function)):
            return Diff()
        edited, after = self._edited_slip(wrong, kept, accepts)
        refused = ""
        if edited is not None and after is not None:
            refused = self._refusal(edited, after)
            if not refused:
                text = patch.difference([(self._own("backward"), edited)])
                return Diff(text, _scope(after, wrong))
        if not written:
            return Diff(refused=refused)
        for names, in_place in self._ways():
            methods = self._methods(names, in_place=in_place)
            made = None if methods is None else changed(self.function, methods)
            after = accepts(made) if made is not None else None
            if after is None or methods is None:
                continue
            refused = self._refusal(methods["backward"], after)
            if not refused:
                text = patch.difference([(self._own(name), new) for name, new in methods.items()])
                return Diff(text, _scope(after, wrong))
        return Diff(refused=refused)

    def _refusal(self, after: Method, report: Report) -> str:
        """Why a repair is none for all calls: it leaves out what others need; empty for nothing."""
        narrow = _narrow(report)
        if self.backward is None or not narrow:
            return ""
        names = left_out(self.forward, self.backward, after, narrow)
        if not names:
            return ""
        values = " and ".join(f"{name} = {narrow[name]}" for name in names)
        return (
            f"the repair in the report is proved for {values} alone, and leaves out what backward"
            f" does for other values: write it into the branch for {values}"
        )

    def _edited_slip(
        self, wrong: Sequence[str], kept: Sequence[str], accepts: Accepts
    ) -> tuple[Method | None, Report | None]:
        """Backward with the edit of one token that makes it right, and the report on it."""
        found: tuple[Method | None, Report | None] = None, None
        if self.backward is None:
            return found
        try:
            with limited(SLIP_SECONDS):
                known = self._truth(wrong)
                for method in islice(token_edits(self.backward), MOST_SLIPS if known else 0):
                    made = changed(self.function, {"backward": method})
                    if made is None or not self._fits(made, known):
                        continue
                    after = accepts(made) if self._fits(made, self._truth(kept)) else None
                    if after is not None:
                        found = method, after
                        break
        except TimeUp:
            check()  # was it the limit of the verdict?
        return found

    def _truth(self, names: Sequence[str]) -> list[tuple[int, str, Trials]]:
        """The points that some gradients of each case are tried on."""
        graphs = self.trace(self.function)
        return [
            (number, name, trials)
            for number, case in enumerate(graphs.cases)
            for name in names
            if (trials := Trials(subject_of(case, graphs.assumptions), name)).usable
        ]

    def _fits(self, made: AnyFunction, known: Sequence[tuple[int, str, Trials]]) -> bool:
        """Has a changed Function the true gradients at these points?"""
        try:
            cases = self.trace(made).cases
        except (SymgradError, ArithmeticError, TypeError, ValueError):
            return False
        for number, name, trials in known:
            gradients = cases[number].gradients if number < len(cases) else ()
            node = next((one.node for one in gradients if one.input == name), None)
            if node is None or not trials.fits(node):
                return False
        return True

    def _ways(self) -> Iterator[tuple[list[str], bool]]:
        """Which repairs are written where: one may repair what is computed from it as well."""
        every = [*self.repairs]
        if 1 < len(every) <= REPAIR_EXTRAS:
            yield from (([name], True) for name in every)
        yield from ((every, in_place) for in_place in (True, False))

    def pasted(self, names: Sequence[str]) -> AnyFunction | None:
        """The Function with the repairs of some gradients where they are returned."""
        methods = self._methods(names, in_place=False)
        return None if methods is None else changed(self.function, methods)

    def _methods(self, names: Sequence[str], *, in_place: bool) -> dict[str, Method] | None:
        """The methods with some repairs; None where they cannot be written together."""
        repairs = {name: self.repairs[name] for name in names}
        bases = {repair.seen.method for repair in repairs.values()}
        if len(bases) != 1:
            return None
        (base,) = bases
        whole = self.backward
        if in_place and base is self._emptied and whole is not None and len(whole.returns) == 1:
            base = whole
        extras = list(dict.fromkeys(e for one in repairs.values() for e in one.extras))
        edits = self._all_edits(base, repairs, in_place=in_place)
        return None if edits is None else self._edited(base, edits, extras)

    def _own(self, name: str) -> Method:
        method = self.backward if name == "backward" else self.forward
        assert method is not None
        return method

    def _all_edits(
        self, base: Method, repairs: Mapping[str, Repair], *, in_place: bool
    ) -> list[Edit] | None:
        found: list[Edit] = []
        returned: dict[int, dict[int, Snippet]] = {}
        before: list[str] = []
        for name, repair in repairs.items():
            position, number = self.positions[name], repair.seen.number
            variable = patch.returned_name(base, number, position) if in_place else None
            own = None if variable is None else self._in_place(base, repair, variable)
            if own is not None:
                found += own
                continue
            snippet = self._beside(repair, name, before)
            before += snippet.statements
            returned.setdefault(number, {})[position] = snippet
        for number, snippets in returned.items():
            own = patch.in_return(base, number, snippets)
            if own is None:
                return None
            found += own
        return found

    def _beside(self, repair: Repair, name: str, before: Sequence[str]) -> Snippet:
        """The code of a repair after the statements of other repairs."""
        scope = _with_extras(repair.seen.scope, repair.extras)
        new = Snippet.of(repair.code)
        if not set(new.statements) <= set(before):
            bound = {line.partition(" = ")[0] for line in before}
            code = repair.spell(replace(scope, taken=scope.taken | bound))
            new = Snippet.of(code) if code is not None else new
        statements = tuple(line for line in new.statements if line not in before)
        variable = f"grad_{name}"
        if len(new.expression) > LONG and variable not in scope.taken:
            return Snippet((*statements, f"{variable} = {new.expression}"), variable)
        return Snippet(statements, new.expression)

    def _in_place(self, base: Method, repair: Repair, variable: str) -> list[Edit] | None:
        """The edits where a variable is assigned, in names that are bound there."""
        binding = patch.only_assignment(base, variable)
        if binding is None:
            return None
        known = patch.names_before(base, binding.lineno)
        scope = _with_extras(repair.seen.scope, repair.extras)
        known |= {extra.text for extra in repair.extras}
        here: dict[str, Any] = {
            field: {key: t for key, t in getattr(scope, field).items() if root_of(t) in known}
            for field in ("names", "sizes", "dims", "numbers")
        }
        code = repair.spell(replace(scope, **here))
        return None if code is None else patch.in_assignment(base, binding, Snippet.of(code))


def _is_saved(extra: Extra) -> bool:
    """Is it a tensor that forward is to save?"""
    return not extra.parameter and not extra.kept


def _extras(seen: Return) -> list[Extra]:
    """Cotangents whose parameters are overwritten, and inputs that forward does not save."""
    found: list[Extra] = []
    given = patch.parameters(seen.method)[1:]
    taken = {*seen.scope.taken, *seen.case.graph.inputs}
    if len(given) == len(seen.case.cotangents):
        for node, parameter in zip(seen.case.cotangents, given, strict=True):
            if node is not None and node not in seen.scope.names:
                words = (f"{parameter}_in", f"incoming_{parameter}")
                text = next((word for word in words if word not in taken), "")
                found += [Extra(node, text, parameter)] if text else []
    for node in seen.case.inputs:
        known = node in seen.scope.names or node in seen.scope.plain
        if not known and node.attributes["name"] not in seen.scope.taken:
            found.append(Extra(node, node.attributes["name"]))
    return found


def _with_extras(scope: Scope, extras: Sequence[Extra]) -> Scope:
    """The scope in which some extras can be read."""
    own = {extra.node: extra.text for extra in extras}
    wider = replace(scope, names={**scope.names, **own}, taken=scope.taken | {*own.values()})
    return with_sizes(wider, sizes_of(own))
