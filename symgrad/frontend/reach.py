"""What the code of a Function can reach besides its arguments and ctx.

In: a Function.  Out: the places that it may keep something in, with what is there, and what it
reads that is not the same in every call.

The code is read: of a module only the names that some code uses are looked at.  From there all
values are followed: functions, classes, objects, containers, closures and defaults.
"""

from __future__ import annotations

import builtins
import dis
import functools
import gc
import importlib
import inspect
import operator
import sys
from collections.abc import (
    Callable,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
)
from dataclasses import dataclass, field
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from symgrad.budgets import MOST_STATE
from symgrad.errors import Location
from symgrad.frontend.function import METHODS, Function, attributes_of, class_of, raw_method
from symgrad.frontend.identities import ASKED, compared, parameters_of
from symgrad.frontend.optimised import asks_optimisation
from symgrad.frontend.replaced import references
from symgrad.frontend.sizes import FRAMES
from symgrad.frontend.surroundings import ABOUT_THE_TRACE, Read
from symgrad.frontend.surroundings import read as surroundings
from symgrad.frontend.tensor import SymbolicTensor, loaded_tensors
from symgrad.frontend.unknown import raw_items
from symgrad.ir.function import Asked

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "nothing"})()
"""What a place holds that is not there."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HARMLESS = _words(
    "symgrad numpy torch sympy mpmath scipy einops jaxtyping typing_extensions packaging builtins "
    "math cmath operator _operator functools _functools itertools collections _collections "
    "_collections_abc copy copyreg numbers fractions decimal _decimal _pydecimal string re "
    "sre_parse typing types abc _abc dataclasses enum warnings _warnings contextlib logging "
    "textwrap pprint statistics bisect _bisect heapq _heapq array struct _struct json keyword "
    "unicodedata __future__ traceback io"
)
"""Packages whose functions answer the same to the same arguments, or nothing at all."""
_ATTRIBUTES = {
    "sys": frozenset(
        ("maxsize", "float_info", "int_info", "version_info", "version", "byteorder", "platform",
         "stderr", "stdout", "implementation", "hexversion")
    ),
    "os": frozenset(("path", "sep", "linesep", "name", "fspath", "PathLike")),
    "threading": frozenset(("Lock", "RLock")),
    "_thread": frozenset(("lock", "RLock", "LockType", "_local")),
    "inspect": frozenset(("signature", "isclass", "isfunction", "ismethod", "Parameter", *FRAMES)),
    "weakref": frozenset(("WeakKeyDictionary",)),
    "platform": frozenset(("python_version", "system", "machine")),
}  # fmt: skip
"""Of other modules, what is the same in all calls."""
_CHANGING = frozenset(
    ("eval", "exec", "compile", "input", "open", "__import__", "globals", "locals", "vars",
     "breakpoint", "hash", "id")
)  # fmt: skip
"""Built-in functions that a program can learn anything by."""
_SETTINGS = _words(
    "seterr geterr seterrcall set_num_threads getcontext setcontext localcontext "
    "setLevel getEffectiveLevel set_default_dtype manual_seed initial_seed set_rng_state "
    "get_rng_state set_printoptions __subclasses__"
)
"""Names of settings that packages keep, and that a program can count by."""
_WEAK = ("weakref", "_weakrefset", "torch.utils.weak")
_OF_CLASS = frozenset(("symgrad_kind", "__module__", "__firstlineno__", "__static_attributes__"))
_HIDDEN = ("__builtins__", "__spec__", "__loader__", "__warningregistry__", "__dict__")
_VIEWS = tuple(map(type, ({}.keys(), {}.values(), {}.items(), type.__dict__)))
_ANY_NAME = frozenset(("getattr", "setattr", "delattr", "__dict__"))
_LIBRARIES = (
    *_HARMLESS,
    "jax",
    "jaxlib",
    "torchvision",
    "triton",
    "pytest",
    "_pytest",
    "hypothesis",
)
_IMMUTABLE = (
    bool, int, float, complex, str, bytes, range, slice, type(None), type(Ellipsis),
    type(NotImplemented), Location,
)  # fmt: skip
_DESCRIPTORS = (
    MethodDescriptorType,
    WrapperDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
)
_STORES = ("STORE_", "DELETE_")


@dataclass(frozen=True)
class CodeNames:
    """What stands in a code object and in those inside of it.

    ``names``: of globals, attributes, free variables; texts that may be names among them.
    ``read``: for each global the attributes that are read of it, None for any other use.
    ``lines``: where a name stands first: where it is stored, else where it is read.
    ``objects``: where ``is`` compares with something else than None, and the global that it
    compares with, if it is one.  ``stored``: the names of attributes that are set;
    ``written``: the globals, with attributes of these, that they are set on; ``marked``: those
    that are set on something else than the first argument.  ``chains``: the globals with the
    attributes that are read of them.  ``unbound``: names that no function binds.
    """

    names: frozenset[str]
    read: Mapping[str, frozenset[str | None]]
    imports: frozenset[str]
    lines: Mapping[str, Location]
    objects: tuple[tuple[Location, str], ...]
    stored: frozenset[str]
    written: Mapping[tuple[str, ...], Location]
    marked: frozenset[str]
    chains: Mapping[tuple[str, ...], Location]
    unbound: frozenset[str]


@functools.lru_cache(maxsize=4096)
def code_names(code: CodeType) -> CodeNames:
    """The names in a code object."""
    texts = {one for one in code.co_consts if type(one) is str and one.isidentifier()}
    names = {*code.co_names, *code.co_freevars, *texts}
    known = _Instructions(code)
    for one in dis.get_instructions(code):
        known.take(one)
    attributes = known.attributes | (texts if "setattr" in names else set())
    for const in code.co_consts:
        if isinstance(const, CodeType):
            inner = code_names(const)
            names |= inner.names
            attributes |= inner.stored
            known.add(inner)
    setting = names & {"setattr", "__setattr__", "__dict__"}
    marked = known.marked | (texts if setting else set())
    read = {name: frozenset(uses) for name, uses in known.read.items()}
    lines = {**known.lines, **known.stored}
    return CodeNames(
        frozenset(names), read, frozenset(known.imports), lines, tuple(known.objects),
        frozenset(attributes), known.written, frozenset(marked), known.chains,
        frozenset(known.unbound),
    )  # fmt: skip


_SILENT = ("CACHE", "EXTENDED_ARG", "PRECALL", "NOP", "RESUME", "PUSH_NULL")
_UNBOUND = ("LOAD_GLOBAL", "LOAD_NAME")
_OUTER = (*_UNBOUND, "LOAD_DEREF")


def _right_of_is(before: dis.Instruction | None) -> str | None:
    """What stands right of ``is``: a global, "" for anything; None for None."""
    if before is not None and before.opname == "LOAD_CONST":
        return None if before.argval is None else "None"
    return str(before.argval) if before is not None and before.opname == "LOAD_GLOBAL" else ""


class _Instructions:
    """What the instructions of a code object say; see ``CodeNames``."""

    def __init__(self, code: CodeType) -> None:
        self.code, self.line = code, code.co_firstlineno
        self.read: dict[str, set[str | None]] = {}
        self.imports: set[str] = set()
        self.lines: dict[str, Location] = {}
        self.stored: dict[str, Location] = {}
        self.objects: list[tuple[Location, str]] = []
        self.attributes: set[str] = set()
        self.marked: set[str] = set()
        self.first = code.co_varnames[0] if code.co_argcount else ""
        self.written: dict[tuple[str, ...], Location] = {}
        self.chains: dict[tuple[str, ...], Location] = {}
        self.unbound: set[str] = set()
        self._chain: tuple[str, ...] = ()
        self._before: dis.Instruction | None = None
        self._loaded: str | None = None

    def take(self, one: dis.Instruction) -> None:
        """Look at the next instruction."""
        self.line = one.starts_line or self.line
        if one.opname in _SILENT:
            return
        where = Location(self.code.co_filename, self.line, self.code.co_name)
        name = one.argval if isinstance(one.argval, str) else None
        if self._loaded is not None:
            is_read = one.opname in ("LOAD_ATTR", "LOAD_METHOD")
            self.read.setdefault(self._loaded, set()).add(name if is_read else None)
        self._loaded = name if one.opname in _OUTER else None
        if one.opname == "IS_OP" and (right := _right_of_is(self._before)) is not None:
            self.objects.append((where, right))
        if name is not None:
            self._name(one.opname, name, where)
        self._chain_on(one.opname, name, where)
        self._before = one

    def _chain_on(self, op: str, name: str | None, where: Location) -> None:
        """Follow the global, and attributes of it, that an attribute may be set on."""
        if op in _OUTER and name is not None:
            called = self._chain == ("setattr",)
            self._end_chain(where)
            self._chain = ("setattr", name) if called else (name,)
            if called:
                self.written.setdefault((name,), where)
        elif op in ("LOAD_ATTR", "LOAD_METHOD") and self._chain and name is not None:
            self._chain = (*self._chain, name)
            if self._chain[0] == "setattr":
                self.written.setdefault(self._chain[1:], where)
        else:
            if op == "STORE_ATTR" and self._chain:
                self.written.setdefault(self._chain, where)
            self._end_chain(where)
            self._chain = ()

    def _end_chain(self, where: Location) -> None:
        if self._chain and self._chain[0] != "setattr":
            self.chains.setdefault(self._chain, where)

    def _name(self, op: str, name: str, where: Location) -> None:
        (self.stored if op.startswith(_STORES) else self.lines).setdefault(name, where)
        if op == "STORE_ATTR":
            self.attributes.add(name)
            loaded = self._before.argval if self._before is not None else None
            on_first = loaded == self.first or (isinstance(loaded, tuple) and self.first in loaded)
            self.marked |= set() if self.first and on_first else {name}
        elif op == "IMPORT_NAME":
            self.imports.add(name)
        elif op in _UNBOUND:
            self.unbound.add(name)

    def add(self, inner: CodeNames) -> None:
        """What stands in a code object inside of this one."""
        self.imports |= inner.imports
        self.marked |= inner.marked
        self.unbound |= inner.unbound
        self.objects += inner.objects
        for chain, where in inner.written.items():
            self.written.setdefault(chain, where)
        for chain, where in inner.chains.items():
            self.chains.setdefault(chain, where)
        for name, uses in inner.read.items():
            self.read.setdefault(name, set()).update(uses)
        for name, where in inner.lines.items():
            self.lines.setdefault(name, where)


# -- places


@dataclass(eq=False)
class Place:
    """A container and what is kept in it.

    ``label``: what the program calls it; ``before``: what was in it, by key.  ``read`` and
    ``write`` reach what is in it now; ``whole``: all keys are looked at, and not some names.
    ``current``: what stands in the place of a container.
    """

    holder: Any
    label: str
    before: dict[Any, Any]
    read: Callable[[], dict[Any, Any]]
    write: Callable[[Any, Any], None]
    whole: bool = True
    kind: str = "attribute"
    current: Any = None

    def name(self, key: Any) -> str:
        """What the program calls a part of it."""
        if self.kind in ("cell", "cache"):
            return self.label
        if self.kind == "item":
            return f"{self.label}[{_key_text(key)}]"
        return f"{self.label}.{key}" if self.label else str(key)


def _key_text(key: Any) -> str:
    return repr(key) if isinstance(key, (str, int)) else "..."


@dataclass(eq=False)
class Leaf:
    """A value that is no container, of which only a copy of the state can be compared."""

    value: Any
    label: str
    state: Any


def _result(entry: Any) -> Any:
    """What ``functools.lru_cache`` keeps: a result, or a link with one at its end."""
    if type(entry).__name__ != "_lru_list_elem":
        return entry
    return gc.get_referents(entry)


def _nothing(key: Any, value: Any) -> None:
    """Put nothing."""


def _namespace(names: dict[str, Any], keys: Iterable[str] | None) -> Callable[[], dict[str, Any]]:
    if keys is None:
        return lambda: dict(names)
    known = tuple(keys)
    return lambda: {key: names[key] for key in known if key in names}


def _writer(names: Any) -> Callable[[Any, Any], None]:
    def write(key: Any, value: Any) -> None:
        if value is ABSENT:
            names.pop(key, None)
        else:
            names[key] = value

    return write


def _item_writer(values: Any) -> Callable[[Any, Any], None]:
    def write(key: Any, value: Any) -> None:
        if isinstance(key, int) and key < len(values) and value is not ABSENT:
            values[key] = value

    return write


def _member_writer(values: Any) -> Callable[[Any, Any], None]:
    def write(key: Any, value: Any) -> None:
        (values.discard if value is ABSENT else values.add)(key)

    return write


def _attribute_writer(owner: Any) -> Callable[[Any, Any], None]:
    def write(key: Any, value: Any) -> None:
        if value is ABSENT:
            if hasattr(owner, key):
                delattr(owner, key)
        else:
            setattr(owner, key, value)

    return write


def _set_by_others(space: Mapping[str, Any], chain: tuple[str, ...]) -> Read | None:
    """A plain attribute of a class that a function of the same module sets between calls."""
    owner = space.get(chain[0])
    if len(chain) != 2 or not isinstance(owner, type) or owner.__module__ != space.get("__name__"):
        return None
    value = vars(owner).get(chain[1], ABSENT)
    if type(value) not in (bool, int, float, str):
        return None
    others = (
        one for thing in space.values()
        for one in (vars(thing).values() if isinstance(thing, type) else (thing,))
        if thing is not owner and isinstance(one, FunctionType)
    )  # fmt: skip
    found = (code_names(one.__code__) for one in others)
    if any(chain[:1] in one.written and chain[1] in one.stored for one in found):
        return Read(f"{'.'.join(chain)} is {value!r}, as when it was judged", True)
    return None


@dataclass(eq=False)
class Reach:
    """What can be reached.

    ``places`` and ``leaves``: where something may be kept; ``asked``: what is read that is not the
    same in every call; ``told``: what is read of the machine and of settings.  ``names``: of all
    code.  ``functions``: those that were met, their ``codes``, and ``spaces``, their globals;
    ``cached``: those that keep their results.  ``fixed``: the identities of what is reached
    otherwise than by a place.  ``identities``: the names of ``operator.is_``; ``numbers``: of
    parameters that are numbers.
    """

    places: list[Place] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    functions: list[FunctionType] = field(default_factory=list)
    codes: list[CodeType] = field(default_factory=list)
    spaces: list[dict[str, Any]] = field(default_factory=list)
    told: list[Asked] = field(default_factory=list)
    cached: list[Any] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    fixed: set[int] = field(default_factory=set)
    identities: list[str] = field(default_factory=list)
    numbers: set[str] = field(default_factory=set)
    _seen: dict[int, Any] = field(default_factory=dict)
    _modules: dict[int, tuple[ModuleType, str, set[str]]] = field(default_factory=dict)
    _globals: dict[int, tuple[Place, set[str]]] = field(default_factory=dict)
    _libraries: dict[int, ModuleType] = field(default_factory=dict)
    _count: int = 0

    def where(self, label: str) -> Location | None:
        """The line that changes, or else names, what the program calls so."""
        words = [word for word in _in_label(label) if word.isidentifier()]
        for word in reversed(words):
            found = [code_names(code).lines.get(word) for code in self.codes]
            stored = [one for code in self.codes if (one := _stored(code, word)) is not None]
            known = [one for one in (*stored, *found) if one is not None]
            if known:
                return known[0]
        return None

    @property
    def may_keep(self) -> bool:
        """Is there a dictionary, a set or a cache that can keep something by sizes?"""
        return bool(self.cached) or any(type(one.holder) in (dict, set) for one in self.places)

    @property
    def objects(self) -> list[Location]:
        """The lines that ask which object something is."""
        return [where for code in self.codes for where, _ in code_names(code).objects]

    @property
    def marked(self) -> frozenset[str]:
        """The attributes that are set on something else than ctx."""
        return frozenset().union(*(code_names(code).marked for code in self.codes))

    @property
    def tensors(self) -> list[Location]:
        """The lines that may ask which object a tensor is."""
        found = []
        for code, space in zip(self.codes, self.spaces, strict=True):
            known = code_names(code)
            found += [where for where, name in known.objects if not _is_no_tensor(name, space)]
            asking = ("is_", "is_not", *self.identities)
            found += [known.lines[name] for name in asking if name in known.lines]
        return found

    @property
    def tells_saved(self) -> bool:
        """May the code tell a tensor from another object for it: by ``is``, by what it sets?"""
        return bool(self.tensors or self.marked)

    def compare_numbers(self) -> None:
        """Note where numbers are compared by identity."""
        asking = {word for label in self.identities for word in _in_label(label)[-1:]}
        for what, where in compared(self.codes, self.spaces, self.numbers, asking):
            if what == ASKED:
                self.asked.append(Asked(what, where))
            else:
                self.told.append(Asked(str(Asked(what, where)), None))

    # -- following

    def function(self, function: Any) -> None:
        """Everything that a Function reaches."""
        own = class_of(function)
        for one in own.__mro__:
            if not _is_library(one.__module__):
                self.follow(one, one.__name__)
        for name in METHODS:
            self.follow(raw_method(own, name)[0], name)
        for reference in references():
            self.follow(reference, getattr(reference, "__name__", "a reference"))
        self._shared_classes(own)
        self._finish()

    def _shared_classes(self, own: type[Function]) -> None:
        """The classes of tensors and of ctx, where the code sets something on anything but ctx."""
        marked = self.marked
        if not marked:
            return
        guest = own.symgrad_guest
        kinds = loaded_tensors()
        if guest is not None:
            kinds = (guest.public(parameter=False), guest.public(parameter=True))
            context = guest.context(own)
            kinds = kinds if context is None else (*kinds, context)
        names = None if "setattr" in self.names else marked
        for kind in kinds:
            space = vars(kind)
            read = _namespace(space, names)  # type: ignore[arg-type]
            self._add(Place(kind, kind.__name__, {}, read, _attribute_writer(kind), whole=False))

    def context(self, ctx: Any) -> None:
        """Everything that was set on a ctx."""
        names = vars(ctx)
        if set(_public(type(ctx))) - _OF_CLASS and not issubclass(type(ctx), Function):
            said = "an attribute of the class of ctx is set, which all calls share"
            self.asked.append(Asked(said, self.where("ctx")))
        self._add(Place(names, "ctx", {}, lambda: attributes_of(ctx), _writer(names)))

    def follow(self, value: Any, label: str, *, fixed: bool = True) -> None:
        """A value and all that is reached from it.

        ``fixed``: it is not found in a place, where something else could be put.
        """
        kind = type(value)
        if kind in _IMMUTABLE or isinstance(value, SymbolicTensor) or _is_shape(kind):
            return
        if fixed:
            self.fixed.add(id(value))
        if id(value) in self._seen:
            return
        self._count += 1
        if self._count > MOST_STATE:
            if self._count == MOST_STATE + 1:
                self.asked.append(Asked(f"it reaches more than {MOST_STATE} objects", None))
            return
        self._seen[id(value)] = value
        if isinstance(value, ModuleType):
            self._module(value, label, frozenset())
        elif isinstance(value, FunctionType):
            self._function(value, label)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, (BuiltinFunctionType, *_DESCRIPTORS)):
            self._builtin(value, label)
        else:
            self._object(value, label)

    def _function(self, value: FunctionType, label: str) -> None:
        compiled = vars(value).get("_torchdynamo_orig_callable")
        if compiled is not None:  # what torch.compile made: the same function
            self.follow(compiled, label)
            return
        if hasattr(value, "__wrapped__"):
            self.follow(value.__wrapped__, label)
        if hasattr(value, "__wrapped__") or _is_standard(value.__globals__.get("__name__")):
            for one in gc.get_referents(*(value.__closure__ or ())):
                self.follow(one, label)
        if _is_library(value.__module__) or _is_library(value.__globals__.get("__name__")):
            return
        if _is_standard(value.__module__):
            self._refuse(value.__module__, label)
            return
        self.functions.append(value)
        self.codes.append(value.__code__)
        self.spaces.append(value.__globals__)
        found = code_names(value.__code__)
        self.names |= found.names
        own = value.__name__
        self._add(Place(value, own, {}, lambda: dict(vars(value)), _writer(vars(value))))
        if value.__defaults__:
            self._add(_defaults(value))
        if value.__kwdefaults__:
            named = value.__kwdefaults__
            self._add(Place(named, "", {}, lambda: dict(named), _writer(named)))
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        for name, cell in cells:
            self._cell(cell, name)
        self._read(value, found)
        self._optimised(value)

    def _read(self, value: FunctionType, found: CodeNames) -> None:
        """The names that a function reads of its module."""
        space = value.__globals__
        known = self._globals.get(id(space))
        if known is None:
            place = Place(space, "", {}, dict, _writer(space), whole=False)
            known = self._globals[id(space)] = (place, set())
            self.places.append(place)
        new = {name for name in found.names if name not in known[1]}
        known[1].update(new)
        place = known[0]
        place.read = _namespace(space, known[1])
        for name in new:
            if name in space:
                place.before[name] = space[name]
        for name, uses in found.read.items():
            thing = space.get(name, getattr(builtins, name, ABSENT))
            if isinstance(thing, ModuleType):
                self._module(thing, name, uses)
            elif name in found.unbound - space.keys() and name in _CHANGING:
                self.asked.append(Asked(f"{name}() is called", found.lines.get(name)))
        for name in new:
            if name in space and not isinstance(space[name], ModuleType):
                self.follow(space[name], name, fixed=False)
        for name in found.imports:
            self._import(name)
        self._settings(space, found)

    def _optimised(self, value: FunctionType) -> None:
        """What a function does by ``python -O`` only."""
        self.numbers.update(parameters_of(value))
        for text, where in asks_optimisation(value.__code__, value.__globals__):
            self.told.append(Asked(text, where))

    def _settings(self, space: Mapping[str, Any], found: CodeNames) -> None:
        """What a function reads and sets of packages that all calls share."""
        for name in sorted(found.names & _SETTINGS):
            said = f"{name} is used, a setting that all calls share"
            self.asked.append(Asked(said, found.lines.get(name)))
        for name in sorted(found.names & ABOUT_THE_TRACE):
            said = f"{name} is used, which tells of the trace"
            self.asked.append(Asked(said, found.lines.get(name)))
        for chain, where in found.chains.items():
            read = surroundings(space, chain) or _set_by_others(space, chain)
            if read is not None:
                (self.told if read.known else self.asked).append(Asked(read.text, where))
        for module in sorted(found.imports & sys.modules.keys()):
            for name in sorted(found.names):
                read = surroundings({module: sys.modules[module]}, (module, name))
                if read is not None and read.known:
                    self.told.append(Asked(read.text, found.lines.get(name)))
        for name in sorted(found.names & _TELLING) if "jax" in sys.modules else ():
            if _names_of_jax(name, space):
                said = f"{name} is used, by which a program can tell a trace from a call"
                self.asked.append(Asked(said, found.lines.get(name)))
        for chain, where in found.written.items():
            if _is_of_library(space, chain):
                said = f"an attribute of {'.'.join(chain)} is set, which all calls share"
                self.asked.append(Asked(said, where))

    def _import(self, name: str) -> None:
        root = name.partition(".")[0]
        if _is_library(root):
            if name in sys.modules:
                self._libraries[id(sys.modules[name])] = sys.modules[name]
            return
        if _is_standard(root):
            names = {one for code in self.codes for one in code_names(code).names}
            self._module_of_library(root, name, set(names & _known_attributes(root)))
        elif name in sys.modules:
            self._module(sys.modules[name], name, frozenset((None,)))

    def _module(self, module: ModuleType, label: str, uses: frozenset[str | None]) -> None:
        root = module.__name__.partition(".")[0]
        if _is_library(root) or module is builtins:
            self._libraries[id(module)] = module
            self._of_library(module, label, uses)
        elif _is_standard(root):
            self._module_of_library(root, label, set(uses))
        else:
            self._modules.setdefault(id(module), (module, label, set()))

    def _of_library(self, module: ModuleType, label: str, uses: frozenset[str | None]) -> None:
        draws = module.__name__.endswith(".random") and not module.__name__.startswith("jax.")
        if module is importlib or draws or (
            "random" in uses and module.__name__ in ("numpy", "torch")
        ):  # fmt: skip
            self._refuse(f"{module.__name__.removesuffix('.random')}.random", label)

    def _module_of_library(self, root: str, label: str, uses: set[str | None]) -> None:
        if not uses or uses - _known_attributes(root):
            self._refuse(root, label)

    def _refuse(self, module: str, label: str) -> None:
        said = f"the module {module} is used, which may answer differently in every call"
        if all(one.what != said for one in self.asked):
            self.asked.append(Asked(said, self.where(label)))

    def _builtin(self, value: Any, label: str) -> None:
        if isinstance(value, MemberDescriptorType):  # a slot, which holds nothing itself
            return
        if value in (operator.is_, operator.is_not):
            self.identities.append(label)
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, ModuleType):
            self.follow(owner, label)
            return
        module = getattr(value, "__module__", None) or getattr(
            getattr(value, "__objclass__", None), "__module__", None
        )
        name = getattr(value, "__name__", label)
        if module == "builtins" and name in _CHANGING:
            self.asked.append(Asked(f"{name}() is kept as {label}", self.where(label)))
        elif module is not None and not _is_library(module):
            root = _package(module)
            root = {"posix": "os", "nt": "os", "_random": "random"}.get(root, root)
            if name not in _known_attributes(root):
                self._refuse(root, label)

    def _class(self, value: type) -> None:
        if _is_library(value.__module__):
            return
        if _is_standard(value.__module__):
            root = value.__module__.partition(".")[0]
            if value.__name__ not in _known_attributes(root):
                self._refuse(root, value.__name__)
            return
        self.follow(type(value), type(value).__name__)
        for one in value.__mro__[1:]:
            if not _is_library(one.__module__):
                self.follow(one, one.__name__)
        self._add(
            Place(value, value.__name__, {}, lambda: _public(value), _attribute_writer(value))
        )

    def _cell(self, cell: CellType, name: str) -> None:
        if id(cell) in self._seen:
            return
        self._seen[id(cell)] = cell

        def read() -> dict[Any, Any]:
            try:
                return {name: cell.cell_contents}
            except ValueError:  # it is not bound yet
                return {}

        def write(key: Any, value: Any) -> None:
            if value is ABSENT:
                del cell.cell_contents
            else:
                cell.cell_contents = value

        self._add(Place(cell, name, {}, read, write, kind="cell"))

    def _object(self, value: Any, label: str) -> None:
        parts = _parts(value)
        if parts is not None:
            for one in parts:
                if one is type or type(one).__name__ == "tensortype":
                    said = f"{label} keeps {getattr(one, '__name__', one)}, which asks for classes"
                    self.asked.append(Asked(said, self.where(label)))
                self.follow(one, label)
        elif hasattr(type(value), "cache_clear"):
            self._keeping(value, label)
        elif type(value).__module__ in _WEAK:
            said = f"{label} keeps what it is given for as long as that lives"
            self.asked.append(Asked(said, self.where(label)))
        elif isinstance(value, np.ndarray) or _is_tensor(value):
            self.leaves.append(Leaf(value, label, state_of_leaf(value)))
        elif isinstance(value, MutableMapping):
            self._items(value, label, _writer)
            self._instance(value, label)
        elif isinstance(value, MutableSequence):
            self._items(value, label, _item_writer)
            self._instance(value, label)
        elif isinstance(value, (set, MutableSet)):
            self._items(value, label, _member_writer)
        else:
            self._instance(value, label)

    def _items(self, value: Any, label: str, writer: Callable[[Any], Callable[..., None]]) -> None:
        """A container with keys."""
        place = Place(value, label, {}, dict, writer(value), kind="item")

        def held() -> Any:
            return value if place.current is None else place.current

        place.read = lambda: raw_items(held())
        place.write = lambda key, item: writer(held())(key, item)
        self._add(place)

    def _instance(self, value: Any, label: str) -> None:
        """The attributes of an object, or what else its state is."""
        kind = type(value)
        if _is_random(kind):
            self._refuse(kind.__module__.partition(".")[0] + ".random", label)
            return
        if hasattr(kind, "__next__") or kind in _VIEWS:
            for one in gc.get_referents(value):
                self.follow(one, label)
        if isinstance(value, (operator.attrgetter, operator.methodcaller)):
            self.names.add("getattr")
        kept_by_us = hasattr(kind, "__next__") or kind is memoryview
        if _is_library(kind.__module__) and not kept_by_us:
            kept = kind.__module__ in ("types", "collections", "enum", "dataclasses", "functools")
            if not kept or isinstance(value, functools.partial):
                return
        names = getattr(value, "__dict__", None)
        if isinstance(names, dict):
            self._add(Place(names, label, {}, lambda: dict(names), _writer(names)))
        slots = [
            one for base in kind.__mro__ for one, found in vars(base).items()
            if isinstance(found, MemberDescriptorType) and not _is_library(base.__module__)
        ]  # fmt: skip
        if slots:
            read = lambda: {k: v for k in slots if (v := getattr(value, k, ABSENT)) is not ABSENT}  # noqa: E731
            self._add(Place(value, label, {}, read, _attribute_writer(value)))
        if not isinstance(names, dict) and not slots:
            self.leaves.append(Leaf(value, label, state_of_leaf(value)))
        self.follow(kind, label)

    def _keeping(self, value: Any, label: str) -> None:
        """A function that keeps its results."""
        self.cached.append(value)
        self.follow(getattr(value, "__wrapped__", None), label)

        def read() -> dict[Any, Any]:
            tables = [one for one in gc.get_referents(value) if type(one) is dict]
            found = [one for table in tables for one in table.values()]
            return {number: _result(one) for number, one in enumerate(found)}

        self._add(Place(value, f"the cache of {label}", {}, read, _nothing, kind="cache"))

    def _add(self, place: Place) -> None:
        place.before = place.read()
        self.places.append(place)
        for key, item in list(place.before.items()):
            if not (isinstance(key, str) and key in _HIDDEN):
                self.follow(item, place.name(key), fixed=place.kind == "cache")
            if place.kind == "item" and type(key) not in _IMMUTABLE:
                self.follow(key, place.label)

    def _finish(self) -> None:
        """The modules that are reached as values: what any code names of them."""
        stored = {name for code in self.codes for name in code_names(code).stored}
        done: set[Any] = set()
        while stored and (left := [one for one in self._libraries if one not in done]):
            done |= {*left}  # what is reached from a library may be another one
            for one in left:
                library = self._libraries[one]
                space = vars(library)
                names = _namespace(space, stored)
                self._add(Place(space, library.__name__, {}, names, _writer(space), whole=False))
        if "grad_fn" in self.names and self.objects:
            said = "it asks which object a grad_fn may be"
            self.asked.append(Asked(said, self.where("grad_fn")))
        if self.cached and "cache_info" in self.names:
            said = "cache_info() is called, which each call changes"
            self.asked.append(Asked(said, self.where("cache_info")))
        while True:
            new = False
            for module, label, known in list(self._modules.values()):
                wanted = (
                    {name for name in vars(module) if not name.startswith("__")}
                    if self.names & _ANY_NAME else self.names & vars(module).keys()
                )  # fmt: skip
                more = wanted - known
                if not more:
                    continue
                new = True
                known |= more
                space = vars(module)
                place = Place(
                    space, label, {}, _namespace(space, more), _writer(space), whole=False
                )
                self._add(place)
            if not new:
                return


def _in_label(label: str) -> list[str]:
    return label.replace("[", ".").replace("]", ".").replace("'", "").split(".")


@functools.lru_cache(maxsize=4096)
def _stored(code: CodeType, name: str) -> Location | None:
    """The line that stores a name."""
    line = code.co_firstlineno
    for one in dis.get_instructions(code):
        line = one.starts_line or line
        if one.argval == name and one.opname.startswith(_STORES):
            return Location(code.co_filename, line, code.co_name)
    inner = (_stored(one, name) for one in code.co_consts if isinstance(one, CodeType))
    return next((found for found in inner if found is not None), None)


def _defaults(function: FunctionType) -> Place:
    """The defaults of a function's parameters."""
    code, count = function.__code__, len(function.__defaults__ or ())
    names = code.co_varnames[code.co_argcount - count : code.co_argcount]

    def read() -> dict[Any, Any]:
        return dict(zip(names, function.__defaults__ or (), strict=False))

    def write(key: Any, value: Any) -> None:
        function.__defaults__ = tuple({**read(), key: value}.values())

    return Place(function.__code__, "", {}, read, write)


