"""Counterexamples as tests for the user's own repository.

In: ``Judged`` records.  Out: the text of a pytest file, which fails now and passes once backward
is fixed.

A test imports the user's Function, applies it at the point of the counterexample, a class of torch
in torch, a function of JAX in JAX, and compares backward with a difference quotient of forward;
where that quotient is not the derivative, because forward bends nearby, with the derivative that
was found.  Where the
Function cannot be applied in that way (its backward is meant for a surrogate, or a value has no
literal), the test contains both formulas as NumPy code.  Every test is run before it is written.
One that does not fail, or that compares with another number than the derivative, is left out, and
``left_out`` names it.
"""

from __future__ import annotations

import ast
import json
import os
import re
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symgrad.errors import SymgradError
from symgrad.frontend.function import surrogate_of, surrogates_of
from symgrad.frontend.plain import by_place, numbers, passed_numbers, with_values
from symgrad.frontend.request import Request, presences
from symgrad.frontend.trace import trace_request
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Node
from symgrad.ir.printer import fresh_name
from symgrad.kernels import op_name
from symgrad.proof.report.records import CounterexampleReport
from symgrad.proof.words.snippet import numpy_name
from symgrad.tools import importing
from symgrad.tools.judging import Judged

_HEAD = '''"""Tests that compare hand-written backwards with difference quotients of forward.

symgrad found a point at which each backward was wrong, and wrote one test for each.  A test fails
until its backward is fixed.  From then on it guards against the same mistake.
"""

'''
_IMPORTS = """import importlib.util
import math
import sys
import types
from pathlib import Path

import jax
import numpy as np
import torch

import symgrad as sg


"""
_LOAD_FILE = '''def load(file):
    """Import a Python file.  Its path is relative to the folder of this file."""
    path = (Path(__file__).parent / file).resolve()
    spec = importlib.util.spec_from_file_location(f"_under_test_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module
'''
_LOAD_ALONE = '''def load_alone(root, name, *packages):
    """Import a module with empty packages around it, which could not be imported."""
    for package in packages:
        empty = sys.modules[package] = types.ModuleType(package)
        folder = (Path(__file__).parent / root).resolve()
        empty.__path__ = [str(folder.joinpath(*package.split(".")))]
    try:
        return load_module(root, name)
    finally:
        for package in packages:
            del sys.modules[package]
'''
_HERE = """# Modules that are found nowhere else are looked for where symgrad was run.
sys.path.append(str((Path(__file__).parent / "{}").resolve()))"""
_LOAD_MODULE = '''def load_module(root, name):
    """Import a module from the folder ``root``, a path relative to the folder of this file."""
    path = str((Path(__file__).parent / root).resolve())
    sys.path.insert(0, path)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(path)
'''
_HELPERS = '''def outputs(call, inputs):
    """The outputs of forward, as a tuple."""
    found = call(**inputs)
    return found if isinstance(found, tuple) else (found,)


def difference_quotient(call, inputs, cotangents, name, at):
    """The derivative of sum(cotangent * output) with respect to one element of an input.

    Central differences with an error of order h**4.
    """

    def objective(step):
        moved = {key: np.array(value) for key, value in inputs.items()}
        moved[name][at] += step
        found = outputs(call, {key: sg.tensor(value) for key, value in moved.items()})
        return sum(float(np.sum(found[i].numpy() * c)) for i, c in cotangents.items())

    h = 1e-3
    near, far = objective(h) - objective(-h), objective(2 * h) - objective(-2 * h)
    return (8 * near - far) / (12 * h)


def hand_written(call, inputs, cotangents, name, at):
    """The same element of the gradient, as backward computes it."""
    tensors = {
        key: sg.tensor(value, requires_grad=value.dtype.kind == "f")
        for key, value in inputs.items()
    }
    found = outputs(call, tensors)
    sum((found[i] * sg.tensor(c)).sum() for i, c in cotangents.items()).backward()
    gradient = tensors[name].grad
    return 0.0 if gradient is None else float(gradient.numpy()[at])


def torch_quotient(call, inputs, cotangents, name, at):
    """The derivative of sum(cotangent * output) with respect to one element of an input, in torch.

    Central differences with an error of order h**4.
    """

    def objective(step):
        moved = {key: np.array(value) for key, value in inputs.items()}
        moved[name][at] += step
        with torch.no_grad():
            found = outputs(call, {key: torch.tensor(value) for key, value in moved.items()})
        return sum(float((found[i] * torch.tensor(c)).sum()) for i, c in cotangents.items())

    h = 1e-3
    near, far = objective(h) - objective(-h), objective(2 * h) - objective(-2 * h)
    return (8 * near - far) / (12 * h)


def torch_backward(call, inputs, cotangents, name, at):
    """The same element of the gradient, as backward computes it in torch."""
    tensors = {
        key: torch.tensor(value, requires_grad=value.dtype.kind == "f")
        for key, value in inputs.items()
    }
    found = outputs(call, tensors)
    sum((found[i] * torch.tensor(c)).sum() for i, c in cotangents.items()).backward()
    gradient = tensors[name].grad
    return 0.0 if gradient is None else float(gradient[at])


def jax_quotient(call, inputs, cotangents, name, at):
    """The derivative of sum(cotangent * output) with respect to one element of an input, in JAX.

    Central differences with an error of order h**4.
    """

    def objective(step):
        moved = {key: np.array(value) for key, value in inputs.items()}
        moved[name][at] += step
        found = jax.tree_util.tree_leaves(call(**moved))
        return sum(float((found[i] * c).sum()) for i, c in cotangents.items())

    h = 1e-3
    with jax.enable_x64(True):
        near, far = objective(h) - objective(-h), objective(2 * h) - objective(-2 * h)
    return (8 * near - far) / (12 * h)


def jax_backward(call, inputs, cotangents, name, at):
    """The same element of the gradient, as bwd computes it in JAX."""

    def objective(value):
        found = jax.tree_util.tree_leaves(call(**{**inputs, name: value}))
        return sum((found[i] * c).sum() for i, c in cotangents.items())

    with jax.enable_x64(True):
        return float(jax.grad(objective)(inputs[name])[at])


def agree(hand, true):
    """Are they equal up to the error of a difference quotient in double precision?"""
    return abs(hand - true) <= 1e-6 * (1 + abs(hand) + abs(true))
'''


