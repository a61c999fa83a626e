"""JAX traces a program of the user's: for symbolic sizes, and for no value.

In: a program, and trees of tensors and other values to call it with.  Out: the tree of what it
returns, as part of the graph.

JAX itself refuses what Python asks about values.  What it raises while it traces ``fun`` or ``fwd``
is raised; in ``bwd`` it says nothing of real calls, and is a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.config import traceback_filtering

from symgrad.errors import ControlFlowError, OperationError, ShapeError, SymgradError
from symgrad.frontend.caller import asker, module_of
from symgrad.frontend.plain import is_plain_number
from symgrad.frontend.questions import note_limit
from symgrad.frontend.session import blame, current
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.interop.jax.dtypes import ours, theirs
from symgrad.interop.jax.equations import cuts, evaluate
from symgrad.interop.jax.quotients import SizeNumber, with_number
from symgrad.interop.jax.sizes import sizes
from symgrad.ir.dim import Size
from symgrad.ir.dtype import DType
from symgrad.ir.graph import Node

flatten = jax.tree_util.tree_flatten
unflatten = jax.tree_util.tree_unflatten


class _TracedNumber(SizeNumber):
    """What JAX traces in the place of a Python number: ``isinstance`` tells the program that."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return _TracedNumber if asker(2) is None else float


_ASKED = (jax.errors.JAXTypeError, jax.errors.JAXIndexError)
_ABOUT_SIZES = ("_DimExpr", "ymbolic dim", "InconclusiveDimension")


class Tree(NamedTuple):
    """The leaves of nested containers, and how these are built of them."""

    leaves: tuple[Any, ...]
    structure: Any

    @classmethod
    def of(cls, value: Any) -> Tree:
        """The tree of a value."""
        leaves, structure = flatten(value)
        return cls(tuple(leaves), structure)

    def parts(self) -> list[Tree]:
        """The trees that the outermost container holds."""
        found, start = [], 0
        for child in self.structure.children():
            end = start + child.num_leaves
            found.append(Tree(self.leaves[start:end], child))
            start = end
        return found


def run(
    program: Callable[..., Any], arguments: Sequence[Tree], name: str, numbers: Sequence[Any] = ()
) -> Tree:  # fmt: skip
    """What a program returns, called with these; its tensors are part of the graph in progress.

    ``name``: that of the program.  ``numbers``: the tensors that stand for Python numbers.  Raises
    SymgradError, and NeedsDecision.
    """
    whole = [leaf for one in arguments for leaf in one.leaves]
    traced = [
        place for place, leaf in enumerate(whole)
        if isinstance(leaf, SymbolicTensor) or is_plain_number(leaf)
    ]  # fmt: skip
    kept: dict[str, Any] = {}

    def flat(*given: Any) -> list[Any]:
        leaves = list(whole)
        for place, value in zip(traced, given, strict=True):
            leaves[place] = value
            if is_plain_number(whole[place]) or any(whole[place] is one for one in numbers):
                value.__class__ = _TracedNumber
                with_number(value, whole[place])
        rest = iter(leaves)
        values = [
            unflatten(one.structure, [next(rest) for _ in one.leaves]) for one in arguments
        ]  # fmt: skip
        returned, kept["structure"] = flatten(program(*values))
        arrays = [place for place, leaf in enumerate(returned) if _is_array(leaf)]
        kept["returned"], kept["arrays"] = returned, arrays
        return [returned[place] for place in arrays]

    structs = [_struct(whole[place]) for place in traced]
    with _said(name), traceback_filtering("off"), np.errstate(all="ignore"):
        closed = jax.make_jaxpr(flat)(*structs)
    given = [
        _node(whole[place], ours(struct.dtype))
        for place, struct in zip(traced, structs, strict=True)
    ]  # fmt: skip
    known = None if name == "fun" else cuts.set(None)
    try:
        nodes = evaluate(closed, given)
    finally:
        if known is not None:
            cuts.reset(known)
    found = list(kept["returned"])
    for place, node in zip(kept["arrays"], nodes, strict=True):
        found[place] = fresh(node)
    return Tree(tuple(found), kept["structure"])


def check_rank() -> None:
    """End a trace in which an axis stands for any number of them: JAX has to know that."""
    session: Any = current()
    if session.any_rank:
        session.observe("JAX traces arrays of a known number of axes")


def _is_array(value: Any) -> bool:
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        return bool(value.dtype != jax.dtypes.float0)
    return False


def as_array(value: Any) -> Any:
    """A Python number as an array; anything else as it is."""
    return jnp.asarray(value) if isinstance(value, (bool, int, float)) else value


def as_symbol(value: Any) -> Any:
    """A real number of a trace as it is; an integer, which JAX may need to know, as its value."""
    return value.settle() if is_plain_number(value) and value.is_whole else value


def _node(leaf: Any, dtype: DType) -> Node:
    if is_plain_number(leaf):
        return leaf.node(dtype)  # type: ignore[no-any-return]
    return current().cast(leaf.node, dtype)


def _struct(leaf: Any) -> Any:
    """What JAX traces it as: a plain number takes the dtype of what it meets."""
    if is_plain_number(leaf):
        return jax.ShapeDtypeStruct((), jnp.result_type(float), weak_type=True)
    node, known = leaf.node, sizes()
    shape = tuple(map(known.theirs, node.shape))
    dtype = jax.dtypes.canonicalize_dtype(theirs(node.dtype))
    return jax.ShapeDtypeStruct(shape, dtype)


@contextmanager
def precision(tensors: Sequence[Any]) -> Iterator[None]:
    """A block in which JAX computes in 64 bits, where one of the tensors is of float64."""
    wide = any(
        isinstance(one, SymbolicTensor) and str(one.node.dtype) == "float64" for one in tensors
    )
    with jax.enable_x64(True) if wide else nullcontext():
        yield


# -- errors


@contextmanager
def _said(name: str) -> Iterator[None]:
    """A block of the user's program, traced by JAX.  Raises what is wrong as SymgradError."""
    unequal = sizes().unequal
    unequal.clear()
    try:
        yield
    except SymgradError:
        raise
    except Exception as error:
        found = _translated(error, name, list(unequal))
        if found is error:
            raise
        raise found from error


def _raised_by_jax(error: Exception) -> bool:
    """Is the innermost line that it passed one of JAX's?"""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and module_of(trace.tb_frame).partition(".")[0] in ("jax", "jaxlib")


def _translated(
    error: Exception, name: str, unequal: Sequence[tuple[Any, Any]]
) -> Exception:  # fmt: skip
    location, _ = blame(error)
    own = not _raised_by_jax(error)
    text = sizes().shown(str(error) or type(error).__name__).strip().splitlines()[0]
    said = f"{name} raised {type(error).__name__} while JAX traced it: {text}"
    if isinstance(error, _ASKED) or any(word in str(error) for word in _ABOUT_SIZES):
        return note_limit(ControlFlowError(said, location=location))
    if own and name != "bwd":
        return error
    if unequal and isinstance(error, (TypeError, ValueError)) and name != "bwd":
        pair = [sizes().ours(side) for side in unequal[-1]]
        if all(isinstance(side.atom, Size) or side.constant is not None for side in pair):
            return ShapeError(said, location=location, equal=[(pair[0], pair[1])])
    return OperationError(said, location=location)