def _public(owner: type) -> dict[str, Any]:
    hidden: tuple[str, ...] = (
        "__dict__",
        "__weakref__",
        "__doc__",
        "__module__",
        "__annotations__",
        "__slots__",
    )
    if hasattr(owner, "__dataclass_fields__"):
        hidden = (*hidden, "__hash__", "__dataclass_fields__", "__dataclass_params__")
    return {
        name: value for name, value in vars(owner).items()
        if name not in hidden and not _is_generated(owner, value)
    }  # fmt: skip


def _is_generated(owner: type, value: Any) -> bool:
    """Is it a method that ``dataclass`` has written, which does nothing but read fields?"""
    code = getattr(value, "__code__", None)
    return (
        hasattr(owner, "__dataclass_fields__") and isinstance(code, CodeType)
        and code.co_filename == "<string>" and value.__name__.startswith("__")
    )  # fmt: skip


def _is_shape(kind: type) -> bool:
    """Is it a shape of ours, which holds sizes alone, and says when it is unpacked?"""
    return kind.__module__ in ("symgrad.frontend.sizes", "symgrad.frontend.anyrank.shape")


def _parts(value: Any) -> Iterable[Any] | None:
    """What a value is made of that is made once; None where it is no such value."""
    if isinstance(value, (staticmethod, classmethod)):
        return (value.__func__,)
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, property):
        return value.fget, value.fset, value.fdel
    if isinstance(value, functools.cached_property):
        return (value.func,)
    if isinstance(value, functools.partial):
        return value.func, *value.args, *value.keywords.values()
    return value if isinstance(value, (tuple, frozenset)) else _of_jax(value)