@dataclass(frozen=True)
class WrittenTests:
    """``text``: the file, empty if there is no test.  ``left_out``: what has no test, and why."""

    text: str
    tests: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def regression_tests(judged: Sequence[Judged], target: Path) -> WrittenTests:
    """One test for every counterexample, in a file that will be written to ``target``."""
    bodies: list[str] = []
    names: list[str] = []
    left_out: list[str] = []
    for one in judged:
        for name, found in one.report.inputs.items() if one.report is not None else ():
            if found.counterexample is None:
                if str(found.verdict) == "REFUTED":
                    left_out.append(f"{one.name}, gradient of {name}: {found.reason}")
                continue
            title = fresh_name(f"test_{_words(one.name)}_gradient_of_{_words(name)}", names)
            body = _test(one, name, found.counterexample, target, title)
            if body is None:
                why = "the difference is too small for double precision"
                left_out.append(f"{one.name}, gradient of {name}: {why}")
                continue
            names.append(title)
            bodies.append(body)
    return WrittenTests(_file(bodies, target) if bodies else "", tuple(names), tuple(left_out))


def _words(name: str) -> str:
    """A name in small letters: ``rms_norm`` of RMSNorm, and ``giou`` of GIoU, which is one word."""
    words = op_name(name)
    return op_name(name.lower()) if any(len(word) == 1 for word in words.split("_")) else words


def _file(bodies: Sequence[str], target: Path) -> str:
    """The tests, with the imports and helpers that they need."""
    joined = "\n\n\n".join(bodies)
    helpers = "\n\n\n".join(part for part in _parts(_HELPERS) if _is_called(part, joined))
    alone = "load_alone(" in joined
    loads = (
        ("load(" in joined, _LOAD_FILE),
        ("load_module(" in joined or alone, _LOAD_MODULE),
        (alone, _LOAD_ALONE),
    )
    loaders = [text for needed, text in loads if needed]
    if loaders:
        loaders.insert(0, _HERE.format(_relative(Path.cwd(), target)))
    parts = [part.strip() for part in (*loaders, helpers, joined)]
    return "\n\n\n".join([f"{_HEAD}{_imports(''.join(parts))}".strip(), *parts]) + "\n"


def _parts(text: str) -> list[str]:
    """The functions of a text."""
    return [part.strip() for part in re.split(r"\n\n\n(?=def )", text)]


_CALLED_BY = {"outputs": ("hand_written(", "difference_quotient(", "torch_backward(")}


def _is_called(part: str, text: str) -> bool:
    """Do the tests need a function?"""
    name = part[len("def ") : part.index("(")]
    return any(call in text for call in _CALLED_BY.get(name, (f"{name}(",)))


