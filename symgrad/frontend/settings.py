"""Arguments that hold settings: which keys or attributes of them the source reads, and how.

In: a Function.  Out: for each argument of which keys are read (``cfg["eps"]``, ``cfg.get("k", 3)``)
or attributes that no tensor has (``args.eps``), what is known of each: as of an argument of that
name.

Each read is put in the tree as a name of its own; what that is used for is found as it is for
arguments (``symgrad.frontend.evidence``).
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from symgrad.frontend.evidence import (
    AnyFunction,
    Evidence,
    Parameter,
    as_written,
    evidence_in,
    is_stated_tensor,
    parameters,
    syntax_of,
)
from symgrad.frontend.tensor import SymbolicTensor


class Setting(NamedTuple):
    """One key: what it is used for, and what stands for it where it is left out: (), or one.

    ``may_lack``: the source asks whether it is there.  ``inner``: what is known of it where it is
    a dictionary itself.
    """

    evidence: Evidence = ""
    default: tuple[Any, ...] = ()
    may_lack: bool = False
    inner: Settings | None = None


@dataclass
class Settings:
    """The settings of an argument by their keys.  ``by_key``: is it a dictionary?

    ``known`` is empty where they are objects again, which nothing stands for.
    """

    by_key: bool = True
    known: dict[str, Setting] = field(default_factory=dict)

    def holding(self, values: Mapping[str, Any]) -> Any:
        """A dictionary, or an object with attributes."""
        return dict(values) if self.by_key else Attributes(**values)


class Attributes:
    """An object whose attributes are settings."""

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attributes) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """``(eps=0.5, bits=2)``."""
        return f"({', '.join(f'{key}={value!r}' for key, value in vars(self).items())})"


class Read(NamedTuple):
    """A key of an argument that is read.

    ``default``: what it is without it, if that is said; ``asked``: is it asked whether it is there?
    """

    name: str
    key: str
    by_key: bool
    default: tuple[Any, ...] = ()
    asked: bool = False


def settings_of(function: AnyFunction) -> dict[str, Settings]:
    """The arguments that hold settings."""
    function = as_written(function)
    tree, named = syntax_of(function), parameters(function)
    names = [one.name for one in named if not is_stated_tensor(one)]
    reads = _Reads(_handed_on(tree, names))
    renamed = reads.visit(copy.deepcopy(tree))
    found = {name: one for name in names if (one := _read_of(reads, name)) is not None}
    if len(found) == len(named):  # a tensor is among them, with a misspelt attribute
        found = {name: one for name, one in found.items() if one.by_key}
    own = [one for name, its in found.items() for one in _names_of(its, name)]
    pseudo = [Parameter(one, Parameter.POSITIONAL_OR_KEYWORD) for one in own]
    evidence = evidence_in(renamed, [*named, *pseudo], {*own})
    for name, its in found.items():
        if name in reads.nested:
            its.known = {}
        _take_evidence(its, name, evidence)
    return found


def _read_of(reads: _Reads, name: str) -> Settings | None:
    """What is read of an argument, or of one of its settings; None for nothing that tells."""
    own = [one for one in reads.found if one.name == name]
    by_key = any(one.by_key for one in own)
    used = [one for one in own if one.by_key is by_key]
    objects = all(not hasattr(SymbolicTensor, one.key) for one in used)
    if not used or not (by_key or (objects and name not in reads.otherwise)):
        return None
    found = Settings(by_key, {})
    for one in used:
        known = found.known.get(one.key, Setting())
        found.known[one.key] = Setting(
            default=known.default or one.default, may_lack=known.may_lack or one.asked,
            inner=_read_of(reads, _own(name, one.key)),
        )  # fmt: skip
    return found


def _names_of(settings: Settings, name: str) -> Iterator[str]:
    """The names that stand for what is read, in the tree."""
    for key, setting in settings.known.items():
        yield _own(name, key)
        if setting.inner is not None:
            yield from _names_of(setting.inner, _own(name, key))


def _take_evidence(settings: Settings, name: str, evidence: Mapping[str, Evidence]) -> None:
    """Add what each setting is used for."""
    for key, setting in settings.known.items():
        own = _own(name, key)
        settings.known[key] = setting._replace(evidence=evidence.get(own, ""))
        if setting.inner is not None:
            _take_evidence(setting.inner, own, evidence)


def _own(name: str, key: str) -> str:
    """The name that stands for a read in the tree."""
    return re.sub(r"\W", "_", f"{name}__{key}")


def _handed_on(tree: ast.Module, names: Sequence[str]) -> dict[str, str]:
    """What arguments are called: by their names, as attributes of ctx, under other names."""
    found = {name: name for name in names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            value, target = ast.unparse(node.value), node.targets[0]
            if value in found and isinstance(target, (ast.Name, ast.Attribute)):
                found.setdefault(ast.unparse(target), found[value])
    return found


class _Reads(ast.NodeTransformer):
    """Puts names in the place of what is read of settings.

    ``otherwise``: the arguments that are used in another way than to be handed on.  ``nested``:
    those with objects in them.  ``others``: other names of settings.
    """

    def __init__(self, called: Mapping[str, str]) -> None:
        self.called = called
        self.found: list[Read] = []
        self.otherwise: set[str] = set()
        self.nested: set[str] = set()
        self.made: dict[str, str] = {}
        self.others: dict[str, str] = {}

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """``cfg["eps"]``."""
        key = getattr(node.slice, "value", None)
        name = self.called.get(ast.unparse(node.value))
        node.value = self.visit(node.value)
        if type(key) is not str or not isinstance(node.ctx, ast.Load):
            node.slice = self.visit(node.slice)
            if type(key) is str:
                self._hold(node.value)
            return node
        name = name or self._setting(node.value)
        return node if name is None else self._read(Read(name, key, True))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """``act = cfg["act"]``: a setting has another name."""
        self.generic_visit(node)
        setting = self._setting(node.value)
        if setting is not None and len(node.targets) == 1:
            self.others.setdefault(ast.unparse(node.targets[0]), setting)
        return node

    def _setting(self, node: ast.expr) -> str | None:
        """The setting that a name stands for."""
        text = ast.unparse(node)
        return text if text in self.made else self.others.get(text)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``cfg.get("k", 3)``, ``getattr(cfg, "k", 3)``; a method that is called is no setting."""
        function, args = node.func, node.args
        of = None
        by_key = isinstance(function, ast.Attribute)
        if isinstance(function, ast.Attribute) and function.attr == "get":
            of = function.value
        elif isinstance(function, ast.Name) and function.id == "getattr" and args:
            of, args = args[0], args[1:]
        name = None if of is None else self.called.get(ast.unparse(of))
        if name is None and by_key and isinstance(function, ast.Attribute) and of is not None:
            function.value = self.visit(of)
            name = self._setting(function.value)
        key = getattr(args[0], "value", None) if args else None
        if name is not None and type(key) is str:
            default = tuple(_literal(one) for one in args[1:2]) or ((None,) if by_key else ())
            return self._read(Read(name, key, by_key, default))
        if isinstance(function, ast.Attribute) and ast.unparse(function.value) in self.called:
            self.otherwise.add(self.called[ast.unparse(function.value)])
            node.args = [self.visit(one) for one in node.args]
            return node
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """``"k" in cfg``."""
        key = getattr(node.left, "value", None)
        name = self.called.get(ast.unparse(node.comparators[0]))
        if name is not None and type(key) is str and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            self.found.append(Read(name, key, True, asked=True))
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """``args.eps``; ``ctx.args`` is the argument itself."""
        name = self.called.get(ast.unparse(node.value))
        if name is None or not isinstance(node.ctx, ast.Load):
            node.value = self.visit(node.value)
            if not hasattr(str, node.attr):
                self._hold(node.value)
            return node
        return self._read(Read(name, node.attr, False))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """An operand is no object of settings."""
        for one in (node.left, node.right):
            if (name := self.called.get(ast.unparse(one))) is not None:
                self.otherwise.add(name)
        return self.generic_visit(node)

    def _hold(self, node: ast.expr) -> None:
        """What is read has parts of its own."""
        if isinstance(node, ast.Name) and node.id in self.made:
            self.nested.add(self.made[node.id])

    def _read(self, one: Read) -> ast.Name:
        self.found.append(one)
        self.made[_own(one.name, one.key)] = one.name
        return ast.Name(_own(one.name, one.key), ast.Load())


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
