"""Counterexamples as tests for the user's own repository.

In: ``Judged`` records.  Out: the text of a pytest file, which fails now and passes once backward
is fixed.

A test imports the user's Function, applies it at the point of the counterexample and compares
backward with a difference quotient of forward.  Where the Function cannot be applied in that way
(its backward is meant for a surrogate, or a value has no literal), the test contains both formulas
as NumPy code.  Every test is run before it is written.  One that does not fail is left out, and
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
from symgrad.frontend.function import surrogate_of
from symgrad.frontend.request import Request, presences
from symgrad.frontend.trace import trace_request
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Node
from symgrad.ir.printer import fresh_name
from symgrad.kernels import op_name
from symgrad.proof.report.records import CounterexampleReport
from symgrad.proof.words.snippet import numpy_name
from symgrad.tools.discover import OWN_MODULES
from symgrad.tools.judging import Judged

_HEAD = '''"""Tests that compare hand-written backwards with difference quotients of forward.

symgrad found a point at which each backward was wrong, and wrote one test for each.  A test fails
until its backward is fixed.  From then on it guards against the same mistake.
"""

'''
_IMPORTS = """import importlib.util
import math
import sys
from pathlib import Path

import numpy as np

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
    return WrittenTests(_file(bodies) if bodies else "", tuple(names), tuple(left_out))


def _words(name: str) -> str:
    """A name in small letters: ``rms_norm`` of RMSNorm, and ``giou`` of GIoU, which is one word."""
    words = op_name(name)
    return op_name(name.lower()) if any(len(word) == 1 for word in words.split("_")) else words


def _file(bodies: Sequence[str]) -> str:
    """The tests, with the imports and helpers that they need."""
    joined = "\n\n\n".join(bodies)
    helpers = _HELPERS if "hand_written(" in joined else _HELPERS[_HELPERS.index("def agree") :]
    loaders = [
        text for call, text in (("load(", _LOAD_FILE), ("load_module(", _LOAD_MODULE))
        if call in joined
    ]  # fmt: skip
    parts = [part.strip() for part in (*loaders, helpers, joined)]
    return "\n\n\n".join([f"{_HEAD}{_imports(''.join(parts))}".strip(), *parts]) + "\n"


def _imports(text: str) -> str:
    """The import statements whose names occur in the text."""
    used = {
        "importlib.util": "importlib.", "math": "math.", "sys": "sys.", "Path": "Path(",
        "np": "np.", "sg": "sg.",
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
    for body in (_by_import(one, name, found, target, title), _by_formula(found, title)):
        if body is not None and _fails(_file([body]), title, target):
            return body
    return None


def _fails(text: str, title: str, target: Path) -> bool:
    """Does the test fail by its own assertion?"""
    scope: dict[str, Any] = {"__file__": str(target.resolve()), "__name__": "written_test"}
    try:
        exec(compile(text, str(target), "exec"), scope)
        scope[title]()
    except AssertionError as error:
        return "backward gives" in str(error)
    except Exception:
        return False
    return False


# -- with the user's class


def _by_import(
    one: Judged, name: str, found: CounterexampleReport, target: Path, title: str
) -> str | None:
    """The test that applies the user's class; None where it cannot be written."""
    if surrogate_of(one.function) is not None or "<locals>" in one.name or one.request is None:
        return None
    traced = _traced(one.request, found)
    if traced is None:
        return None
    request, graphs, case = traced
    call = _call(request)
    if call is None:
        return None
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
        f'hand = hand_written(call, inputs, cotangents, "{name}", {at})',
        f'true = difference_quotient(call, inputs, cotangents, "{name}", {at})',
    ]
    return _function(title, found, lines)


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


def _call(request: Request) -> str | None:
    """The expression that applies the Function; None if a value has no literal."""
    guessed = () if request.guess is None else request.assumptions
    numbers = {one.name for one in guessed if one.kind == "constant"}
    words = []
    for argument in request.arguments:
        text = argument.name if argument.is_tensor else _literal(argument.value)
        if argument.name in numbers:
            text = f"{argument.name}.item()"
        if text is None:
            return None
        words.append(f"{argument.name}={text}" if argument.keyword else text)
    init = {key: _literal(value) for key, value in request.init}
    if None in init.values():
        return None
    if init:
        made = ", ".join(f"{key}={text}" for key, text in init.items())
        return f"Function({made})({', '.join(words)})"
    return f"Function.apply({', '.join(words)})"


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
    if module.startswith(OWN_MODULES):
        return f'load("{_relative(file, target)}").{one.name}'
    root = file.parents[module.count(".") + (file.name == "__init__.py")]
    if "site-packages" in root.parts:
        return f'importlib.import_module("{module}").{one.name}'
    return f'load_module("{_relative(root, target)}", "{module}").{one.name}'


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


def _function(title: str, found: CounterexampleReport, lines: Sequence[str]) -> str:
    sizes = ", ".join(f"{name} = {value}" for name, value in found.sizes.items())
    place = f"{sizes}; " if sizes else ""
    said = f"{place}{found.element} was {found.hand_text}, the true value is {found.true_text}."
    checks = [
        'message = f"backward gives {hand:.10g}, the difference quotient gives {true:.10g}"',
        "assert agree(hand, true), message",
    ]
    body = "\n".join([f'"""{said}"""', *lines, *checks])
    return f"def {title}():\n{textwrap.indent(body, '    ')}"
