"""The templates lay out; they do not decide, compute or call."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeGuard

import pytest
from jinja2 import Environment, meta, nodes

from symgrad.codegen.emit.file import FileView, PreludeView, ProductView, VectorView
from symgrad.codegen.emit.kernel import KernelView, SlotView
from symgrad.codegen.emit.reductions import CombineView
from symgrad.codegen.environment import environment
from symgrad.codegen.wrapper import (
    ArrayView,
    BackwardView,
    CallView,
    CaseView,
    FunctionView,
    NumberView,
    PackageView,
    ValueView,
    WrapperView,
)
from symgrad.drawing.render import ArrowView, BoxView, DrawingView, PanelView

TEMPLATES = {
    "kernel.c.j2": "file", "kernel.h.j2": "file", "kernel.cdef.j2": "file",
    "prelude.h.j2": "prelude", "wrapper.py.j2": "op",
    "package.py.j2": "package", "drawing.svg.j2": "drawing",
}  # fmt: skip
FORBIDDEN = (
    nodes.Assign, nodes.AssignBlock, nodes.Filter, nodes.FilterBlock, nodes.Call, nodes.Macro,
    nodes.BinExpr, nodes.UnaryExpr, nodes.Compare, nodes.CondExpr, nodes.Include, nodes.Import,
    nodes.FromImport, nodes.Extends, nodes.Getitem, nodes.Test, nodes.Concat, nodes.Literal,
)  # fmt: skip
VIEWS: dict[str, type[Any]] = {
    "file": FileView, "prelude": PreludeView, "vector": VectorView,
    "combine": CombineView, "kernel": KernelView,
    "slot": SlotView, "product": ProductView, "drawing": DrawingView, "panel": PanelView,
    "arrow": ArrowView, "box": BoxView, "op": WrapperView, "package": PackageView,
    "case": CaseView, "function": FunctionView, "call": CallView, "backward": BackwardView,
    "value": ValueView, "number": NumberView,
    **dict.fromkeys(("input", "output", "extra", "array", "cotangent", "zero"), ArrayView),
}  # fmt: skip


def parsed(name: str) -> nodes.Template:
    loader = environment().loader
    assert loader is not None
    source, _, _ = loader.get_source(environment(), name)
    return environment().parse(source)


def problems(template: nodes.Template) -> list[str]:
    found = [
        f"{type(node).__name__} in line {node.lineno}"
        for node in template.find_all(FORBIDDEN)
        # The text between holes is a literal, too.
        if not isinstance(node, nodes.TemplateData) and not _is_not_last(node) and not _takes(node)
    ]
    for choice in template.find_all(nodes.If):
        test = choice.test.node if _is_not_last(choice.test) else choice.test
        if not isinstance(test, (nodes.Name, nodes.Getattr)):
            found.append(f"a condition in line {choice.lineno}")
    return found


def _is_not_last(test: nodes.Node) -> TypeGuard[nodes.Not]:
    """``not loop.last``: what puts commas between."""
    return isinstance(test, nodes.Not) and isinstance(test.node, nodes.Getattr)


def _takes(node: nodes.Node) -> bool:
    """``for a, b in``: what takes a pair apart."""
    return isinstance(node, nodes.Tuple) and node.ctx == "store"


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_only_lays_out(name: str) -> None:
    assert problems(parsed(name)) == []


@pytest.mark.parametrize(
    "text",
    [
        "{% set x = 1 %}", "{{ file.name|upper }}", "{{ file.name() }}", "{{ file.n + 1 }}",
        "{% if file.n > 1 %}x{% endif %}", "{{ file.n[0] }}",
        "{{ 'x' if file.n }}", "{% include 'x' %}", "{% macro f() %}{% endmacro %}",
    ],
)  # fmt: skip
def test_lint_finds(text: str) -> None:
    assert problems(Environment().parse(text))


@pytest.mark.parametrize("name", TEMPLATES)
def test_holes_are_fields_of_the_view(name: str) -> None:
    template = parsed(name)
    assert meta.find_undeclared_variables(template) == {TEMPLATES[name]}
    for hole in template.find_all(nodes.Getattr):
        assert isinstance(hole.node, nodes.Name)
        if hole.node.name != "loop":
            fields = {field.name for field in dataclasses.fields(VIEWS[hole.node.name])}
            assert hole.attr in fields, f"line {hole.lineno}: {hole.node.name}.{hole.attr}"


def test_every_field_is_used() -> None:
    used = {
        (VIEWS.get(hole.node.name), hole.attr)
        for name in TEMPLATES
        for hole in parsed(name).find_all(nodes.Getattr)
        if isinstance(hole.node, nodes.Name)
    }
    for view in set(VIEWS.values()):
        for field in dataclasses.fields(view):
            assert (view, field.name) in used, f"{view.__name__}.{field.name}"
