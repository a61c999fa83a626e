"""Shape specs: ``"n m"``, ``"f32[n m]"``, ``"*batch 2*n"``, in jaxtyping's notation.

In: text.  Out: ``TensorSpec``.

    spec ::= dtype? "[" dims "]" | dims         dtype: f32 f64 i64 i32 i16 i8 u8 bool c64 c128
    dims ::= dim*                               separated by blanks; none: no axes, written []
    dim  ::= name | integer | expression        an expression has no blanks: n+1, 2*n, (n-1)//2
           | "*" name | "..."                   any number of axes; at most one of them
           | "_"                                a size of its own
"""

from __future__ import annotations
import __future__

import ast
import re
import typing
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from symgrad.errors import SpecError
from symgrad.ir.dim import Dim, Size
from symgrad.ir.dtype import (
    ALL,
    BY_NAME,
    BY_SHORT,
    LISTED,
    DType,
    bool_,
    float32,
    float64,
    int64,
    uint8,
)

_TYPED = re.compile(r"^\s*(\w*)\s*\[(.*)\]\s*$", re.DOTALL)
ANY_RANK = "batch"
ANONYMOUS = "_"
_COMPLEX = {
    "complex": None, "c64": float32, "complex64": float32, "c128": float64, "complex128": float64,
}  # fmt: skip
"""The dtypes of the parts of complex numbers, by what these are called."""


