"""What the source of a Function shows of its arguments: their names, and what they are used for.

In: a Function.  Out: names of its arguments, with what is known of them.  Each class is read by
``ast`` once, as text; nothing is imported or run.

Evidence is taken from annotations and from the source: what forward keeps as an attribute of ctx
is a number, since torch keeps tensors with ``save_for_backward``; what ``if``, ``not`` and ``bool``
ask is a flag, and one with the default None that is used for nothing else no tensor; and
what is compared by ``is`` with True or False is nothing else, or None where that is asked as well;
what stands in brackets is an index; a shape that is unpacked shows the rank; a mask holds truth
values.  What gets None for its gradient, and is neither saved nor asked anything a tensor is asked,
is a number, unless it is added or multiplied and no attribute of ctx; what is compared to make a
mask is a tensor; what is compared with None may be None; what is annotated as a tensor is one; what
is counted to, is an exponent, bounds a slice or is taken by ``int``, is positive; what is passed as
``dim`` or ``axis`` is an axis, what is compared with a text is that text, what is passed as
``reduction`` one of torch's, as ``dtype`` a dtype, as ``ignore_index`` a label, as
``label_smoothing`` a share; what is iterated over has items, and what ``permute`` takes is a
permutation; a bias, and what is given one axis more, is no number.  What a function of the library
gets is what its signature says: a flag, an axis, a count.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from typing import Any

from symgrad.frontend.function import Function, class_of, method_sources, raw_method
from symgrad.frontend.source_text import source_text

AnyFunction = type[Function] | Function
Evidence = str | int | tuple[str, ...]
KindsOf = Callable[[str], Mapping[int | str, str]]
Kind = inspect._ParameterKind
Parameter = inspect.Parameter

_NUMERIC = frozenset(("float", "int", "bool", "complex", "str", "Number", "None"))
"""Annotations of plain values."""

REDUCTIONS = ("mean", "sum", "none")
"""What torch calls reductions: a program need not compare with the last of them."""
MOST_UNPACKED = 8
"""Axes of a tensor whose shape is unpacked."""
_PLACES = 3
"""In an index of so many, and of fewer, an axis may stand for any number of them."""
COUNTED = re.compile(
    r"(^|_)(num|iters?|iterations?|steps?|times|count|bits?|groups?|levels?|heads?|depth)(_|$)"
    r"|(^|_)(in|out|input|output|hidden|batch|block|chunk|vocab)_(size|features|channels)$"
)
"""Names of what is counted to, and of sizes."""
IGNORED = re.compile(r"^ignored?_(index|label)$")
_NUMBERS = re.compile(
    r"eps|tol$|momentum|temp|^tau$|slope|thresh|^alpha$|^beta$|^gamma$|^p$|factor|smooth|ignore"
    r"|(^|_)(pad|blank|null|void)(_|$)|margin"
)
"""Names of numbers; what else is added to a tensor or multiplied with one may be a tensor."""


def parameters(function: AnyFunction) -> list[Parameter]:
    """The parameters of forward that are the user's: without ctx, self and cls.

    Where it begins with giving names to all that ``*args`` holds, it has these.
    """
    plain, hidden = raw_method(function, "forward")
    found = list(inspect.signature(plain).parameters.values())
    if found and found[0].kind is Kind.VAR_POSITIONAL:
        return found
    found = found[hidden:]
    place = next((at for at, one in enumerate(found) if one.kind is Kind.VAR_POSITIONAL), None)
    if place is None:
        return found
    names = _taken_apart(inspect.unwrap(plain), found[place].name)
    if not names or {one.name for one in found}.intersection(names):
        return found
    named = [Parameter(name, Kind.POSITIONAL_OR_KEYWORD) for name in names]
    return [*found[:place], *named, *found[place + 1 :]]


@cache
def _taken_apart(forward: Callable[..., Any], name: str) -> tuple[str, ...]:
    """The names that forward begins by giving what ``*args`` holds: ``x, ctx.eps = args``.

    What it gives the rest of them comes next: ``x, *rest = args`` and ``w, eps = rest``.
    """
    try:
        tree = ast.parse(source_text(forward))
    except (OSError, TypeError, SyntaxError):
        return ()
    found: list[str] = []
    for one in getattr(tree.body[0], "body", []):
        if _is_text(one):
            continue
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        if not isinstance(target, (ast.Tuple, ast.List)) or _text(one.value) != name:
            return ()
        *parts, last = target.elts
        found += map(_own_name, parts)
        if not isinstance(last, ast.Starred):
            found.append(_own_name(last))
            return tuple(found) if all(found) and len({*found}) == len(found) else ()
        name = _text(last.value)
    return ()


def _is_text(statement: ast.stmt) -> bool:
    """Is it a docstring?"""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def annotation(parameter: Parameter) -> str:
    """``int``, ``float`` or ``bool`` where the annotation says so."""
    found = parameter.annotation
    return found if isinstance(found, str) else str(getattr(found, "__name__", ""))


def stated_kinds(parameter: Parameter) -> frozenset[str]:
    """The types that the annotation names: Tensor and None of ``Optional[torch.Tensor]``."""
    found = parameter.annotation
    text = str(found) if hasattr(found, "__args__") else annotation(parameter)
    names = {name.rpartition(".")[2] for name in re.findall(r"[\w.]+", text)}
    none = {"None"} if names & {"None", "NoneType", "Optional"} else set()
    return frozenset(names - {"NoneType", "Optional", "Union", "ForwardRef"} | none)


def is_stated_tensor(parameter: Parameter) -> bool:
    """Does the annotation name a tensor and, beside None, nothing else?"""
    kinds = stated_kinds(parameter) - {"None"}
    return bool(kinds) and all(kind.endswith("Tensor") for kind in kinds)


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def syntax_of(function: AnyFunction) -> ast.Module:
    """Forward, setup_context, backward and jvp as one tree; empty where they cannot be read."""
    return _parsed(method_sources(class_of(function)))


def asked_for_none(function: AnyFunction) -> frozenset[str]:
    """The arguments without a default that may be None: as annotated, or since the code asks it.

    In backward also of what is unpacked from ``saved_tensors``, or kept as an attribute of ctx.
    """
    tree = syntax_of(function)
    open_ones = [one for one in parameters(function) if one.default is Parameter.empty]
    names = {one.name for one in open_ones}
    stated = {one.name for one in open_ones if "None" in stated_kinds(one)}
    saved: list[str] = []
    known = {name: name for name in names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) == "save_for_backward":
            saved = [getattr(one, "id", "") for one in node.args]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            known.setdefault(node.targets[0].attr, getattr(node.value, "id", ""))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Tuple)
            and getattr(node.value, "attr", "") == "saved_tensors"
        ):
            own = [getattr(one, "id", "") for one in node.targets[0].elts]
            known |= dict(zip(own, saved, strict=False))
    asked = {
        known.get(getattr(node.left, "id", getattr(node.left, "attr", "")), "")
        for node in ast.walk(tree) if isinstance(node, ast.Compare)
        and isinstance(node.ops[0], (ast.Is, ast.IsNot))
        and getattr(node.comparators[0], "value", 0) is None
    }  # fmt: skip
    return frozenset(asked & names | stated)


_OF_FUNCTIONS = re.compile(r"\b(Callable|Module)\b")
"""Annotations of what is called."""


def called(function: AnyFunction) -> tuple[str, ...]:
    """The arguments that forward or backward calls, and asks nothing before: they are functions.

    Names that forward binds again are left out, and so is what an ``if`` mentions.  What is
    annotated as a function or a module is one.
    """
    tree = syntax_of(function)
    methods = {getattr(one, "name", ""): one for one in ast.iter_child_nodes(tree)}
    forward = methods.get("forward")
    again = _bound(forward) if forward is not None else []
    names = [one.name for one in parameters(function) if one.name not in again]
    kept = _kept_attributes(tree, names)
    asked: set[str] = set()
    found: set[str] = set()
    for method in methods.values():
        given = dict(zip(names, names, strict=True)) if method is forward else {}
        own = _aliases(method, {**kept, **given})
        for node in ast.walk(method):
            if isinstance(node, (ast.If, ast.IfExp)):
                asked |= {own.get(_text(part), "") for part in ast.walk(node.test)}
            elif isinstance(node, ast.Call):
                found.add(own.get(_text(_without_forward(node.func)), ""))
    found -= asked
    found |= {
        one.name for one in parameters(function)
        if _OF_FUNCTIONS.search(inspect.formatannotation(one.annotation))
    }  # fmt: skip
    return tuple(name for name in names if name in found)


def saved_names(function: AnyFunction) -> set[str]:
    """The names that are given to ``save_for_backward``."""
    return {
        _text(one) for node in ast.walk(syntax_of(function))
        if isinstance(node, ast.Call) and _called(node) == "save_for_backward" for one in node.args
    }  # fmt: skip


_JOINING = ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "block_diag")


def listed(function: AnyFunction) -> tuple[str, ...]:
    """The arguments without a gradient that are lists of tensors: joined, or saved one by one.

    What is an index has rows.  What forward only keeps has items that are gradients where backward
    returns these: ``*(k * g for k in ctx.slopes)``.
    """
    tree = syntax_of(function)
    apart: dict[str, str] = {}
    indices: set[str] = set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            for target in node.targets:
                apart |= {_text(one): node.value.id for one in getattr(target, "elts", ())}
        elif isinstance(node, ast.Subscript):
            indices |= _names(node.slice)
        elif isinstance(node, ast.Call) and _called(node) == "save_for_backward":
            found |= {_text(one.value) for one in node.args if isinstance(one, ast.Starred)}
        elif isinstance(node, ast.Call):
            indices |= _indices(node)
            found |= {_text(one) for one in node.args[:1] if _called(node) in _JOINING}
    found |= {apart.get(name, "") for name in saved_names(function) - indices}
    names = [one.name for one in parameters(function)]
    found |= _returned_items(tree, names) | _with_tensors(tree, names)
    found &= _without_gradient(function, tree, first=True) - indices
    return tuple(one.name for one in parameters(function) if one.name in found)


def _with_tensors(tree: ast.AST, names: Sequence[str]) -> set[str]:
    """The arguments whose items are tensors in a loop.

    It asks what tensors alone are asked, ``m.t()``; or adds or multiplies what is no number by its
    name, ``x * mask``.
    """
    own = {**_kept_attributes(tree, names), **{name: name for name in names}}
    numbers = {name for name in names if _NUMBERS.search(name) or COUNTED.search(name)}
    found: set[str] = set()
    for node in ast.walk(tree):
        loops = [node] if isinstance(node, ast.For) else getattr(node, "generators", [])
        asked = {
            one.value.id for one in ast.walk(node) if loops
            if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)
        }  # fmt: skip
        combined = _combined(node) if loops else set()
        for loop in loops:
            for target, value in _in_turn(loop.target, loop.iter):
                name, of = _text(target), own.get(_text(value), "")
                by_name = of not in numbers and not _NUMBERS.search(name)
                if of and (name in asked or (by_name and name in combined)):
                    found.add(of)
    return found


def _combined(loop: ast.AST) -> set[str]:
    """The names that are an operand beside something that is no number, and nothing else."""
    pairs = [
        (one, other) for node in ast.walk(loop)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.MatMult))
        for one, other in ((node.left, node.right), (node.right, node.left))
    ]  # fmt: skip
    pairs += [
        (node.value, node.target)
        for node in ast.walk(loop)
        if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Mult, ast.MatMult))
    ]
    uses = Counter(
        node.id for node in ast.walk(loop)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )  # fmt: skip
    operands = Counter(
        one.id for one, other in pairs
        if isinstance(one, ast.Name) and not isinstance(other, ast.Constant)
    )  # fmt: skip
    return {name for name, number in operands.items() if number == uses[name]}


def _in_turn(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What loops over what: both of ``for a, b in zip(xs, ys)``."""
    name = _called(value) if isinstance(value, ast.Call) else ""
    parts = getattr(target, "elts", [])
    args = value.args if isinstance(value, ast.Call) else []
    if name == "zip" and len(parts) == len(args):
        yield from zip(parts, args, strict=True)
    elif name == "enumerate" and len(parts) == 2 and args:
        yield from _in_turn(parts[1], args[0])
    elif name in ("reversed", "list", "tuple") and args:
        yield from _in_turn(target, args[0])
    elif not name:
        yield target, value