def _imports(text: str) -> str:
    """The import statements whose names occur in the text."""
    used = {
        "importlib.util": "importlib.", "math": "math.", "sys": "sys.", "types": "types.",
        "Path": "Path(", "np": "np.", "sg": "sg.", "torch": "torch.", "jax": "jax.",
    }  # fmt: skip
    lines = [
        line for line in _IMPORTS.strip().splitlines()
        if not line or used[line.split()[-1]] in text
    ]  # fmt: skip
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _test(
    one: Judged, name: str, found: CounterexampleReport, target: Path, title: str
) -> str | None:
    """The test by import, or else by formula: the first that fails; None where neither does."""
    imported = (_by_import(one, name, found, target, title, quotient) for quotient in (True, False))
    for body in (*imported, _by_formula(found, title)):
        if body is not None and _fails(_file([body], target), title, target, found.true):
            return body
    return None


_SAID = re.compile(r"the (?:difference quotient gives|derivative is) (\S+)")


def _fails(text: str, title: str, target: Path, true: float) -> bool:
    """Does the test fail by its own assertion, and compare with the derivative?"""
    scope: dict[str, Any] = {"__file__": str(target.resolve()), "__name__": "written_test"}
    try:
        exec(compile(text, str(target), "exec"), scope)
        scope[title]()
    except AssertionError as error:
        said = _SAID.search(str(error))
        return said is not None and abs(float(said[1]) - true) <= 1e-5 * (1 + abs(true))
    except Exception:
        return False
    return False


# -- with the user's class


def _by_import(
    one: Judged, name: str, found: CounterexampleReport, target: Path, title: str,
    quotient: bool,
) -> str | None:  # fmt: skip
    """The test that applies the user's class; None where it cannot be written.

    ``quotient``: it compares with a difference quotient, and else with the derivative.
    """
    declared = surrogate_of(one.function) is not None or surrogates_of(one.function)
    if declared or "<locals>" in one.name or one.request is None:
        return None
    traced = _traced(one.request, found)
    if traced is None:
        return None
    request, graphs, case = traced
    call = _call(request, found)
    if call is None:
        return None
    guest = request.cls.symgrad_guest
    hand, true = "hand_written", "difference_quotient"
    if guest is not None:
        hand, true = (f"{guest.library.lower()}_{what}" for what in ("backward", "quotient"))
    lines = [f"Function = {_import(one, target)}"]
    lines += [f"inputs = {_dict(((_name(n), n) for n in case.inputs), found)}"]
    given = [(i, node) for i, node in enumerate(case.cotangents) if node is not None]
    lines += [f"cotangents = {_dict(given, found)}"]
    index = re.search(r"\[(.*)\]$", found.element)
    at = f"({index[1]}{'' if ',' in index[1] else ','})" if index else "()"
    lines += [
        "",
        f"def call({', '.join(graphs.input_names)}):",
        f"    return {call}",
        "",
        f'hand = {hand}(call, inputs, cotangents, "{name}", {at})',
        f'true = {true}(call, inputs, cotangents, "{name}", {at})'
        if quotient else f"true = {found.true!r}",
    ]  # fmt: skip
    return _function(
        title, found, lines, "the difference quotient gives" if quotient else "the derivative is"
    )


def _traced(
    request: Request, found: CounterexampleReport
) -> tuple[Request, FunctionGraphs, FunctionCase] | None:
    """The request, trace and case that the counterexample is about.

    The call may leave out some of the optional tensors, or have other inferred shapes.
    """
    others = () if request.guess is None else request.guess.others
    for one in sorted((request, *others), key=lambda one: -len(one.tensors)):
        for call in [each.request for each in presences(one)] or [one]:
            with suppress(SymgradError):
                graphs = trace_request(call)
                case = _case_of(graphs, found)
                if case is not None:
                    return call, graphs, case
    return None


def _case_of(graphs: FunctionGraphs, found: CounterexampleReport) -> FunctionCase | None:
    """The case whose inputs and cotangents the counterexample gives values for."""
    for case in graphs.cases:
        nodes = [*case.inputs, *(node for node in case.cotangents if node is not None)]
        if all(
            _name(node) in found.inputs and np.ndim(found.inputs[_name(node)]) == node.rank
            for node in nodes
        ):
            return case
    return None


def _name(node: Node) -> str:
    return str(node.attributes["name"])


