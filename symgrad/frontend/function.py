"""``sg.Function``: PyTorch's contract for an operation with a backward of its own.

In: a class with ``forward`` and ``backward``.  Out: how to call them, in whichever style they
are written.

Styles: static methods with ctx first; static ``forward`` without ctx and ``setup_context``; class
methods; methods of an instance, which then is the ctx itself.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType
from typing import Any, ClassVar, TypeVar

from symgrad.budgets import KEPT_DEPTH
from symgrad.errors import Location, ProtocolError, SpecError, counted
from symgrad.frontend.caller import asker, here
from symgrad.frontend.complexes import ComplexTensor
from symgrad.frontend.guests import Guest, taken
from symgrad.frontend.questions import note_limit, observed, questions
from symgrad.frontend.session import Session, active
from symgrad.frontend.sizes import Shape, SymFloat
from symgrad.frontend.source_text import dedented, source_text
from symgrad.frontend.sparse import SparseTensor
from symgrad.frontend.table import FUNCTIONS
from symgrad.frontend.tensor import GIVEN, SelectedTensor, SymbolicTensor, own_names
from symgrad.frontend.unsupported import missing_op
from symgrad.interpreters import interpreter_of
from symgrad.ir.assume import joined
from symgrad.ir.function import InnerCall


class SavedTypeError(ProtocolError, TypeError):
    """Something else than a tensor was given to ``save_for_backward``."""


@dataclass
class ContextState:
    """What was said through ctx.  ``saved_at``: the calls of ``save_for_backward``.

    ``dirty_at``: the call of ``mark_dirty``.
    """

    saved: tuple[Any, ...] = ()
    saved_at: tuple[Location, ...] = ()
    dirty_at: Location | None = None
    dirty: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    materialize: bool = True
    saved_forward: tuple[Any, ...] = ()
    pushing: bool = False
    primals: tuple[Any, ...] = ()
    outputs: int = 0

    @property
    def tensors(self) -> tuple[Any, ...]:
        """What was saved, as backward reads it; while ``pushing``, as jvp does."""
        return self.saved_forward if self.pushing else self.saved


def _assigned(name: str, method: Callable[..., None]) -> property:
    """The attribute that PyTorch's own ``method`` assigns; to assign it is to call the method."""

    def read(ctx: Context) -> None:
        observed(f"ctx.{name} is read, which PyTorch keeps for itself")

    def assign(ctx: Context, value: Any) -> None:
        method(ctx, *(value if isinstance(value, tuple) else (value,)))

    return property(read, assign)