def _returned_items(tree: ast.AST, names: Sequence[str]) -> set[str]:
    """The arguments that forward only keeps, and of which backward returns items."""
    kept, read, found = _kept_attributes(tree, names), Counter[str](), set[str]()
    for method in ast.iter_child_nodes(tree):
        if getattr(method, "name", "") == "forward":
            read.update(one.id for one in ast.walk(method)
                        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))  # fmt: skip
        elif getattr(method, "name", "") == "backward":
            found |= {
                kept.get(_text(_of_items(one)), "") for returned in ast.walk(method)
                if isinstance(returned, ast.Return) for one in _sequences(returned.value)
            }  # fmt: skip
    return {name for name in found if read[name] == 1}


def _sequences(value: ast.expr | None) -> Iterator[ast.expr]:
    """What makes several of the gradients returned: ``(None, *xs)``, ``(None,) + xs``."""
    if isinstance(value, ast.Tuple):
        yield from (one.value for one in value.elts if isinstance(one, ast.Starred))
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        for one in (value.left, value.right):
            inner = list(_sequences(one))
            whole = isinstance(value.left, (ast.Tuple, ast.BinOp)) and one is value.right
            yield from inner or ([one] if whole else [])


def _of_items(value: ast.expr) -> ast.expr:
    """What the items of a sequence are made of: ``xs`` of ``tuple(k * x for x in xs)``."""
    if isinstance(value, ast.Call) and _called(value) in ("tuple", "list") and value.args:
        value = value.args[0]
    if isinstance(value, (ast.GeneratorExp, ast.ListComp)):
        return value.generators[0].iter
    return value