_TELLING = _words(
    "Tracer is_concrete ensure_compile_time_eval trace_state_clean default_backend process_index "
    "local_devices device_count local_device_count"
)
"""Names in JAX that tell a trace from a call, or one machine from another."""


def _names_of_jax(name: str, space: Mapping[str, Any]) -> bool:
    """May a name be one of JAX's, in a module with these globals?"""
    value = space.get(name)
    if value is not None:
        return (getattr(value, "__module__", None) or "").partition(".")[0] in ("jax", "jaxlib")
    return any(
        isinstance(one, ModuleType) and one.__name__.partition(".")[0] == "jax"
        for one in list(space.values())
    )


def _of_jax(value: Any) -> Iterable[Any] | None:
    """The functions of the user's in an object of JAX's; None for what is no such object."""
    if (type(value).__module__ or "").partition(".")[0] not in ("jax", "jaxlib"):
        return None
    rules = ("fun", "fwd", "bwd", "jvp", "__wrapped__")
    names = getattr(value, "__dict__", {})
    return [names[name] for name in rules if callable(names.get(name))]


def _is_of_library(space: Mapping[str, Any], chain: tuple[str, ...]) -> bool:
    """Does a global, with attributes of it, belong to a package?"""
    value = space.get(chain[0], getattr(builtins, chain[0], None))
    for name in chain[1:]:
        inner = inspect.getattr_static(value, name, ABSENT)
        if inner is ABSENT and isinstance(value, ModuleType):
            return _is_library(value.__name__)
        value = inner
    if isinstance(value, ModuleType):  # what is set on one that the code names is looked at
        plain = len(chain) == 1 and type(value) is ModuleType
        return not plain and _is_library(value.__name__)
    if type(value) in _IMMUTABLE or _is_tensor(value):
        return False
    owner = value if isinstance(value, (type, FunctionType)) else type(value)
    known = ("builtins", "types", "enum", "functools", "collections", "dataclasses")
    return owner.__module__ not in known and _is_library(owner.__module__)