class Context:
    """The first argument of forward and backward, as in PyTorch.

    Any attribute may be set on it.  ``needs_input_grad``: for each argument of forward, whether
    its gradient is asked for.
    """

    __slots__ = ("__dict__", "__weakref__", "_needs_input_grad", "_symgrad_state")
    _needs_input_grad: tuple[bool, ...]
    _symgrad_state: ContextState
    symgrad_kind: type | None = None

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """What forward was called for; nothing before that."""
        return getattr(self, "_needs_input_grad", ())

    @needs_input_grad.setter
    def needs_input_grad(self, value: tuple[bool, ...]) -> None:
        self._needs_input_grad = value

    @property
    def __class__(self) -> type:
        """What ``isinstance`` asks: the program knows ctx by the class of its library."""
        kind = type(self).symgrad_kind
        return type(self) if kind is None or asker() is None else kind

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("the class of ctx cannot be set")

    def __getattr__(self, name: str) -> Any:
        kind = type(self).symgrad_kind
        if kind is not None and asker() is not None:
            if name in vars(kind):
                return getattr(kind, name)
            if hasattr(kind, name):
                raise note_limit(missing_op(f"ctx.{name}", here()))
        raise AttributeError(f"{(kind or type(self)).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        observed("the text of ctx is asked for")
        return object.__repr__(self)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for backward, which finds them in ``saved_tensors``."""
        _check_saved("save_for_backward", tensors)
        state = state_of(self)
        state.saved = tensors
        state.saved_at = (*state.saved_at, *filter(None, [here()]))

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for ``jvp``, which finds them in ``saved_tensors``."""
        _check_saved("save_for_forward", tensors)
        state_of(self).saved_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` kept; nothing while forward is running, as in torch."""
        known, state = questions(), state_of(self)
        forward = known is not None and not known.backward and not state.pushing
        if forward or (known is not None and state.pushing):
            return () if forward else state.tensors
        return tuple(map(_unpacked, state.tensors))

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of ``saved_tensors``."""
        return self.saved_tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which inputs forward changed in place."""
        _check_tensors("mark_dirty", tensors)
        state_of(self).dirty, state_of(self).dirty_at = tensors, here()

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which outputs have no gradient."""
        _check_tensors("mark_non_differentiable", tensors)
        state_of(self).non_differentiable = tensors

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Nothing: PyTorch once asked for it."""

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (True) or None for outputs without a cotangent."""
        state_of(self).materialize = bool(value)

    to_save = _assigned("to_save", save_for_backward)

    @property
    def saved_for_forward(self) -> tuple[Any, ...] | None:
        """What ``save_for_forward`` kept; to assign it is to call that."""
        return state_of(self).saved_forward or None

    @saved_for_forward.setter
    def saved_for_forward(self, value: Any) -> None:
        self.save_for_forward(*(value if isinstance(value, tuple) else (value,)))

    dirty_tensors = _assigned("dirty_tensors", mark_dirty)
    non_differentiable = _assigned("non_differentiable", mark_non_differentiable)
    materialize_grads = _assigned("materialize_grads", set_materialize_grads)

    def maybe_clear_saved_tensors(self) -> None:
        """Nothing: a trace keeps what was saved."""

    def name(self) -> str:
        """The name of the backward node, as PyTorch says it."""
        return f"{type(self).__name__}Backward"


def _unpacked(tensor: Any) -> Any:
    """A saved tensor as backward gets it: torch makes another one of an output, each time.

    Of any other one torch does so where hooks pack what is saved.  Which of both a program gets is
    told apart only where its code may ask (``Questions.keeps``); elsewhere it is another one, so
    that ``in`` and the comparison of containers have to compare values.
    """
    known = questions()
    if known is None or not isinstance(tensor, SymbolicTensor):
        return tensor
    is_output = any(tensor is one for one in known.returned)
    if not is_output or id(tensor.storage) in known.inputs:
        if known.hooked:
            return tensor.unmarked()
        return tensor if known.keeps else tensor.again()
    made = tensor.unmarked() if isinstance(tensor, SelectedTensor) else tensor.shared()
    own_names(made)[GIVEN] = True
    return made


def _check_saved(method: str, tensors: tuple[Any, ...]) -> None:
    """Raises SavedTypeError for what is neither a tensor nor None."""
    for position, tensor in enumerate(tensors):
        if tensor is not None and not hasattr(type(tensor), "requires_grad"):
            raise SavedTypeError(
                f"{method} can only save variables, but argument {position} is of type "
                f"{type(tensor).__name__}", location=here(),
                hint=f"a {type(tensor).__name__} is taken apart by a star: ctx.{method}(*values)"
                if isinstance(tensor, (list, tuple))
                else "set anything else as an attribute: ctx.name = value",
            )  # fmt: skip


def _check_tensors(method: str, tensors: tuple[Any, ...]) -> None:
    """Raises ProtocolError for what is no tensor."""
    for position, tensor in enumerate(tensors):
        if not hasattr(type(tensor), "requires_grad"):
            raise ProtocolError(
                f"{method} takes tensors, but argument {position} is of type "
                f"{type(tensor).__name__}", location=here(), hint=f"ctx.{method}(x, y)",
            )  # fmt: skip


def state_of(ctx: Context) -> ContextState:
    """What was said through a ctx so far."""
    try:
        return ctx._symgrad_state
    except AttributeError:
        ctx._symgrad_state = ContextState()
        return ctx._symgrad_state


def attributes_of(ctx: Context) -> dict[str, Any]:
    """The attributes that the user set on a ctx, in order."""
    return dict(ctx.__dict__)


def kept_tensors(ctx: Context) -> list[SymbolicTensor]:
    """Every tensor that a ctx keeps: saved ones, and those in attributes, lists and dicts."""
    found: list[SymbolicTensor] = []
    todo: list[Any] = [*state_of(ctx).saved, *attributes_of(ctx).values()]
    depth = 0
    while todo and depth < KEPT_DEPTH:
        inner: list[Any] = []
        for value in todo:
            if isinstance(value, ComplexTensor):
                inner.append(value.pairs)
            elif isinstance(value, SparseTensor):
                inner.extend((value.places, value.elements))
            elif isinstance(value, SymbolicTensor):
                if not any(value is known for known in found):
                    found.append(value)
            elif isinstance(value, (list, tuple)) and not isinstance(value, Shape):
                inner.extend(value)
            elif isinstance(value, dict):
                inner.extend(value.values())
        todo = inner
        depth += 1
    return found


AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


class Function(Context):
    """An operation: ``forward``, and ``backward``, its vector-Jacobian product.

    Write them as for ``torch.autograd.Function``.  Without a ``backward`` it is derived.
    """

    symgrad_guest: Guest | None = None
    symgrad_leaves: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    symgrad_written: ClassVar[type[Function] | None] = None
    symgrad_cuts = False
    """Is what its forward detaches a constant for whoever differentiates it?"""
    symgrad_unwritten: str = ""
    """What goes wrong where no backward is written; empty where it is derived then."""
    symgrad_unjudged: str = ""
    """What of the class no verdict is on, as a sentence; empty for nothing."""
    symgrad_rewritten: Callable[[Any], Any] | None = None
    """Makes the Function of another rule, where backward is made of one."""
    symgrad_watched: Callable[[Callable[..., None]], Any] | None = None
    """Makes the Function that tells what its rule is called with, where backward is made of one."""
    symgrad_plain: frozenset[str] | None = None
    """The parameters that are no tensors, where the library of the Function says which."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """``vjp`` is PyTorch's other name of ``backward``.  Raises ProtocolError for both."""
        super().__init_subclass__(**kwargs)
        if "vjp" in cls.__dict__ and "backward" in cls.__dict__:
            raise ProtocolError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        if "vjp" in cls.__dict__:
            setattr(cls, "backward", cls.__dict__["vjp"])  # noqa: B010

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The outputs.  To be written by the subclass."""
        raise ProtocolError("a Function needs a forward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """What to keep for backward, where forward takes no ctx."""
        raise ProtocolError("this Function has no setup_context")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments of forward, in order; None for what has none."""
        raise ProtocolError("this Function has no backward")

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs, for those of the arguments; None for what has none."""
        raise ProtocolError("this Function has no jvp")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the Function: inside a trace its forward becomes part of the graph."""
        return _apply(cls, args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call a Function of the old style, whose instance holds its non-tensor arguments."""
        return _apply(self, args, kwargs)


substitution: ContextVar[Callable[[Any], Any] | None] = ContextVar("substitution", default=None)
"""What is applied in the place of a Function, where derivatives are forward ones."""


def _apply(function: type[Function] | Function, args: Sequence[Any], kwargs: Any) -> Any:
    args, kwargs = by_position(function, args, kwargs)
    substitute = substitution.get()
    if substitute is not None:
        function = substitute(function)
    session = active()
    if session is not None:
        return _inline(session, function, session.taken(args), session.taken(kwargs))
    interpreter = interpreter_of((*args, *kwargs.values()))
    if interpreter is None:
        name = class_of(function).__name__
        raise ProtocolError(
            f"{name}.apply takes symbolic tensors, while a Function is traced", location=here(),
            hint=f"for arrays compile it first: op = sg.compile({name}, ...); y = op(x)",
        )  # fmt: skip
    return interpreter.function(function, args, kwargs)


def by_position(
    function: type[Function] | Function, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments of ``apply`` as backward counts them: by the places that forward gives them.

    Where setup_context takes them, defaults are among them.  Those that forward takes by keyword
    only have no place, and no gradient.
    """
    separate = separate_setup(function)
    if not kwargs and not separate:
        return args, kwargs
    plain, hidden = raw_method(function, "forward")
    try:
        bound = inspect.signature(plain).bind(*(None,) * hidden, *args, **kwargs)
    except TypeError:  # which forward says itself
        return args, kwargs
    if separate:
        bound.apply_defaults()
    return bound.args[hidden:], bound.kwargs


def no_place(function: type[Function] | Function, name: str) -> ProtocolError:
    """The error where a tensor that may be differentiated by is no argument that backward counts.

    A tensor that forward takes by keyword only would get no gradient.
    """
    return ProtocolError(
        f"{class_of(function).__name__}.apply: the tensor {name} is taken by keyword only, so that "
        "backward returns no gradient for it", location=here(),
        hint=f"let forward take {name} by position, or detach() it",
    )  # fmt: skip


def _inline(
    session: Session, function: type[Function] | Function, args: Sequence[Any], kwargs: Any
) -> Any:
    ctx = new_context(function, {})
    ctx.needs_input_grad = tuple(
        isinstance(arg, SymbolicTensor) and arg.dtype.is_float for arg in args
    )
    history = session.history
    if history is not None and history.records and has_backward(function):
        for name, value in kwargs.items():
            if isinstance(value, SymbolicTensor) and value.dtype.is_float:
                raise no_place(function, name)
        output = history.call(function, ctx, args, kwargs)
    else:
        output = run_forward(function, ctx, args, kwargs)
    given = tuple(map(_argument, args))
    named = tuple((name, _argument(value)) for name, value in kwargs.items())
    call = InnerCall(function, given, named, here())
    session.inner.setdefault((function, call.location, repr((given, named))), call)
    return output


def _selected(value: Any) -> bool:
    return isinstance(value, SelectedTensor)


ATTACHED: dict[Any, Callable[..., Any]] = {}
"""The operations, by the Functions that are attached to them."""


def own_backward(function: type[Function]) -> Callable[[AnyFunction], AnyFunction]:
    """Attach a Function, which takes the same arguments, to the definition of an operation.

    Its backward is what derivatives are taken by, in eager operations and in traces that follow
    histories; its forward is the operation itself.
    """

    def attach(definition: AnyFunction) -> AnyFunction:
        @functools.wraps(definition)
        def chosen(*args: Any) -> Any:
            session = active()
            if session is None or not session.own_backwards or any(map(_selected, args)):
                return definition(*args)
            return session.applied(function, args)

        ATTACHED[function] = chosen
        return chosen  # type: ignore[return-value]

    return attach


def backward_of(
    forward: str | Callable[..., Any],
) -> Callable[[Callable[..., Any]], type[Function]]:
    """Make a Function of an operation and its backward, which is written as a plain function.

    ``forward``: the name of the operation, or a function.  The backward takes the cotangent, then
    the arguments of the operation, with the shapes of tensors as annotations and the defaults of
    settings.  It returns the gradients of the first tensors.  Saved are the tensors; the output
    alone where the backward calls its first tensor ``y``.
    """

    def make(backward: Callable[..., Any]) -> type[Function]:
        given = list(inspect.signature(backward, eval_str=True).parameters.values())
        tensors = [one.name for one in given[1:] if hasattr(one.annotation, "__metadata__")]
        settings = [one.name for one in given[1:] if one.name not in tensors]
        of_output = tensors == ["y"]
        taken = [given[0].replace(name="ctx"), *given[1:]]
        if of_output:
            taken[1] = taken[1].replace(name="x")
        signature = inspect.Signature(taken)

        @functools.wraps(backward)
        def run(ctx: Any, *args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(ctx, *args, **kwargs)
            bound.apply_defaults()
            values = bound.args[1:]
            known = dict(zip(settings, values[len(tensors) :], strict=True))
            vars(ctx).update(known)
            call = FUNCTIONS[forward] if isinstance(forward, str) else forward
            output = call(*values[: len(tensors)], **known)
            ctx.save_for_backward(*((output,) if of_output else values[: len(tensors)]))
            return output

        @functools.wraps(backward)
        def differentiate(ctx: Any, grad: Any) -> Any:
            known = {name: getattr(ctx, name) for name in settings}
            found = backward(grad, *ctx.saved_tensors, **known)
            if isinstance(found, tuple):
                wanted = zip(found, ctx.needs_input_grad, strict=False)
                found = tuple(gradient if asked else None for gradient, asked in wanted)
            else:
                found = (found,)
            return (*found, *(None,) * (len(given) - 1 - len(found)))

        vars(run)["__signature__"] = signature
        vars(differentiate)["__signature__"] = inspect.Signature([taken[0], given[0]])
        members = {
            "__doc__": backward.__doc__, "__module__": backward.__module__,
            "forward": staticmethod(run), "backward": staticmethod(differentiate),
        }  # fmt: skip
        return type(backward.__name__, (Function,), members)

    return make


def _argument(value: Any) -> Any:
    if isinstance(value, SymFloat):
        return value.stands_for
    return value.node.type if isinstance(value, SymbolicTensor) else value


def once_differentiable(backward: AnyFunction) -> AnyFunction:
    """Mark a backward that is not meant to be differentiated again."""

    @functools.wraps(backward)
    def marked(*args: Any, **kwargs: Any) -> Any:
        return backward(*args, **kwargs)

    marked.once_differentiable = True  # type: ignore[attr-defined]
    return marked  # type: ignore[return-value]


def custom_fwd(forward: Any = None, **settings: Any) -> Any:
    """``torch.amp.custom_fwd``: there is no autocast here, so the forward is what it was."""
    return forward if forward is not None else lambda call: call


def custom_bwd(backward: Any = None, **settings: Any) -> Any:
    """``torch.amp.custom_bwd``: there is no autocast here, so the backward is what it was."""
    return backward if backward is not None else lambda call: call


# -- what a Function is


def class_of(function: type[Function] | Function) -> type[Function]:
    """The class of a Function that was given as a class or as an instance."""
    found = function if isinstance(function, type) else type(function)
    if not issubclass(found, Function):
        found = taken(found)
    if not issubclass(found, Function):
        raise ProtocolError(
            f"{found.__name__} is not a symgrad.Function", hint="derive the class from sg.Function"
        )
    return found


def has_backward(function: type[Function] | Function) -> bool:
    """Is there a hand-written backward?"""
    return class_of(function).backward is not Function.backward


def is_once(function: type[Function] | Function) -> bool:
    """Is its backward marked as not to be differentiated again?"""
    return bool(getattr(raw_method(function, "backward")[0], "once_differentiable", False))


def separate_setup(function: type[Function] | Function) -> bool:
    """Does forward take no ctx, because setup_context does?"""
    return class_of(function).setup_context is not Function.setup_context


def raw_method(function: type[Function] | Function, name: str) -> tuple[Any, int]:
    """The plain function behind a method, and how many of its first parameters are not the user's.

    These are ctx or self, and cls before it in a class method.
    """
    found = inspect.getattr_static(class_of(function), name)
    hidden = 0 if name == "forward" and separate_setup(function) else 1
    if isinstance(found, classmethod):
        hidden += 1
    plain = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
    return plain, hidden


def is_instance_style(function: type[Function] | Function) -> bool:
    """Is forward a method of an instance, which is then the ctx?"""
    found = inspect.getattr_static(class_of(function), "forward")
    return not isinstance(found, (staticmethod, classmethod)) and not separate_setup(function)


def init_parameters(function: type[Function] | Function) -> dict[str, inspect.Parameter]:
    """The parameters of ``__init__``, of an old-style class that is not yet an instance."""
    if not isinstance(function, type) or function.__init__ is object.__init__:
        return {}
    parameters = list(inspect.signature(function.__init__).parameters.values())[1:]
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {parameter.name: parameter for parameter in parameters if parameter.kind in plain}


def new_context(function: type[Function] | Function, arguments: Mapping[str, Any]) -> Context:
    """A fresh ctx.  ``arguments``: those of ``__init__``, of an old-style class."""
    if not isinstance(function, type):
        ctx = _copied(function)
        ctx._symgrad_state = ContextState()
        return ctx
    if is_instance_style(function):
        return function(**arguments)
    guest = function.symgrad_guest
    members: dict[str, Any] = {} if guest is None else {"symgrad_kind": guest.context(function)}
    if members.get("symgrad_kind") is not None:
        members["__module__"] = members["symgrad_kind"].__module__
    kind: Any = type(function.__name__, (Context,), members)
    ctx = kind()
    assert isinstance(ctx, Context)
    return ctx


def _copied(instance: Function) -> Function:
    """An instance of its own for each trace, so that none sees what another left behind."""
    try:
        return copy.deepcopy(instance)
    except Exception:  # an attribute that cannot be copied is shared
        return copy.copy(instance)


def run_forward(
    function: type[Function] | Function,
    ctx: Context,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Call forward (and setup_context)."""
    found = class_of(function)
    if not separate_setup(function):
        return _returned(found, found.forward(ctx, *args, **kwargs))
    output = _returned(found, found.forward(*args, **kwargs))
    found.setup_context(ctx, (*args, *kwargs.values()), output)
    return output


def _returned(found: type[Function], value: Any) -> Any:
    """What a method returned; constants of the library that the Function is written for."""
    return value if found.symgrad_guest is None else found.symgrad_guest.returned(value)


def run_backward(
    function: type[Function] | Function, ctx: Context, cotangents: Sequence[Any]
) -> Any:  # fmt: skip
    """Call backward.  Raises ProtocolError where it does not take what it is given."""
    state_of(ctx)
    try:
        found = class_of(function)
        return _returned(found, found.backward(ctx, *cotangents))
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise  # inside of it
        code = _code(class_of(function), "backward")
        raise ProtocolError(
            f"backward does not take ctx and {counted(len(cotangents), 'gradient')}, one for each"
            f" output of forward: {error}",
            location=None if code is None else Location(code.co_filename, _def_line(code)),
            hint=f"write backward(ctx, {', '.join(_named_gradients(len(cotangents)))})",
        ) from error


def _named_gradients(count: int) -> list[str]:
    return ["grad_output"] if count == 1 else [f"grad_{place}" for place in range(count)]


def _def_line(code: CodeType) -> int:
    """The line of ``def``: decorators stand above it."""
    lines = inspect.getsourcelines(code)[0] if inspect.getsourcefile(code) else []
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("def ", "async def ")):
            return code.co_firstlineno + number
    return code.co_firstlineno


# -- where it stands in the user's files


METHODS = ("forward", "setup_context", "backward", "jvp")


def class_location(found: type[Function]) -> Location | None:
    """The line of the class statement; that of a method where it cannot be found."""
    first: int | None = getattr(found, "__firstlineno__", None)
    codes = [code for name in METHODS if name in vars(found) and (code := _code(found, name))]
    if not codes:
        with suppress(OSError, TypeError):
            line = inspect.getsourcelines(found)[1]
            return Location(inspect.getsourcefile(found) or "", line, found.__name__)
        code = _code(found, "forward")
        return None if code is None else Location(code.co_filename, code.co_firstlineno)
    file, line = codes[0].co_filename, min(code.co_firstlineno for code in codes)
    return Location(file, first or _class_line(file, line, found.__name__), found.__name__)


def _class_line(file: str, line: int, name: str) -> int:
    """The line of ``class name`` above a line of the class's body."""
    statement = re.compile(rf"\s*class\s+{re.escape(name)}\b")
    lines = linecache.getlines(file)
    for number in range(min(line, len(lines)), 0, -1):
        if statement.match(lines[number - 1]):
            return number
    return line


def method_sources(found: type[Function]) -> str:
    """The text of forward, setup_context, backward and jvp, as far as it can be read."""
    texts = []
    for name in METHODS:
        plain, _ = raw_method(found, name)
        if (getattr(plain, "__module__", "") or "").startswith("symgrad.frontend"):
            continue
        code = _code(found, name)
        file = "" if code is None else code.co_filename
        linecache.checkcache(file)
        try:
            texts.append(_source(plain, tuple(linecache.cache.get(file, ())[:2])))
        except (OSError, TypeError):
            continue
    return "\n".join(texts)


@functools.lru_cache(maxsize=512)
def _source(plain: Callable[..., Any], read: tuple[Any, ...]) -> str:
    """The text of a method; ``read``: which state of its file.  Raises OSError, TypeError."""
    return source_text(plain)


def returns_of(found: type[Function], name: str) -> Location | None:
    """The last ``return`` with a value that a method itself has; its ``def`` where it has none."""
    code = _code(found, name)
    if code is None:
        return None
    with suppress(OSError, TypeError, SyntaxError):
        lines, first = inspect.getsourcelines(code)
        (method,) = ast.parse(dedented("".join(lines))).body
        todo, last = [*ast.iter_child_nodes(method)], 0
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Return) and node.value is not None:
                last = max(last, node.lineno)
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                todo += ast.iter_child_nodes(node)
        if last:
            return Location(code.co_filename, first + last - 1, name)
    return Location(code.co_filename, _def_line(code), name)


def _code(found: type[Function], name: str) -> CodeType | None:
    plain, _ = raw_method(found, name)
    code: Any = getattr(inspect.unwrap(plain), "__code__", None)
    return code if isinstance(code, CodeType) else None


# -- declarations beside a class


AnyClass = TypeVar("AnyClass", bound=type[Function])
_SURROGATE = "symgrad_surrogate"
_BY_ARGUMENT = "symgrad_surrogates"
_FIXED_POINT = "symgrad_fixed_point"
_ASSUME = "assume"


def surrogate(function: Callable[..., Any]) -> Callable[[AnyClass], AnyClass]:
    """Declare that backward is the derivative of ``function``, not of forward.

    ``function`` takes what forward takes (but ctx) and returns as many tensors:
    ``@sg.surrogate(lambda x: x)`` for a straight-through estimator, ``lambda x: -0.5 * x`` for a
    reversed gradient.
    """
    if not callable(function):
        raise SpecError("sg.surrogate takes a callable with the arguments of forward")

    def mark(cls: AnyClass) -> AnyClass:
        setattr(cls, _SURROGATE, staticmethod(function))
        return cls

    return mark


def fixed_point(step: Callable[..., Any]) -> Callable[..., Any]:
    """What ``sg.surrogate`` takes where forward iterates, and backward is that of the fixed point.

    ``step`` takes the fixed point and what forward takes, and returns the fixed point:
    ``@sg.surrogate(sg.fixed_point(lambda z, x, w: sg.tanh(z @ w + x)))``.
    """

    def declared(*args: Any, **kwargs: Any) -> Any:
        return step(*args, **kwargs)

    setattr(declared, _FIXED_POINT, True)
    return declared


def assume(**facts: str | Sequence[str]) -> Callable[[AnyClass], AnyClass]:
    """Declare facts about inputs beside a class: ``@sg.assume(x="positive", labels="index c")``.

    Several facts about an input are a list, or stand in decorators above one another.  Every
    verification takes them for granted and prints them.
    """

    def mark(cls: AnyClass) -> AnyClass:
        own, more = joined(vars(cls).get(_ASSUME, {})), joined(facts)
        new = {name: f"{own[name]} and {fact}" if name in own else fact
               for name, fact in more.items()}  # fmt: skip
        setattr(cls, _ASSUME, {**getattr(cls, _ASSUME, {}), **new})
        return cls

    return mark


def _unknown_like(found: Any) -> Any:
    """An unknown in the place of what forward found.  Raises SpecError for several outputs."""
    from symgrad.frontend.session import current
    from symgrad.frontend.tensor import SymbolicTensor, fresh

    if not isinstance(found, SymbolicTensor):
        raise SpecError("a fixed point is declared, and forward does not return one tensor")
    return fresh(current().draw("fixed point", found.node.type))


def surrogate_of(function: type[Function] | Function) -> type[Function] | None:
    """The declared surrogate as a Function of the same arguments; None where there is none."""
    declared = getattr(class_of(function), _SURROGATE, None)
    return None if declared is None else _as_function(function, declared)


def surrogates_of(function: type[Function] | Function) -> dict[str, type[Function]]:
    """Those that are declared of single gradients, by the names of their arguments."""
    declared = getattr(class_of(function), _BY_ARGUMENT, {})
    return {name: _as_function(function, one) for name, one in declared.items()}


def _as_function(
    function: type[Function] | Function, declared: Callable[..., Any]
) -> type[Function]:
    """What is declared of a Function as a Function of the same arguments."""
    cls = class_of(function)
    own, hidden = raw_method(function, "forward")
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_ONLY)
    parameters = list(inspect.signature(own).parameters.values())[hidden:]
    if parameters and parameters[0].kind is not inspect.Parameter.POSITIONAL_ONLY:
        context = context.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(declared, _FIXED_POINT):
            return declared(*args, **kwargs)
        found = own(*[cls, ctx][2 - hidden :], *args, **kwargs)
        return declared(_unknown_like(found), *args, **kwargs)

    forward.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
    forward.__annotations__ = dict(own.__annotations__)
    name = f"surrogate of {cls.__name__}"
    members = {
        "forward": staticmethod(forward), "__module__": cls.__module__,
        "symgrad_guest": cls.symgrad_guest, "symgrad_cuts": True,
    }  # fmt: skip
    return type(name, (Function,), members)