def _called(node: ast.Call) -> str:
    """The name of a method or function that is called."""
    function = _packet(node.func) if isinstance(node.func, ast.Attribute) else node.func
    found: str = getattr(function, "attr", getattr(function, "id", ""))
    return found


def _packet(function: ast.Attribute) -> ast.Attribute:
    """``aten.convolution`` of its overload ``aten.convolution.default``."""
    inner = function.value
    return inner if isinstance(inner, ast.Attribute) and _is_of_aten(inner) else function


def _is_of_aten(function: ast.Attribute) -> bool:
    return ast.unparse(function.value).rpartition(".")[2] == "aten"


def _without_forward(node: ast.expr) -> ast.expr:
    """The module whose method is called as a function: ``block`` of ``block.forward``."""
    by_name = isinstance(node, ast.Attribute) and node.attr in ("forward", "__call__")
    return node.value if by_name and isinstance(node, ast.Attribute) else node


def is_used(function: AnyFunction, name: str) -> bool:
    """Does the source do more with an argument than keep it on ctx?  True where it is not read."""
    tree = syntax_of(function)
    kept = _kept_attributes(tree, [name])
    uses = 0 if tree.body else 1
    for method in ast.iter_child_nodes(tree):
        names = {name} if getattr(method, "name", "") != "backward" else set()
        for node in ast.walk(method):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                uses += _text(node) in names or _text(node) in kept
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
                uses -= _text(node.value) in names
    return uses > 0


