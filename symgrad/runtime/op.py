"""A compiled op: the generated wrapper, loaded in this process.

In: the wrapper's text and that of its C files.  Out: a ``CompiledOp`` to call.

The text is the one that a generated package holds; only the names it imports from differ.
"""

from __future__ import annotations

import importlib.util
import linecache
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from symgrad.abi import Op, Value
from symgrad.interpreters import interpreter_of
from symgrad.plain_values import PlainArgument
from symgrad.runtime.carried import Manifest, Parts, enclosed, library, opened, packed, unpacked
from symgrad.runtime.digests import digest
from symgrad.runtime.load import Library, from_cache, keep_in_memory
from symgrad.runtime.quick import nothing
from symgrad.runtime.support import Caller
from symgrad.runtime.values import given

_NUMBERS = {"float64": float, "int64": int}


@dataclass(frozen=True)
class OpAt:
    """An op at values of its plain numbers, which are ``numbers`` by name."""

    op: Any
    numbers: Mapping[str, Any]
    inference: Callable[..., Any]
    forward: Callable[..., Any]

    @property
    def name(self) -> str:
        """What the op is called."""
        return str(self.op.name)

    @property
    def caller(self) -> Caller:
        """The careful way to call it."""
        found: Caller = self.op.caller
        return found

    @property
    def backward(self) -> Any:
        """The gradients, from residuals that hold the numbers."""
        return self.op.backward


