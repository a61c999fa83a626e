"""Shapes that the annotations of forward state.

In: an annotation: a text, ``Annotated[..., "n m"]``, one of jaxtyping's types, any of them
postponed or optional.  Out: ``TensorSpec``, or None where it says nothing of a shape.
"""

from __future__ import annotations
import __future__

import ast
import typing
from dataclasses import replace
from typing import Any

from symgrad.errors import SpecError
from symgrad.frontend.spec import TensorSpec, parse_spec
from symgrad.ir.dtype import ALL, BY_NAME, BY_SHORT, LISTED, DType, bool_, int64, uint8

_KINDS: dict[str, DType | None] = {
    "Float": None, "Inexact": None, "Num": None, "Real": None, "Shaped": None,
    "Int": int64, "Integer": int64, "UInt": uint8,
    **{str(dtype).capitalize(): dtype for dtype in ALL if dtype.signed or dtype == bool_},
    "UInt8": uint8,
}  # fmt: skip
"""jaxtyping's names, for annotations that cannot be evaluated when they are read."""


_TYPES = ("array", "ndarray", "tensor")
"""Names of types that are written like sizes."""


def annotated_spec(annotation: Any, scope: dict[str, Any]) -> TensorSpec | None:
    """The spec that an annotation states; None where it says nothing of a shape.

    ``scope``: the globals of the function, for annotations that were postponed.  Raises SpecError
    for a shape that cannot be read.
    """
    if isinstance(annotation, str):
        return _from_text(annotation, scope)
    if typing.get_origin(annotation) is typing.Annotated:
        for extra in typing.get_args(annotation)[1:]:
            if isinstance(extra, TensorSpec):
                return extra
            if isinstance(extra, str):
                return parse_spec(extra)
        return annotated_spec(typing.get_args(annotation)[0], scope)
    if isinstance(getattr(annotation, "dim_str", None), str):
        return replace(parse_spec(annotation.dim_str), dtype=_jaxtyping_dtype(annotation))
    for option in typing.get_args(annotation):  # Optional[...]
        if option is not type(None) and (found := annotated_spec(option, scope)) is not None:
            return found
    return None


def _from_text(text: str, scope: dict[str, Any]) -> TensorSpec | None:
    name, bracket, _ = text.strip().partition("[")
    if bracket and (name in BY_SHORT or name in BY_NAME):
        return parse_spec(text)
    try:
        value = eval(text, scope)
    except Exception:  # an annotation is not ours to judge: "n m" is no Python either
        return _unevaluated(text, postponed=scope.get("annotations") is __future__.annotations)
    if not isinstance(value, str):
        return annotated_spec(value, scope)
    return _from_text(value, scope) or _plain(value)


def _plain(text: str) -> TensorSpec | None:
    """Sizes alone; a single word such as ``Tensor`` is rather the name of a type."""
    word = text.strip()
    if word.isidentifier() and len(word) > 1 and word[0].isupper():
        return None
    try:
        return parse_spec(text)
    except SpecError:
        return None


def _unevaluated(text: str, *, postponed: bool) -> TensorSpec | None:
    """Sizes alone, or ``Float[Tensor, "n m"]`` of names that only a type checker imports.

    ``postponed``: a lone name may be such a type; otherwise somebody wrote it between quotes.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return _plain(text) if " " in text.strip() else None
    if isinstance(tree, ast.Name) and not postponed and tree.id not in _TYPES:
        return _plain(text)
    for part in ast.walk(tree):
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple):
            name = part.value.attr if isinstance(part.value, ast.Attribute) else part.value
            kind = name.id if isinstance(name, ast.Name) else name
            *_, shape = part.slice.elts
            if kind in _KINDS and isinstance(shape, ast.Constant) and isinstance(shape.value, str):
                return replace(parse_spec(shape.value), dtype=_KINDS[kind])
    return None


def _jaxtyping_dtype(annotation: Any) -> DType | None:
    """The one dtype that the type admits; of several the default float, or the largest integer."""
    dtypes = getattr(annotation, "dtypes", ())
    names = [str(name) for name in dtypes] if isinstance(dtypes, (list, tuple)) else []
    known = [BY_NAME[name] for name in names if name in BY_NAME]
    if not names or (len(known) != 1 and any(dtype.is_float for dtype in known)):
        return None
    if not known:
        raise SpecError(f"{', '.join(names)}: no such dtype", hint=f"there are {LISTED}")
    return max(known, key=ALL.index)