@dataclass(frozen=True)
class TensorSpec:
    """The dtype (None: the default float) and sizes of a tensor.

    ``batch``: the name of axes of any number, None where there are none; they stand before
    ``dims[position]``.  ``complex``: the last axis holds the two parts of complex numbers.
    """

    dims: tuple[Dim, ...]
    dtype: DType | None = None
    batch: str | None = None
    position: int = 0
    complex: bool = False

    def with_batch_axes(self, axes: Iterable[Dim]) -> TensorSpec:
        """The spec with axes of these sizes for its batch axes; itself where it has none."""
        if self.batch is None:
            return self
        dims = (*self.dims[: self.position], *axes, *self.dims[self.position :])
        return replace(self, dims=dims, batch=None, position=0)

    def with_own_axes(self, argument: str) -> TensorSpec:
        """The spec with names for the axes that were left without one (``_``)."""
        dims = tuple(
            dim.substitute({Size(ANONYMOUS): Dim.size(f"{argument}_axis{axis}")})
            for axis, dim in enumerate(self.dims)
        )
        batch = f"{argument}_axes" if self.batch == ANONYMOUS else self.batch
        return replace(self, dims=dims, batch=batch)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of its sizes, in order of appearance."""
        names: list[str] = []
        for dim in self.dims:
            names.extend(name for name in dim.sizes if name not in names)
        return tuple(names)

    @property
    def oddities(self) -> int:
        """How many of its sizes are numbers or multiples, or occur before."""
        return len(self.dims) - len({dim for dim in self.dims if dim.atom is not None})

    @property
    def _kind(self) -> str:
        """The dtype as it is written; empty for the default float."""
        if self.complex:
            return next(name for name, dtype in _COMPLEX.items() if dtype == self.dtype)
        return self.dtype.short if self.dtype else ""

    @property
    def _words(self) -> list[str]:
        dims = self.dims[:-1] if self.complex else self.dims
        words = [str(dim).replace(" ", "") for dim in dims]
        if self.batch is not None:
            words.insert(self.position, f"*{self.batch}")
        return words

    def __str__(self) -> str:
        return f"{self._kind or 'float'}[{' '.join(self._words)}]"

    def of(self, name: str) -> str:
        """``i64 labels[n, m]``: an argument of this shape, in a sentence."""
        return f"{self._kind} {name}[{', '.join(self._words)}]".lstrip()


def parse_spec(text: str) -> TensorSpec:
    """Read a spec.  Raises SpecError that says what is wrong and how it is written."""
    typed = _TYPED.match(text)
    dtype: DType | None = None
    complex_ = typed is not None and typed[1] in _COMPLEX
    if typed:
        dtype = _dtype(typed.group(1), text)
        text = typed.group(2)
    dims: list[Dim] = []
    batch: str | None = None
    position = 0
    for word in text.replace(",", " ").split():
        name = ANY_RANK if word == "..." else word[1:] if word.startswith("*") else None
        if name is None:
            dims.append(_dim(word, text))
            continue
        if batch is not None:
            raise SpecError(f"{text!r} has two groups of any number of axes; only one is allowed")
        if not name.isidentifier():
            raise SpecError(f"{word!r} in {text!r} is not a name", hint='write "*batch n m"')
        batch, position = unicodedata.normalize("NFKC", name), len(dims)  # as Python reads names
    pair = (Dim.of(2),) if complex_ else ()
    return TensorSpec((*dims, *pair), dtype, batch, position, complex_)


def _dtype(name: str, text: str) -> DType | None:
    if name in ("", "float", "Float"):
        return None
    if name in _COMPLEX:
        return _COMPLEX[name]
    found = BY_SHORT.get(name) or BY_NAME.get(name)
    if found is None:
        raise SpecError(
            f"{name!r} in {text!r} is not a dtype",
            hint=f"there are {', '.join(BY_SHORT)}, c64, c128",
        )
    return found


def _dim(word: str, text: str) -> Dim:
    named, equals, size_text = word.partition("=")
    if equals and named.lstrip("#?").isidentifier():  # jaxtyping's "rows=3"
        word = size_text or word
    if "#" in word or "?" in word:
        raise SpecError(
            f"{word!r} in {text!r}: sizes that may be 1 or n are two specs",
            hint="judge each of them by itself",
        )
    try:
        size = _value(ast.parse(word, mode="eval").body, word, text)
    except (SyntaxError, UnicodeEncodeError, RecursionError, MemoryError):
        raise _unreadable(word, text) from None
    if size.constant is not None and size.constant < 0:
        raise SpecError(f"{word!r} in {text!r} is negative")
    return size


_ARITHMETIC: dict[type, str] = {
    ast.Add: "__add__",
    ast.Sub: "__sub__",
    ast.Mult: "__mul__",
    ast.FloorDiv: "__floordiv__",
    ast.Mod: "__mod__",
}


def _value(tree: ast.expr, word: str, text: str) -> Dim:
    if isinstance(tree, ast.Name):
        return Dim.size(tree.id)
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return Dim.of(tree.value)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _ARITHMETIC:
        left, right = _value(tree.left, word, text), _value(tree.right, word, text)
        if isinstance(tree.op, (ast.FloorDiv, ast.Mod)) and right == 0:
            raise SpecError(f"{word!r} in {text!r} divides by 0")
        result: Dim = getattr(left, _ARITHMETIC[type(tree.op)])(right)
        return result
    raise _unreadable(word, text)


def _unreadable(word: str, text: str) -> SpecError:
    return SpecError(
        f"{word!r} in {text!r} is not a size",
        hint='one string a tensor: "n m", "m"; or one string for all: "n m; m"'
        if ";" in text
        else 'sizes are names, integers, or arithmetic of them without blanks: "n 3 2*m+1"',
    )


def as_spec(value: Any) -> TensorSpec:
    """A spec as the user passed it.  Raises SpecError."""
    if isinstance(value, TensorSpec):
        return value
    if isinstance(value, str):
        return parse_spec(value)
    raise SpecError(
        f"{value!r} is not a shape spec", hint='specs are texts such as "n m" or "f64[n 3]"'
    )


# -- annotations


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
        dtypes = getattr(annotation, "dtypes", ())
        if dtypes and all(name in _COMPLEX for name in map(str, dtypes)):
            kind = "complex" if len(dtypes) > 1 else str(dtypes[0])
            return parse_spec(f"{kind}[{annotation.dim_str}]")
        return replace(parse_spec(annotation.dim_str), dtype=_jaxtyping_dtype(annotation))
    if typing.get_origin(annotation) is typing.Literal:
        return None
    for option in typing.get_args(annotation):  # Optional[...]
        if option is not type(None) and (found := annotated_spec(option, scope)) is not None:
            return found
    return None


def _from_text(text: str, scope: dict[str, Any]) -> TensorSpec | None:
    name, bracket, _ = text.strip().partition("[")
    if bracket and name in (*BY_SHORT, *BY_NAME, *_COMPLEX):
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
            if not isinstance(shape, ast.Constant) or not isinstance(shape.value, str):
                continue
            if kind in _KINDS:
                return replace(parse_spec(shape.value), dtype=_KINDS[kind])
            if str(kind).lower() in _COMPLEX:
                return parse_spec(f"{str(kind).lower()}[{shape.value}]")
    return None


def _jaxtyping_dtype(annotation: Any) -> DType | None:
    """The one dtype that the type admits; of several the default float, or the largest integer."""
    dtypes = getattr(annotation, "dtypes", ())
    names = [str(name) for name in dtypes] if isinstance(dtypes, (list, tuple)) else []
    known = [BY_NAME[name] for name in names if name in BY_NAME]
    if not names or (len(known) != 1 and any(dtype.is_float for dtype in known)):
        return None
    if not known:
        raise SpecError(f"{', '.join(names)} is not a dtype", hint=f"there are {LISTED}")
    return max(known, key=ALL.index)
