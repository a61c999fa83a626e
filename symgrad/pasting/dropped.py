"""What of an argument a repair leaves out: a branch, or the argument itself.

In: forward, and backward before and after a repair.  Out: the arguments of which something that
backward computes with is gone.  Such a repair was derived from calls in which the branch is not
taken, or the number does not show.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from symgrad.pasting.patch import Method, attributes, parameters

_OF_SIZES = ("shape", "size", "numel", "ndim", "dim", "dtype", "device", "stride")
_LIKE = ("zeros_like", "ones_like", "empty_like", "new_zeros", "new_ones", "new_empty")


_RESULT = "return"


@dataclass(frozen=True)
class _Behind:
    """What a value is computed from: names, and tests of branches with the names behind them."""

    names: frozenset[str] = frozenset()
    tests: frozenset[tuple[str, frozenset[str]]] = frozenset()

    def __or__(self, other: _Behind) -> _Behind:
        return _Behind(self.names | other.names, self.tests | other.tests)


def left_out(
    forward: Method | None, before: Method, after: Method, names: Iterable[str]
) -> list[str]:
    """The arguments that backward, or a branch of it, computed with, and does no more."""
    if forward is None:
        return []
    saving, old, new = _Flow(forward).every, _Flow(before).result, _Flow(after).result
    kept = _kept(forward, before)
    remain = {test for test, _ in new.tests}
    gone = [behind for test, behind in old.tests if test not in remain]
    found = []
    for name in names:
        touched = {name, *(one for one, behind in saving.items() if name in behind.names)}
        told = {inside for inside, given in kept.items() if given in touched}
        own = {inside for inside, given in kept.items() if given == name}
        if any(behind & told for behind in gone) or (own & old.names and not own & new.names):
            found.append(name)
    return found


class _Flow:
    """What the values in a method are computed from; ``every``: of all that a name is given."""

    def __init__(self, method: Method) -> None:
        self.now: dict[str, _Behind] = {}
        self.every: dict[str, _Behind] = {}
        self._visit(method.tree.body, _Behind())
        self.result = self.every.get(_RESULT, _Behind())

    def _behind(self, tree: ast.AST | None) -> _Behind:
        found = _Behind()
        for name in _read(tree):
            found |= self.now.get(name, _Behind()) | _Behind(frozenset([name]))
        for test in _choices(tree):
            found |= self._asked(test)
        return found

    def _asked(self, test: ast.expr) -> _Behind:
        behind = self._behind(test)
        return behind | _Behind(tests=frozenset([(ast.unparse(test), behind.names)]))

    def _give(self, target: ast.AST, behind: _Behind, *, anew: bool) -> None:
        """A name gets a value, or what it holds is changed."""
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self._give(part, behind, anew=anew)
            return
        for name in _roots(target):
            if not anew or isinstance(target, ast.Subscript):
                behind |= self.now.get(name, _Behind())
            self.now[name] = behind
            self.every[name] = self.every.get(name, _Behind()) | behind

    def _visit(self, body: Sequence[ast.stmt], under: _Behind) -> None:
        for one in body:
            if isinstance(one, (ast.If, ast.While)):
                inside = under | self._asked(one.test)
                self._either(one.body, one.orelse, inside)
            elif isinstance(one, ast.For):
                self._give(one.target, under | self._behind(one.iter), anew=True)
                self._either(one.body, one.orelse, under | self._behind(one.iter))
            elif isinstance(one, (ast.With, ast.Try)):
                self._visit(one.body, under)
            elif isinstance(one, ast.Return):
                self._give(ast.Name(_RESULT), under | self._behind(one.value), anew=True)
            elif isinstance(one, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                for target in one.targets if isinstance(one, ast.Assign) else [one.target]:
                    inner = target.slice if isinstance(target, ast.Subscript) else None
                    behind = under | self._behind(one.value) | self._behind(inner)
                    self._give(target, behind, anew=not isinstance(one, ast.AugAssign))
            elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
                changed = one.value.func
                if isinstance(changed, ast.Attribute):
                    self._give(changed.value, under | self._behind(one.value), anew=False)

    def _either(self, body: Sequence[ast.stmt], other: Sequence[ast.stmt], under: _Behind) -> None:
        """Both branches; the first twice, since it may be that of a loop."""
        start = dict(self.now)
        self._visit(body, under)
        self._visit(body, under)
        first, self.now = self.now, start
        self._visit(other, under)
        for name, behind in first.items():
            self.now[name] = self.now.get(name, _Behind()) | behind


def _choices(tree: ast.AST | None) -> list[ast.expr]:
    """The tests of conditional expressions."""
    every = ast.walk(tree) if tree is not None else ()
    return [one.test for one in every if isinstance(one, ast.IfExp)]


def _read(tree: ast.AST | None) -> set[str]:
    """The names and attributes whose values an expression reads, not those whose shapes."""
    if tree is None:
        return set()
    if isinstance(tree, ast.Name):
        return {tree.id}
    if isinstance(tree, ast.Attribute):
        inner = isinstance(tree.value, ast.Name)
        if tree.attr in (*_OF_SIZES, *_LIKE):
            return set()
        return {ast.unparse(tree)} | _read(tree.value) if inner else _read(tree.value)
    if isinstance(tree, ast.Call) and getattr(tree.func, "attr", "") in _LIKE:
        return set()
    return set().union(*(_read(part) for part in ast.iter_child_nodes(tree)))


def _roots(tree: ast.AST) -> list[str]:
    """The names that are bound, or whose values are changed."""
    if isinstance(tree, (ast.Tuple, ast.List)):
        return [name for part in tree.elts for name in _roots(part)]
    if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name):
        return [ast.unparse(tree)]
    if isinstance(tree, (ast.Subscript, ast.Attribute, ast.Starred)):
        return _roots(tree.value)
    if isinstance(tree, ast.Call):
        return _roots(tree.func)
    return [tree.id] if isinstance(tree, ast.Name) else []


def _kept(forward: Method, backward: Method) -> dict[str, str]:
    """Which name of forward a name of backward stands for: saved tensors, attributes of ctx."""
    own, there = parameters(forward)[0], parameters(backward)[0]
    saved: list[str] = []
    found: dict[str, str] = {}
    for node in ast.walk(forward.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{own}.save_for_backward":
            saved = [ast.unparse(one) for one in node.args]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            for target in map(ast.unparse, node.targets):
                if target.startswith(f"{own}."):
                    found[f"{there}.{target.removeprefix(f'{own}.')}"] = node.value.id
    for name in attributes(forward, own):
        found.setdefault(f"{there}.{name}", f"{own}.{name}")
    for node in ast.walk(backward.tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == f"{there}.saved_tensors":
            names = _roots(node.targets[0])
            if len(names) == len(saved):
                found |= dict(zip(names, saved, strict=True))
    return found