def _is_no_tensor(name: str, space: Mapping[str, Any]) -> bool:
    """Is it a constant or a global that is no tensor, and is no place for one?"""
    if name in ("", "None"):
        return bool(name)
    value = space.get(name, getattr(builtins, name, None))
    return isinstance(value, (type, *_IMMUTABLE)) and value is not None


def _is_tensor(value: Any) -> bool:
    return hasattr(type(value), "requires_grad")


def _is_random(kind: type) -> bool:
    roots = {one.__module__ for one in kind.__mro__}
    return any(one in ("random", "_random") or one.startswith("numpy.random") for one in roots)


@functools.lru_cache(maxsize=4096)
def _package(module: Any) -> str:
    """The package of a ``__module__``; empty for what is no name: a class may have any there."""
    return module.partition(".")[0] if isinstance(module, str) else ""


def _is_library(module: Any) -> bool:
    """Is it of a package that is taken to be the same in every call?"""
    return _package(module) in _LIBRARIES


def _is_standard(module: Any) -> bool:
    return _package(module) in sys.stdlib_module_names


def _known_attributes(root: str) -> frozenset[str]:
    return _ATTRIBUTES.get(root, frozenset())


def state_of_leaf(value: Any) -> Any:
    """Something that is equal where a value without attributes is the same."""
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tobytes() if value.dtype != object else None
    if _is_tensor(value):
        try:
            array = value.detach().numpy()
            return array.shape, str(array.dtype), array.tobytes()
        except Exception:
            return getattr(value, "_version", None)
    if isinstance(value, memoryview):
        return value.tobytes()
    if isinstance(value, GeneratorType):
        frame = value.gi_frame
        return None if frame is None else (frame.f_lasti, _frozen(dict(frame.f_locals)))
    if type(value).__name__ == "count":
        return repr(value)
    try:
        return _frozen(value.__reduce_ex__(2))
    except Exception:
        return None


def _frozen(value: Any, depth: int = 6) -> Any:
    if type(value) in _IMMUTABLE or not depth:
        return value if type(value) in _IMMUTABLE else id(value)
    if isinstance(value, (tuple, list)):
        return tuple(_frozen(item, depth - 1) for item in value)
    if isinstance(value, dict):
        return tuple((_frozen(k, depth - 1), _frozen(v, depth - 1)) for k, v in value.items())
    if hasattr(value, "__next__"):
        return state_of_leaf(value)
    return id(value)


def reached(function: Any) -> Reach:
    """What a Function reaches."""
    found = Reach()
    found.function(function)
    found.compare_numbers()
    return found


def by_identity(space: Mapping[Any, Any]) -> dict[Any, tuple[Any, Any]]:
    """The items of a namespace, by what tells keys apart without asking them."""
    return {_identity(key): (key, value) for key, value in space.items()}


def _identity(key: Any) -> Any:
    if type(key) is tuple:
        return tuple(map(_identity, key))
    return key if type(key) in _IMMUTABLE else id(key)