def _call(request: Request, found: CounterexampleReport) -> str | None:
    """The expression that applies the Function; None if a value has no literal."""
    passed, _ = passed_numbers(request)
    chosen = {name: found.inputs[name] for name in numbers(request) if name in found.inputs}
    request = with_values(request, chosen)
    if request.cls.symgrad_guest is not None:
        request = by_place(request)
    words = []
    for argument in request.arguments:
        text = argument.name if argument.is_tensor else _literal(argument.value)
        if argument.name in passed and argument.is_tensor:
            text = f"{argument.name}.item()"
        if text is None:
            return None
        words.append(f"{argument.name}={text}" if argument.keyword else text)
    for leaves in request.cls.symgrad_leaves.values():
        at = words.index(leaves[0])
        words[at : at + len(leaves)] = [f"[{', '.join(leaves)}]"]
    init = {key: _literal(value) for key, value in request.init}
    if None in init.values():
        return None
    if init:
        made = ", ".join(f"{key}={text}" for key, text in init.items())
        return f"Function({made})({', '.join(words)})"
    grouped = getattr(request.cls, "symgrad_layout", None)
    if grouped is not None:  # of JAX, whose arguments may be containers
        inner = [_nested(one) for one in grouped.grouped(words)]
        return None if None in inner else f"Function({', '.join(filter(None, inner))})"
    return f"Function.apply({', '.join(words)})"


def _nested(value: Any) -> str | None:
    """A container of texts as one; None for one of a class, which has no literal."""
    if isinstance(value, str):
        return value
    if type(value) is dict:
        parts = {json.dumps(key): _nested(one) for key, one in value.items()}
        if None in parts.values():
            return None
        return f"{{{', '.join(f'{key}: {text}' for key, text in parts.items())}}}"
    if type(value) not in (tuple, list):
        return None
    texts = [_nested(one) for one in value]
    if None in texts:
        return None
    inner = ", ".join(filter(None, texts))
    return f"({inner},)" if isinstance(value, tuple) else f"[{inner}]"


def _literal(value: Any) -> str | None:
    text = repr(value)
    try:
        same = ast.literal_eval(text) == value
    except (ValueError, SyntaxError):
        return None
    return text if same is True else None


def _import(one: Judged, target: Path) -> str:
    """The expression that imports the class: from a file, a package nearby, or an installed one."""
    module = one.function.__module__
    location = one.location
    file = Path(location.file).resolve() if location else Path()
    if module.startswith(importing.OWN_MODULES):
        return f'load("{_relative(file, target)}").{one.name}'
    root = file.parents[module.count(".") + (file.name == "__init__.py")]
    if "site-packages" in root.parts:
        return f'importlib.import_module("{module}").{one.name}'
    listed = "".join(f', "{package}"' for package in importing.without(module))
    load = "load_alone" if listed else "load_module"
    return f'{load}("{_relative(root, target)}", "{module}"{listed}).{one.name}'


def _relative(path: Path, target: Path) -> str:
    return Path(os.path.relpath(path, target.resolve().parent)).as_posix()


def _dict(pairs: Any, found: CounterexampleReport) -> str:
    inner = ", ".join(
        f"{json.dumps(key)}: {_array(found.inputs[_name(node)], node)}" for key, node in pairs
    )
    return f"{{{inner}}}"


def _array(value: Any, node: Node) -> str:
    text = f"np.array({value!r}, dtype={numpy_name(node.dtype)})"
    return text.replace("nan", "np.nan").replace("inf", "np.inf")


# -- with formulas alone


def _by_formula(found: CounterexampleReport, title: str) -> str | None:
    """The test that contains forward and backward as NumPy code, as they are now."""
    if not found.snippet:
        return None
    tree = ast.parse(found.snippet)
    shown = [
        statement.value.args[1] for statement in tree.body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    ]  # fmt: skip
    kept = [
        line for line in found.snippet.splitlines() if not line.startswith(("import ", "print("))
    ]
    hand, true = map(ast.unparse, shown)
    lines = ["\n".join(kept).strip(), f"hand = float({hand})", f"true = float({true})"]
    return _function(title, found, "\n".join(lines).splitlines())


def _function(
    title: str, found: CounterexampleReport, lines: Sequence[str],
    what: str = "the difference quotient gives",
) -> str:  # fmt: skip
    sizes = ", ".join(f"{name} = {value}" for name, value in found.sizes.items())
    place = f"{sizes}; " if sizes else ""
    said = f"{place}{found.element} was {found.hand_text}, the true value is {found.true_text}."
    checks = [
        f'message = f"backward gives {{hand:.10g}}, {what} {{true:.10g}}"',
        "assert agree(hand, true), message",
    ]
    body = "\n".join([f'"""{said}"""', *lines, *checks])
    return f"def {title}():\n{textwrap.indent(body, '    ')}"