class CompiledOp:
    """An op on NumPy arrays.

    ``op(x)`` gives the outputs; ``op.forward(x)`` also the residuals, from which
    ``op.backward(residuals, gy)`` computes the gradients.  Each takes ``out=``.  Called with
    tensors, ``op(x)`` gives tensors, whose backward runs ``op.backward``.

    The residuals hold the arrays given to ``forward``, and its outputs, not copies of them: what is
    written to one before ``backward`` runs is what it computes with.  ``backward`` checks shapes,
    dtypes and indices, so that this can be wrong but not unsafe.  Tensors know their version, and
    raise torch's error instead.

    ``origin``: whatever says what it was compiled from, for those who differentiate it again.
    ``parts``: what goes along where it is pickled (``carried``); None for one of
    ``symgrad.generated``, which is there wherever symgrad is.
    """

    def __init__(
        self, module: ModuleType, source: str, origin: Any = None, parts: Parts | None = None
    ) -> None:
        self.module = module
        self.source = source
        self.origin = origin
        self.parts = parts
        self.behind_tape: Any = None
        self.caller: Caller = module._careful
        self.forward: Any = module.forward
        self.backward: Any = module.backward
        self.inference: Any = module.inference
        self._quick: Any = _at_defaults(module._quick.inference, self.caller.op.numbers)

    def __call__(self, *inputs: Any, out: Any = None, **values: Any) -> Any:
        """The outputs alone: one array, or a tuple of several; tensors for tensors.

        ``values``: plain arguments, which may also stand among the inputs as ``apply`` takes them:
        numbers that the kernels take, and values that the op is compiled for.  Raises
        KernelArgumentError for others, and KernelTypeError for a name that is none of theirs.
        """
        if not values:
            found = self._quick(inputs, out)
            if found is not None:
                return found
        op: Any = self
        if values or self.caller.op.values:
            taken, numbers = self.caller.values.taken(self.name, inputs, values)
            inputs = tuple(taken)
            op = self.at(numbers) if numbers else self
        interpreter = interpreter_of(inputs)
        if interpreter is not None:
            return interpreter.compiled(op, inputs, out)
        return op.inference(*inputs, out=out)

    def at(self, numbers: Sequence[Any]) -> OpAt:
        """The op at values of the plain numbers that its kernels take."""
        named = dict(zip(self.module._NUMBERS, numbers, strict=True))
        names = (one.name for one in self.caller.op.numbers)
        return OpAt(
            self, dict(zip(names, numbers, strict=True)), partial(self.inference, **named),
            partial(self.forward, **named),
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        if self.parts is None:
            return _shipped, (Path(str(self.module.__file__)).stem, self.origin)
        values = tuple(self.caller.values.objects.items())
        library = None if self.module._library.programs is not None else self.library_path
        return reduced(self.name, self.parts, library, values, self.origin)

    def __repr__(self) -> str:
        return f"<compiled op {self.name}{given(self.caller.op)}: {self.library_path}>"

    @property
    def name(self) -> str:
        """What the op is called."""
        return str(self.module.OP.name)

    @property
    def library_path(self) -> Path:
        """The shared object that holds the kernels."""
        return Path(self.module._library.path)

    @property
    def c_paths(self) -> tuple[Path, ...]:
        """The emitted C, where it lies beside the shared object."""
        return tuple(self.library_path.with_name(name) for name in self.module.OP.files)


def _at_defaults(inference: Any, numbers: Sequence[Value]) -> Any:
    """A call of ``inference`` at the defaults of plain numbers, if there are all of them."""
    if not numbers:
        return inference
    defaults = tuple(_NUMBERS[one.number](one.text) for one in numbers if one.text)
    if len(defaults) < len(numbers):
        return nothing
    return lambda inputs, out: inference(inputs, out, defaults)


def make_op(
    wrapper: str, texts: Mapping[str, str], *, key_extra: str = "", origin: Any = None,
    values: Sequence[PlainArgument] = (), programs: Callable[[], str | None] = lambda: None,
) -> CompiledOp:  # fmt: skip
    """The op of a wrapper's text (rendered for ``symgrad.runtime``) and its C.

    ``texts`` maps the file names in the wrapper's ``OP`` to their text; ``key_extra`` is what else
    the cached kernels should stand for, such as the source of the backward; ``values``: its plain
    arguments; ``programs`` gives the module of programs for NumPy, for processes that have no
    compiler.  Raises BuildError where the C cannot be compiled.
    """
    parts = Parts(wrapper, dict(texts), programs, key_extra)
    objects = {one.name: one.value for one in values}
    return _made(parts, lambda op: from_cache(op, parts.texts, key_extra), objects, origin)


def _made(
    parts: Parts, find: Callable[[Op], Library], objects: Mapping[str, Any], origin: Any
) -> CompiledOp:
    """The op of these parts, whose kernels are what ``find`` gives."""
    wrapper, texts = parts.wrapper, parts.texts
    mark = digest(wrapper, *(part for name in sorted(texts) for part in (name, texts[name])))[:12]
    file = f"<symgrad wrapper {mark}>"
    keep_in_memory(file, find)
    # Tracebacks through the wrapper then show its lines.
    linecache.cache[file] = (len(wrapper), None, wrapper.splitlines(keepends=True), file)
    module = ModuleType(f"symgrad_wrapper_{mark}")
    module.__file__ = file
    exec(compile(wrapper, file, "exec", dont_inherit=True), module.__dict__)
    op = CompiledOp(module, wrapper, origin, parts)
    op.caller.values.objects = dict(objects)
    return op


def reduced(
    name: str, parts: Parts, library: Path | None, values: Sequence[tuple[str, Any]], origin: Any
) -> tuple[Any, ...]:
    """How an op is pickled: small, and whole unless its pieces are collected."""
    manifest, pieces = packed(name, parts, library)
    return _arrived, (manifest, enclosed(manifest, pieces), values, origin)


_there: dict[str, CompiledOp] = {}
_arriving = threading.RLock()


def _arrived(
    manifest: Manifest, data: bytes, values: Sequence[tuple[str, Any]], origin: Any
) -> CompiledOp:
    """An op that was pickled.  Its kernels are made once in a process."""
    with _arriving:
        found = _there.get(manifest.key)
        if found is not None:
            return CompiledOp(found.module, found.source, origin, found.parts)
        opened(data)
        parts = unpacked(manifest)
        made = _made(parts, lambda op: library(manifest, parts, op), dict(values), origin)
        return _there.setdefault(manifest.key, made)


def _shipped(name: str, origin: Any) -> CompiledOp:
    return shipped_op(name, origin=origin)


def shipped_op(name: str, *, origin: Any = None) -> CompiledOp:
    """The op of a module of ``symgrad.generated``, called through this runtime.

    Its kernels are those beside it, or in the cache, or compiled into it.  Raises ImportError
    where there is no such module and where its C cannot be compiled.
    """
    found = importlib.util.find_spec("symgrad.generated")
    if found is None or not found.submodule_search_locations:
        raise ImportError("symgrad.generated is missing; reinstall symgrad")
    path = Path(found.submodule_search_locations[0]) / f"{name}.py"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ImportError(f"{path} cannot be read: {error}", path=str(path)) from error
    wrapper = text.replace("from ._runtime.abi ", "from symgrad.abi ")
    wrapper = wrapper.replace("from ._runtime.", "from symgrad.runtime.")
    module = ModuleType(f"symgrad_generated_{name}")
    module.__file__ = str(path)
    exec(compile(wrapper, str(path), "exec", dont_inherit=True), module.__dict__)
    return CompiledOp(module, wrapper, origin)