def labels(function: AnyFunction) -> set[str]:
    """The arguments that are compared by ``==`` or ``!=``, or given as what is ignored.

    Such a number may be of any sign: it is no size, but a name for a class.
    """
    tree = syntax_of(function)
    found = {one.name for one in parameters(function) if IGNORED.search(one.name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            found |= _names(node.left).union(*map(_names, node.comparators))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("eq", "ne"):
            found.update(*map(_names, node.args))
        elif isinstance(node, ast.keyword) and node.arg == "ignore_index":
            found |= _names(node.value)
    return found


_OF_TYPES = ("isinstance", "hasattr", "getattr", "type", "is_tensor", "callable")


def asks_types(function: AnyFunction) -> bool:
    """May the code of a class ask what an argument is: by ``isinstance``, ``hasattr``, ``try``?"""
    return any(
        isinstance(node, (ast.Try, ast.Match))
        or (isinstance(node, ast.Call) and _called(node) in _OF_TYPES)
        for node in ast.walk(syntax_of(function))
    )


def counts_axes(function: AnyFunction) -> bool:
    """Does forward count axes from the first, and none from the last?

    Then it is written for as many axes as there have to be, and takes more, or less, by accident.
    """
    tree = syntax_of(function)
    found = [
        axis for method in ast.walk(tree)
        if isinstance(method, ast.FunctionDef) and method.name in ("forward", "fun")
        for node in ast.walk(method) for axis in _axes_in(node)
    ]  # fmt: skip
    return min(found, default=0) >= 0 < max(found, default=0)


def counts_from_the_end(function: AnyFunction) -> bool:
    """Does the code of a class count an axis from the last one, or leave their number open?"""
    return any(axis < 0 for node in ast.walk(syntax_of(function)) for axis in _axes_in(node))


def numbers_the_last(function: AnyFunction) -> bool:
    """Does forward or backward count an axis from the last one by a number: ``sum(-1)``?"""
    return any(axis < 0 for node in ast.walk(syntax_of(function)) for axis in _numbered_axes(node))


def named_axes(function: AnyFunction) -> int:
    """As many axes as forward and backward name by numbers, and in indices: ``sum((0, 2, 3))``.

    So are those that they compare the number of axes with: ``x.dim() == 4``.
    """
    tree = syntax_of(function)
    found = [0]
    for node in ast.walk(tree):
        found += [axis + 1 for axis in _axes_in(node)]
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            found.append(len(node.slice.elts))
        elif isinstance(node, ast.Compare):
            found += _compared_with_axes([node.left, *node.comparators])
    return max(found)


def _compared_with_axes(sides: Sequence[ast.expr]) -> list[int]:
    """The numbers among what is compared, where a number of axes is: ``dim()``, ``ndim``."""
    if not any(_counts_axes_of(side) for side in sides):
        return []
    literals = [one for side in sides for one in ast.walk(side) if isinstance(one, ast.Constant)]
    return [one.value for one in literals if type(one.value) is int]


def _counts_axes_of(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "ndim"
    if not isinstance(node, ast.Call):
        return False
    called = _called(node)
    if called != "len" or len(node.args) != 1:
        return called in ("dim", "ndimension", "ndim")
    (sized,) = node.args
    if isinstance(sized, ast.Call):
        return _called(sized) in ("size", "shape")
    return getattr(sized, "attr", getattr(sized, "id", "")) == "shape"


def _axes_in(node: ast.AST) -> Iterator[int]:
    """The axes that an expression names by numbers; -1 for ``...``, which leaves them open."""
    if getattr(node, "value", 0) is ... or getattr(node, "attr", "") in ("ndim", "mT", "mH", "dim"):
        yield -1
    elif isinstance(node, ast.Call) and _called(node) == "flatten":
        ends = [one for one in node.args if isinstance(one, ast.Constant)]
        if len(ends) + len(node.keywords) < 2:  # to the last axis
            yield -1
    yield from _numbered_axes(node)


def _numbered_axes(node: ast.AST) -> Iterator[int]:
    places: list[ast.expr] = []
    if isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "shape":
        places = [node.slice]
    elif isinstance(node, ast.Call):
        places = [one.value for one in node.keywords if one.arg in ("dim", "axis", "dims")]
        places += node.args if _called(node) in _ALONG_AXES else []
    for place in places:
        for one in place.elts if isinstance(place, (ast.Tuple, ast.List)) else [place]:
            try:
                value = ast.literal_eval(one)
            except ValueError:  # it is no number
                continue
            if type(value) is int:
                yield value


_ALONG_AXES = (
    "size", "sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "prod", "std", "var",
    "softmax", "log_softmax", "logsumexp", "cumsum", "cumprod", "squeeze", "unsqueeze", "flatten",
    "transpose", "swapaxes", "permute", "chunk", "split", "cat", "stack", "diagonal", "gather",
)  # fmt: skip
"""Operations whose plain integers are axes."""


def as_written(function: AnyFunction) -> AnyFunction:
    """The Function with the arguments that its source has, where another one stands for it."""
    return class_of(function).symgrad_written or function


def evidence_of(function: AnyFunction) -> dict[str, Evidence]:
    """``number``, ``flag`` or ``index`` for names that are used as such; a rank where it shows.

    Texts that are asked for are these texts.  A negative number counts the items of a tuple.
    """
    function = as_written(function)
    tree, named = syntax_of(function), parameters(function)
    guest = class_of(function).symgrad_guest
    said = _no_kinds if guest is None else guest.kinds_of
    return evidence_in(tree, named, _without_gradient(function, tree), said)


def _no_kinds(name: str) -> Mapping[int | str, str]:
    return {}


def evidence_in(
    tree: ast.Module, named: Sequence[Parameter], without: Set[str],
    kinds_of: KindsOf = _no_kinds,
) -> dict[str, Evidence]:  # fmt: skip
    """The same of a tree, and of the parameters that its names are.

    ``without``: those for which backward returns None.  ``kinds_of``: what the arguments of a
    function of the library are.
    """
    names = [one.name for one in named]
    seen = _Seen(tree, names, kinds_of)
    used, kept, saved, indices, ranks = seen.used, seen.kept, seen.saved, seen.indices, seen.ranks
    used.tensors |= {name for mask in used.tensors & {*used.masks} for name in used.masks[mask]}
    flags = dict.fromkeys(sorted(seen.asked - saved), "flag")
    used.tensors |= {one.name for one in named if is_stated_tensor(one)}
    used.tensors |= _returned_whole(tree, {*names})
    known = _by_name(tree, names)
    unclear = _unclear(used.operands, named, known)
    saved |= seen.beside & unclear  # ctx.kept = label, probabilities
    numbers: dict[str, Evidence] = dict.fromkeys(sorted(kept - saved), "number")
    none = {*without} - used.tensors - unclear
    plain: dict[str, Evidence] = dict.fromkeys(sorted(none), "number")
    own = used.plain(saved | indices | (unclear - _kept(tree, known)))
    rows = _rows(tree, indices) & {*names}
    indexed: dict[str, Evidence] = dict.fromkeys(sorted(indices), "index")
    indexed |= dict.fromkeys(sorted(rows), "indices")
    with_axes = dict.fromkeys(sorted(used.with_axes), "axes")
    plain_ones = {*plain, *numbers} - used.tensors - saved
    numbers |= {
        name: -count for name, count in used.items.items()
        if 1 < count <= MOST_UNPACKED and name in plain_ones
    }  # fmt: skip
    items = {name: kind for name, kind in _with_items(tree, names).items()
             if name in plain_ones and numbers.get(name, "number") == "number"}  # fmt: skip
    clear = {*ranks, *used.optional, *(name for name, kind in own.items() if kind == "sizes")}
    own |= {name: kind for name, kind in items.items() if name not in clear}
    texts = _texts(tree, names)
    no_flags = saved | used.tensors | used.operands | used.optional
    own |= {
        one.name: "truth" for one in named
        if one.default is None and one.name in (without & flags.keys()) - no_flags
    }  # fmt: skip
    for name in sorted({*names} & seen.truths):
        may_be_none = own.get(name) == "optional"
        own[name] = "truth or none" if may_be_none else own.get(name, "truth")
    return {**with_axes, **plain, **indexed, **numbers, **flags, **own, **ranks, **texts}


def _returned_whole(tree: ast.AST, names: set[str]) -> set[str]:
    """The arguments that forward returns as they are, and nothing beside: outputs are tensors."""
    return {
        node.value.id for method in ast.iter_child_nodes(tree)
        if getattr(method, "name", "") == "forward"
        for node in ast.walk(method) if isinstance(node, ast.Return)
        if isinstance(node.value, ast.Name) and node.value.id in names - {*_bound(method)}
    }  # fmt: skip


def _asked_attributes(test: ast.expr, attributes: Mapping[str, str]) -> set[str]:
    """The arguments that are asked for as attributes of ctx: ``not ctx.detach``."""
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    bare = [one.operand if isinstance(one, ast.UnaryOp) else one for one in parts]
    return {attributes[text] for one in bare if (text := _text(one)) in attributes}


def _is_of_truth(node: ast.Compare) -> bool:
    """``save_memory is False``."""
    return all(
        isinstance(by, (ast.Is, ast.IsNot)) and isinstance(getattr(one, "value", None), bool)
        for by, one in zip(node.ops, node.comparators, strict=True)
    )


def _unclear(
    operands: Iterable[str], named: Iterable[Parameter], known: Mapping[str, str]
) -> set[str]:
    """The operands that are tensors or numbers, for all that names and annotations say."""
    numeric = {one.name for one in named if {"None"} < stated_kinds(one) | {"None"} <= _NUMERIC}
    return {
        name for name in {known.get(one, one) for one in operands} - numeric
        if not (_NUMBERS.search(name) or COUNTED.search(name))
    }  # fmt: skip


def _texts(tree: ast.AST, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The texts that arguments are compared with, or looked up in; those of torch's reductions."""
    kept = _kept_attributes(tree, names)
    found: dict[str, dict[str, None]] = {}
    for method in ast.iter_child_nodes(tree):
        forward = getattr(method, "name", "") != "backward"
        own = _aliases(
            method, {**kept, **(dict(zip(names, names, strict=True)) if forward else {})}
        )
        for node in ast.walk(method):
            asked: list[ast.expr] = []
            if isinstance(node, ast.Compare):
                asked = [node.left, *node.comparators]
            elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
                asked = [node.slice, *(key for key in node.value.keys if key is not None)]
            elif isinstance(node, ast.keyword) and node.arg == "reduction":
                asked = [node.value, *map(ast.Constant, REDUCTIONS)]
            texts = dict.fromkeys(
                one.value for part in asked for one in ast.walk(part)
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )  # fmt: skip
            for name in {own[_text(one)] for one in asked if _text(one) in own} if texts else ():
                found.setdefault(name, {}).update(texts)
    return {
        name: tuple(dict.fromkeys((*(REDUCTIONS if {*REDUCTIONS} & {*texts} else ()), *texts)))
        for name, texts in found.items()
    }  # fmt: skip


_OF_ITEMS = ("enumerate", "len", "zip", "sorted", "reversed", "tuple", "list", "sum", "Size")
"""Functions that take what has items."""


def _with_items(tree: ast.AST, names: Sequence[str]) -> dict[str, str]:
    """The arguments whose items are used, ``items``; those of ``x.permute(p)``, ``permutation``."""
    kept = _kept_attributes(tree, names)
    found: dict[str, str] = {}
    for method in ast.iter_child_nodes(tree):
        forward = getattr(method, "name", "") != "backward"
        own = _aliases(
            method, {**kept, **(dict(zip(names, names, strict=True)) if forward else {})}
        )
        for node in ast.walk(method):
            used: list[ast.expr] = []
            kind = "items"
            if isinstance(node, (ast.For, ast.comprehension)):
                used = [node.iter]
            elif isinstance(node, ast.Starred):
                used = [node.value]
            elif isinstance(node, ast.Call):
                name = _called(node)
                used = node.args if name in _OF_ITEMS else []
                if name == "permute" and node.args:
                    last, kind = node.args[-1], "permutation"
                    used = [last.value if isinstance(last, ast.Starred) else last]
            for one in used:
                name = own.get(_text(one), "")
                if name and found.get(name) != "permutation":
                    found[name] = kind
    return found


class _Seen:
    """What is kept on ctx, asked for, counted and indexed by, in a tree."""

    def __init__(self, tree: ast.Module, arguments: Sequence[str], kinds_of: KindsOf) -> None:
        self.kept: set[str] = set()
        self.beside: set[str] = set()
        self.saved: set[str] = set()
        self.asked: set[str] = set()
        self.indices: set[str] = set()
        self.truths: set[str] = set()
        self.ranks: dict[str, int] = {}
        self.used = _Uses(kinds_of, {*_bound(tree)})
        self.used.bound |= {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
        attributes = _kept_attributes(tree, arguments)
        for node in ast.walk(tree):
            self.used.take(node)
            if isinstance(node, ast.Assign):
                self._keep(node, {*arguments})
            elif isinstance(node, ast.Subscript):
                self.indices |= _names(node.slice)
                self.ranks |= _expanded(node)
            elif isinstance(node, ast.Slice):
                self.used.counts |= _bounds(node)
            elif isinstance(node, (ast.If, ast.IfExp)):
                self.asked |= _names(node.test) | _asked_attributes(node.test, attributes)
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                self.asked |= _names(node) | _asked_attributes(node, attributes)
            elif isinstance(node, ast.Call) and _text(node.func) == "bool" and node.args:
                self.asked |= _names(node.args[0]) | _asked_attributes(node.args[0], attributes)
            elif isinstance(node, ast.Compare) and _is_of_truth(node):
                text = ast.unparse(node.left)
                self.truths.add(attributes.get(text, text))
            elif isinstance(node, ast.Call) and _called(node) == "save_for_backward":
                self.saved.update(*(_names(argument) for argument in node.args))
            elif isinstance(node, ast.Call):
                self.indices |= _indices(node)
                self.ranks |= _under_windows(node) | _under_letters(node)
                self.ranks |= {name: 1 for name, role in _normalized(node).items()
                               if role not in ("input", "grad_out")}  # fmt: skip
        self._take_rows(tree)

    def _take_rows(self, tree: ast.Module) -> None:
        """What has rows that are indices is one: ``for x, y in zip(xs, ys): table[y] += x``."""
        loops = [
            loop for node in ast.walk(tree)
            for loop in ([node] if isinstance(node, ast.For) else getattr(node, "generators", []))
        ]  # fmt: skip
        self.indices |= {
            _text(value) for loop in loops
            for target, value in _in_turn(loop.target, loop.iter) if _text(target) in self.indices
        }  # fmt: skip

    def _keep(self, node: ast.Assign, arguments: set[str]) -> None:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Attribute):
            self.kept |= _names(value)
            self.beside |= _names(value) if not _names(value) <= arguments else set()
        elif isinstance(target, ast.Tuple):
            if isinstance(value, ast.Name):  # *args
                self.kept |= {one.attr for one in target.elts if isinstance(one, ast.Attribute)}
            self.ranks |= _unpacked(target, value)


class _Uses:
    """What names are used for, as far as one node of a syntax tree shows it."""

    def __init__(self, kinds_of: KindsOf, bound: set[str]) -> None:
        self.kinds_of, self.bound = kinds_of, bound
        self.tensors: set[str] = set()
        self.axes: set[str] = set()
        self.counts: set[str] = set()
        self.optional: set[str] = set()
        self.operands: set[str] = set()
        self.with_axes: set[str] = set()
        self.masks: dict[str, set[str]] = {}
        self.labels: set[str] = set()
        self.shares: set[str] = set()
        self.items: dict[str, int] = {}
        self.kinds: dict[str, str] = {}

    def plain(self, others: set[str]) -> dict[str, Evidence]:
        """What plain arguments are used for; ``others``: what may not be None."""
        return {
            **dict.fromkeys(sorted(self.axes - self.tensors), "axis"),
            **dict.fromkeys(sorted(self.counts - self.tensors), "count"),
            **dict.fromkeys(sorted(self.optional - self.tensors - others), "optional"),
            **dict.fromkeys(sorted(self.labels - self.tensors), "label"),
            **dict.fromkeys(sorted(self.shares - self.tensors), "share"),
            **self.kinds,
            **{name: "axes of" for name, kind in self.kinds.items()
               if kind == "items" and name in self.axes},
        }  # fmt: skip

    def take(self, node: ast.AST) -> None:
        """One node."""
        name, count = _items(node)
        self.items[name] = max(self.items.get(name, 0), count)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            self.tensors.add(node.value.id)
            if node.attr == "unsqueeze":
                self.with_axes.add(node.value.id)
        elif isinstance(node, ast.Attribute):
            self.tensors |= _compared(node.value)
        elif isinstance(node, ast.Subscript):
            self.tensors |= _compared(node.slice)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            self.tensors |= _compared(node.operand)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if found := _compared(node.value):
                self.masks[node.targets[0].id] = found
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            other = node.comparators[0]
            if isinstance(other, ast.Constant) and other.value is None:
                self.optional |= _names(node.left)
        elif isinstance(node, (ast.BinOp, ast.AugAssign)):
            self._operator(node)
        elif isinstance(node, ast.Call):
            self._call(node)

    def _operator(self, node: ast.BinOp | ast.AugAssign) -> None:
        if isinstance(node, ast.AugAssign):
            self.operands |= _names(node.value)
        else:
            exponent = isinstance(node.op, ast.Pow) and isinstance(node.left, ast.Constant)
            self.operands |= _names(node.left) | _names(node.right)
            self.counts |= _terms([node.right]) if exponent else set()

    def _call(self, node: ast.Call) -> None:
        name = _called(node)
        if name in ("range", "int") or name in _OF_SIZES:
            self.counts |= _terms(node.args, shares=name != "int")
        elif name in ("save_for_backward", "save_for_forward", "mark_dirty") or name in _OF_TENSORS:
            self.tensors.update(*(_names(one) for one in node.args))
        elif node.args and name not in _KEEPING:
            self.tensors |= _compared(node.args[0])
            module = getattr(getattr(node.func, "value", None), "id", "")
            self.tensors |= _names(node.args[0]) if module in _TENSOR_MODULES else set()
        if name.rstrip("_") in _ARITHMETIC:
            self.operands.update(*map(_names, node.args))
        self._by_position(name, node)
        self._by_keyword(node)
        self._by_signature(name, node)
        for one in node.args if name in ("to", "type") else ():
            for kind in ("dtype", "device"):
                self.kinds |= {word: kind for word in _names(one) if kind in word.lower()}

    def _by_keyword(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg in ("dim", "axis", "dims"):
                self.axes |= _names(keyword.value)
            elif keyword.arg in _TRUTHS:
                self.kinds |= dict.fromkeys(_names(keyword.value), "switch")
            elif keyword.arg == "ignore_index":
                self.labels |= _names(keyword.value)
            elif keyword.arg == "label_smoothing":
                self.shares |= _names(keyword.value)
            elif keyword.arg in ("dtype", "device"):
                self.kinds |= dict.fromkeys(_names(keyword.value), keyword.arg)
            elif keyword.arg == "normalized_shape" and (own := _own_name(keyword.value)):
                self.kinds[own] = "sizes"

    def _by_signature(self, name: str, node: ast.Call) -> None:
        """What the library says of the arguments of its own functions, and of its methods."""
        if not isinstance(node.func, ast.Attribute):
            return
        root = base = _packet(node.func).value
        while isinstance(root, ast.Attribute):
            root = root.value
        module = isinstance(root, ast.Name) and root.id not in self.bound
        of, _, inner = ast.unparse(base).rpartition(".")
        if module and inner in _PARTS and of.rpartition(".")[2] in ("", *_TENSOR_MODULES):
            name = f"{inner}.{name}"
        elif module and inner not in _TENSOR_MODULES:
            return  # np.sum
        given: list[tuple[int | str, ast.expr]] = [*enumerate(node.args, 0 if module else 1)]
        given += [(one.arg, one.value) for one in node.keywords if one.arg]
        known = self.kinds_of(name)
        for key, value in given if known else ():
            kind, names = known.get(key, ""), _names(value)
            if kind.endswith("windows"):
                self.kinds |= dict.fromkeys(names | {_own_name(value)}, kind)
            elif kind.endswith(("switch", "window")):
                self.kinds = {**dict.fromkeys(names, kind), **self.kinds}
            elif kind:
                (self.axes if kind == "axis" else self.counts).update(names)

    def _by_position(self, name: str, node: ast.Call) -> None:
        """What follows the tensor: axes of ``x.sum(dims)``, sizes of ``x.view(shape)``."""
        of_module = isinstance(node.func, ast.Name) or (
            isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func.value).rpartition(".")[2] in _TENSOR_MODULES
        )
        behind = [one.value if isinstance(one, ast.Starred) else one for one in node.args]
        behind = behind[1:] if of_module else behind
        if name in _SPARSE and len(node.args) > 2:
            named = zip(map(_own_name, node.args), ("indices", "", "sizes"), strict=False)
            self.kinds |= {own: kind for own, kind in named if own and kind}
        own = _own_name(behind[0]) if behind else ""
        if not own:
            return
        if name in _OVER_AXES:
            self.axes.add(own)
        elif name in ("flip", "roll"):
            self.kinds[_own_name(behind[-1])] = "items"
        elif name == "pad":
            self.items[own] = max(self.items.get(own, 0), 2)
        elif name in _NORMS or (name in _INTO_SHAPES and _SHAPES.search(own)):
            self.kinds[own] = "sizes"


def _compared(node: ast.expr) -> set[str]:
    """The names that a comparison has on its sides, but for those of numbers."""
    if not isinstance(node, ast.Compare) or isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return set()
    names = _names(node.left).union(*map(_names, node.comparators))
    return {name for name in names if not _NUMBERS.search(name)}


_NORMS = ("layer_norm", "native_layer_norm", "rms_norm")
"""What takes the sizes of the last axes behind the tensor."""
_SPARSE = ("sparse_coo_tensor", "FloatTensor", "DoubleTensor")
"""What makes sparse tensors of indices, values and sizes."""
_TENSOR_MODULES = ("torch", "F", "sg", "nn", "functional", "th", "aten")
_PARTS = ("linalg", "fft", "special")
"""Modules in these, whose functions are others than those of the same name."""
_KEEPING = ("Size", "device", "tensor", "full", "arange", "zeros", "ones", "empty", "finfo")
"""Functions of these modules that take numbers first."""
_ARITHMETIC = ("add", "sub", "mul", "div", "subtract", "multiply", "divide", "true_divide")
"""Functions that are operators by name."""
_OF_SIZES = (
    "view", "reshape", "new_zeros", "new_ones", "new_empty", "zeros", "ones", "empty", "chunk",
    "pixel_shuffle",
)  # fmt: skip
"""Functions that take sizes: none of them is negative, or 0, as a rule."""
_TRUTHS = (
    "keepdim", "keepdims", "requires_grad", "inplace", "training", "unbiased", "largest", "sorted",
    "descending", "non_blocking", "align_corners", "ceil_mode", "count_include_pad", "upper",
    "left", "stable", "recompute_scale_factor", "right", "log_target", "as_tuple",
)  # fmt: skip
"""Keywords of torch's that are True or False."""
_OVER_AXES = ("sum", "mean", "amax", "amin", "prod", "std", "var", "logsumexp", "softmax",
              "log_softmax", "argmax", "argmin", "norm", "cumsum", "squeeze", "unsqueeze",
              "nansum", "all", "any")  # fmt: skip
"""Operations whose first argument after the tensor is an axis, or several."""
_INTO_SHAPES = (
    "view", "reshape", "expand", "broadcast_to", "sum_to_size", "zeros", "ones", "empty", "full",
    "new_zeros", "new_ones", "new_empty", "new_full", "layer_norm", "rms_norm", "unflatten",
)  # fmt: skip
"""Operations that take a shape as one argument."""
_SHAPES = re.compile(r"(^|_)(shapes?|sizes)$")
"""Names of what is a shape, where an operation takes one or the first of its sizes."""
_OF_TENSORS = (
    "maximum", "minimum", "fmax", "fmin", "matmul", "mm", "bmm", "mv", "dot", "outer", "einsum",
    "linear", "bilinear", "cat", "stack", "logaddexp", "atan2", "hypot", "baddbmm", "addmm",
)  # fmt: skip
"""Functions that take nothing but tensors."""
_AT_PLACES = (
    "gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce",
    "scatter_reduce_", "index_select", "index_add", "index_add_", "index_copy", "index_copy_",
    "index_fill", "index_fill_", "index_reduce", "index_reduce_",
)  # fmt: skip
"""Operations that take an index behind an axis."""


def _indices(call: ast.Call) -> set[str]:
    """The names that a call takes for an index: behind an axis, or by name."""
    if getattr(call.func, "attr", "") not in _AT_PLACES or not isinstance(call.func, ast.Attribute):
        return set()
    place = 2 if _text(call.func.value) in _TENSOR_MODULES else 1
    found = [*call.args[place : place + 1]]
    found += [one.value for one in call.keywords if one.arg == "index"]
    return set().union(*(_names(one) for one in found))


def _under_windows(call: ast.Call) -> dict[str, int]:
    """``conv2d(x, w, b)`` says that x and w have four axes, and b one; a pooling says it of x.

    ``grid_sample(x, grid)`` says it of both, ``F.unfold(x, 3)`` of x.  ``F.linear(x, w, b)`` says
    that w has two and b one.
    """
    name = _called(call)
    match = re.fullmatch(r"(?:conv(?:_transpose)?|((?:max|avg)_pool))([123])d", name)
    if name == "convolution":  # of any number of axes: of images first
        ranks = {"input": 4, "weight": 4, "bias": 1}
    elif match:
        axes = int(match[2]) + 2
        ranks = {"input": axes} if match[1] else {"input": axes, "weight": axes, "bias": 1}
    elif name == "grid_sample":
        ranks = {"input": 4, "grid": 4}
    elif name == "linear" and _is_of_layers(call):
        shown = zip(("input", "weight", "bias"), call.args, strict=False)
        named = [*shown, *((one.arg, one.value) for one in call.keywords)]
        axes_of = {"weight": 2, "bias": 1}
        return {
            part.id: axes_of[what] for what, part in named
            if what in axes_of and isinstance(part, ast.Name)
        }  # fmt: skip
    elif name == "unfold" and _is_of_layers(call):  # not the method of this name
        ranks = {"input": 4}
    else:
        return {}
    given = [*zip(ranks, call.args, strict=False), *((one.arg, one.value) for one in call.keywords)]
    return {
        own: ranks[what] for what, part in given if what in ranks for own in sorted(_names(part))
    }  # fmt: skip


def statistics(function: AnyFunction) -> frozenset[str]:
    """The running statistics for which backward returns None, as torch's own normalizations do.

    They are what is called so, and what a normalization takes as such.
    """
    function = as_written(function)
    tree = syntax_of(function)
    roles = {one.name: one.name for one in parameters(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            roles |= _normalized(node)
    return frozenset(
        name for name in _without_gradient(function, tree)
        if roles.get(name) in ("running_mean", "running_var")
    )  # fmt: skip


def _is_of_layers(call: ast.Call) -> bool:
    """Is it a function of ``torch.nn.functional``?"""
    return ast.unparse(call.func).split(".")[-2:-1] in (["F"], ["functional"])


def _normalized(call: ast.Call) -> dict[str, str]:
    """What a normalization takes names for: ``weight``, ``running_mean``."""
    roles = _NORMALIZED.get(_called(call), ())
    if roles and _is_of_layers(call):
        roles = _NORMALIZED_BY_LAYERS
    given = [*zip(roles, call.args, strict=False)]
    given += [(one.arg, one.value) for one in call.keywords if one.arg in roles]
    return {own: role for role, part in given for own in sorted(_names(part))}


_NORMALIZED_BY_LAYERS = ("input", "running_mean", "running_var", "weight", "bias")
"""What the normalizations of ``torch.nn.functional`` take."""
_ATEN_NORMALIZED = ("input", "weight", "bias", "running_mean", "running_var")
_NORMALIZED = {
    "batch_norm": _ATEN_NORMALIZED, "instance_norm": _ATEN_NORMALIZED,
    "native_batch_norm": _ATEN_NORMALIZED,
    "native_batch_norm_backward": ("grad_out", "input", "weight", "running_mean", "running_var",
                                   "save_mean", "save_invstd"),
}  # fmt: skip
"""What the normalizations of ``torch`` and of ATen take, and its derivative."""


def _under_letters(call: ast.Call) -> dict[str, int]:
    """``einsum("ij,jk->ik", x, y)`` says how many axes x and y have, where they stand alone."""
    equation = call.args[0] if _called(call) == "einsum" and call.args else None
    if not isinstance(equation, ast.Constant) or not isinstance(equation.value, str):
        return {}
    words = equation.value.replace(" ", "").partition("->")[0].split(",")
    pairs = zip(words, call.args[1:], strict=False)
    return {
        one.id: len(word) for word, one in pairs if isinstance(one, ast.Name) and "." not in word
    }


def _without_gradient(
    function: AnyFunction, tree: ast.AST, *, first: bool = False
) -> set[str]:  # fmt: skip
    """The arguments for which every return of backward has a literal None.

    The first is left out, but with ``first``.
    """
    names = [one.name for one in parameters(function)
             if one.kind is Parameter.POSITIONAL_OR_KEYWORD]  # fmt: skip
    found: set[str] | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "backward":
            for one in ast.walk(node):
                if isinstance(one, ast.Return):
                    whole = one.value
                    while isinstance(whole, ast.BinOp):  # (None, None) + gradients
                        whole = whole.left
                    parts = whole.elts if isinstance(whole, ast.Tuple) else []
                    start = 0 if first else 1
                    none = {
                        name for name, part in zip(names[start:], parts[start:], strict=False)
                        if isinstance(part, ast.Constant) and part.value is None
                    }  # fmt: skip
                    found = none if found is None else found & none
    return found or set()


def _unpacked(target: ast.Tuple, value: ast.expr) -> dict[str, int]:
    """``b, c, h, w = x.shape`` says that x has four axes."""
    shape = value.func if isinstance(value, ast.Call) and not value.args else value
    if not isinstance(shape, ast.Attribute) or shape.attr not in ("shape", "size"):
        return {}
    starred = any(isinstance(part, ast.Starred) for part in target.elts)
    if starred or len(target.elts) > MOST_UNPACKED or not isinstance(shape.value, ast.Name):
        return {}
    return {shape.value.id: len(target.elts)}


def _expanded(node: ast.Subscript) -> dict[str, int]:
    """``w[None, :, None, None]`` says that w has one axis.

    Fewer places say less: ``x[:, None]`` may be any number of rows beside one another.
    """
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    new = [part for part in parts if isinstance(part, ast.Constant) and part.value is None]
    slices = [part for part in parts if isinstance(part, ast.Slice)]
    whole = len(parts) > _PLACES and len(new) + len(slices) == len(parts)
    if not (whole and new and slices and isinstance(node.value, ast.Name)):
        return {}
    return {node.value.id: len(slices)}


def _items(node: ast.AST) -> tuple[str, int]:
    """How many items a name has: ``a, b = pad``, ``pad[1]``; 0 where the node shows nothing."""
    if isinstance(node, ast.Subscript):
        place = getattr(node.slice, "value", None)
        return _own_name(node.value), place + 1 if type(place) is int else 0
    if not isinstance(node, ast.Assign):
        return "", 0
    parts = getattr(node.targets[0], "elts", ())
    starred = any(isinstance(part, ast.Starred) for part in parts)
    return _own_name(node.value), 0 if starred else len(parts)


def _own_name(node: ast.expr) -> str:
    """``pad`` of ``pad`` and of ``ctx.pad``; empty for what is neither."""
    return _text(node).rpartition(".")[2]


def _rows(tree: ast.AST, indices: set[str]) -> set[str]:
    """Names of which two rows are indices: ``x[i[0], i[1]]``; ``row, col = i``, ``x[row]``."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            parts = [part for part in node.slice.elts if isinstance(part, ast.Subscript)]
            names = [_text(part.value) for part in parts if not _names(part.slice)]
            found |= {name for name in names if names.count(name) > 1}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
            rows = _names(node.targets[0])
            if len(rows) > 1 and rows <= indices and isinstance(node.value, ast.Name):
                found.add(node.value.id)
    return found


# -- names in a tree


def _by_name(tree: ast.AST, names: Sequence[str]) -> dict[str, str]:
    """Which argument a text is: its name, another name for it, its place among the inputs."""
    found = dict(zip(names, names, strict=True))
    found |= {f"inputs[{place}]": name for place, name in enumerate(names)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Name) and ast.unparse(value) in found:
                found.setdefault(target.id, found[ast.unparse(value)])
            elif isinstance(target, ast.Tuple) and _text(value) == "inputs":
                for part, name in zip(target.elts, names, strict=False):
                    found.setdefault(ast.unparse(part), name)
    return found


def _kept(tree: ast.AST, known: Mapping[str, str]) -> set[str]:
    """The arguments that become attributes of ctx, if only where they are not None."""
    found = {known[text] for text in known if "." in text}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Attribute, ast.Tuple)):
            todo = [node.value] if "." in ast.unparse(node.targets[0]) else []
            while todo:
                one = todo.pop()
                if isinstance(one, (ast.Tuple, ast.List)):
                    todo += one.elts
                elif isinstance(one, ast.BoolOp):
                    todo += one.values
                elif isinstance(one, ast.IfExp):
                    todo += [one.body, one.orelse]
                elif isinstance(one, ast.Call) and _text(one.func) in ("float", "int", "bool"):
                    todo += one.args
                else:
                    found |= {known.get(ast.unparse(one), "")}
    return found


def _kept_attributes(tree: ast.AST, names: Sequence[str]) -> dict[str, str]:
    """Which argument an attribute of ctx is that is assigned once: ``ctx.act``."""
    pairs = [
        (_text(target), _text(value)) for node in ast.walk(tree) if isinstance(node, ast.Assign)
        for whole in node.targets for target, value in zip(*_sides(whole, node.value), strict=True)
        if isinstance(target, ast.Attribute)
    ]  # fmt: skip
    times = Counter(target for target, _ in pairs)
    return {target: name for target, name in pairs if name in names and times[target] == 1}


def _sides(target: ast.expr, value: ast.expr) -> tuple[list[ast.expr], list[ast.expr]]:
    """What an assignment assigns to, and what: each for itself in ``ctx.a, ctx.b = a, b``."""
    parts, values = getattr(target, "elts", []), getattr(value, "elts", [])
    return (parts, values) if parts and len(parts) == len(values) else ([target], [value])


def _aliases(method: ast.AST, known: Mapping[str, str]) -> dict[str, str]:
    """Which argument a name is in a method: those known, and names bound once to one of them."""
    times = Counter(_bound(method))
    found = {text: name for text, name in known.items() if text not in times}
    for node in ast.walk(method):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            target, value = node.targets[0].id, _text(node.value)
            if times[target] == 1 and value in found:
                found[target] = found[value]
    return found


def _bound(tree: ast.AST) -> list[str]:
    """The names that statements bind, as often as they do."""
    return [
        node.id for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]  # fmt: skip


def _text(node: ast.AST) -> str:
    """``name`` or ``name.attribute``; empty for what is neither."""
    if isinstance(node, ast.Name):
        return node.id
    inner = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return ast.unparse(node) if inner else ""


def _bounds(of: ast.Slice) -> set[str]:
    """The names that the bounds of a slice are computed from."""
    return _terms([one for one in (of.lower, of.upper, of.step) if one is not None])


def _terms(parts: Sequence[ast.expr], *, shares: bool = True) -> set[str]:
    """The names that expressions are computed from; not those of products, without ``shares``."""
    todo = list(parts)
    found: set[str] = set()
    while todo:
        one = todo.pop()
        if isinstance(one, ast.BinOp):
            todo += [] if isinstance(one.op, ast.Mult) and not shares else [one.left, one.right]
        elif isinstance(one, ast.UnaryOp):
            todo.append(one.operand)
        else:
            found |= _names(one)
    return found


def _names(tree: ast.expr) -> set[str]:
    """The names that a tuple, a condition or a plain expression consists of."""
    if isinstance(tree, ast.Name):
        return {tree.id}
    if isinstance(tree, (ast.Tuple, ast.List)):
        return set().union(*(_names(part) for part in tree.elts))
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return _names(tree.operand)
    if isinstance(tree, ast.BoolOp):
        return set().union(*(_names(part) for part in tree.values))
    return set()
