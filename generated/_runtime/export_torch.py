"""Compiled ops in torch: custom ops of ``torch.library``, and ``torch.autograd.Function``.

In: ops of ``sg.compile``, or modules of a generated package.  Out: callables on torch tensors.

A custom op ``ns::name`` is three in torch's dispatcher: ``ns::name`` itself; ``ns::name_forward``,
which also returns what the forward kernel keeps for backward; and ``ns::name_backward``, the
gradients that are asked for.  Each has a kernel for the CPU, one for fake tensors, and a rule for
vmap.  Tensors and arrays share their memory: nothing is copied but inputs whose strides the kernels
do not take.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from .abi import Array
from .errors import KernelArgumentError, KernelTypeError
from .export_direct import DTYPES, OF_NAME, Direct
from .export_table import Entry, Parameter, Served, Table, bound, shape_in

_NAME = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)?", re.ASCII)
_LITERAL = re.compile(r"-?\d+(\.\d*)?(e[+-]?\d+)?", re.ASCII)

_lock = threading.RLock()
_registered: dict[str, TorchOp] = {}


def custom_op(*ops: Any, name: str = "", gradients: Any = ()) -> TorchOp:
    """The op as a torch custom op, with gradients; ``torch.ops.<namespace>.<name>`` is the same.

    ``ops``: what ``sg.compile`` returned, or a module of a generated package; several where the
    same Function is compiled for several dtypes or ranks.  ``name``: ``"namespace::name"``,
    ``"symgrad::<op>"`` where it is not given.  The same op under the same name is registered once.
    ``gradients``: for an op that is to be differentiated twice, what
    ``symgrad.export.gradients.gradients_of`` makes of each of ``ops``.

    Raises KernelArgumentError where the name is none, or taken by another op.
    """
    table = Table(ops)
    qualified = _qualified(name or table.name)
    with _lock:
        known = _registered.get(qualified)
        if known is not None:
            if known.table.identity == table.identity:
                return known.differentiated(gradients)
            raise KernelArgumentError(
                f"{qualified} is another op already: {known!r}",
                hint='give this one a name of its own: custom_op(op, name="mylib::name"), or pass'
                " both together, custom_op(first, second), if they differ in dtypes alone",
            )
        made = _registered[qualified] = TorchOp(table, qualified)
        return made.differentiated(gradients)


def function(
    *ops: Any, name: str = "", gradients: Any = ()
) -> type[torch.autograd.Function]:  # fmt: skip
    """The op as a class whose ``apply`` takes and gives tensors, as ``torch.autograd.Function``.

    It has ``forward``, ``setup_context``, ``backward`` and ``vmap``.  The arguments are as for
    ``custom_op``, which is called for what ``torch.compile`` traces.
    """
    made = custom_op(*ops, name=name, gradients=gradients).kernels.function
    torch.compiler.allow_in_graph(made)  # as one call: what is kept is not to be looked into
    return made


class TorchOp:
    """A custom op of torch: ``op(x, alpha=2.0)`` on tensors.

    ``overload`` is what the dispatcher has: ``torch.ops.<namespace>.<name>.default``.
    """

    def __init__(self, table: Table, name: str) -> None:
        self.table = table
        self.name = name
        self.kernels = _Kernels(table, name)
        self.overload: Any = self.kernels.register()

    def __call__(self, *inputs: Any, **numbers: Any) -> Any:
        """The outputs: one tensor, or a tuple of several."""
        if not (torch.compiler.is_compiling() or numbers):
            found = self.kernels.direct(inputs)
            if found is not None:
                return found
        return self.overload(*inputs, **numbers)

    def differentiated(self, gradients: Any) -> TorchOp:
        """Itself, with ops for the gradients.  Raises KernelArgumentError where they do not fit."""
        ops = gradients if isinstance(gradients, (tuple, list)) else (gradients,)
        if ops and self.kernels.second is None:
            self.kernels.second = _second(self.kernels, Table(ops))
            self.kernels.direct.plans.clear()
        return self

    def __repr__(self) -> str:
        taken = ", ".join(map(str, self.table.inputs))
        return f"<torch op {self.name} of {self.table.name}: {taken}>"

    def __copy__(self) -> TorchOp:
        return self

    def __deepcopy__(self, memo: Any) -> TorchOp:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        second = self.kernels.second
        further = () if second is None else second.table.modules(self)
        return _unpickled, (self.table.modules(self), self.name, further)


def _unpickled(modules: Sequence[str], name: str, further: Sequence[str] = ()) -> TorchOp:
    ops, gradients = (
        [importlib.import_module(one) for one in names] for names in (modules, further)
    )
    return custom_op(*ops, name=name, gradients=gradients)


def _second(kernels: _Kernels, table: Table) -> TorchOp:
    """The op of the gradients.  Raises KernelArgumentError where it computes something else."""
    own = kernels.table
    case = own.entries[0].case
    floating = [one.dtype for one in case.outputs if one.dtype in ("float32", "float64")]
    taken = [one.dtype for one in case.inputs] + floating
    fits = (
        [one.dtype for one in table.inputs] == taken
        and table.outputs == sum(own.differentiable)
        and {one.name for one in table.numbers} == {one.name for one in own.numbers}
    )
    if not fits:
        raise KernelArgumentError(
            f"{table.name} does not compute the gradients of {own.name}",
            hint="pass gradients=gradients_of(op), of symgrad.export.gradients",
        )
    return custom_op(*(one.op for one in table.runners), name=f"{kernels.name}_gradients")


def _qualified(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise KernelArgumentError(
            f"{name!r} cannot be the name of a torch op", hint='give one as "mylib::softplus"'
        )
    return name if "::" in name else f"symgrad::{name}"


# -- tensors and arrays


def _dtype(tensor: Any) -> str:
    """NumPy's name of the dtype of a tensor; torch's own where kernels have none such."""
    found = tensor.dtype
    return DTYPES.get(found) or str(found).removeprefix("torch.")


def _array(tensor: Any) -> Any:
    """The memory of a tensor as an array.  Raises KernelArgumentError where it has none."""
    found = tensor.detach().numpy()
    if found.size and not tensor.data_ptr():  # NumPy would make memory of its own
        raise KernelArgumentError(
            "a tensor has no memory: its memory was freed", hint="do not resize its storage to 0"
        )
    return found


def _tensors(arrays: Any) -> list[Any]:
    """Tensors on the memory of the arrays that kernels returned."""
    many = arrays if type(arrays) is tuple else (arrays,)
    return [torch.from_numpy(one) for one in many]


class _Kernels:
    """What torch's dispatcher calls for one op."""

    def __init__(self, table: Table, name: str) -> None:
        self.table = table
        self.name = name
        self.namespace, self.plain = name.split("::")
        count = len(table.differentiable)
        self.is_tensor = [one.number is None for one in table.parameters]
        self.tensors = [place for place, one in enumerate(table.parameters) if one.number is None]
        self.by_name = {
            one.number.name: place
            for place, one in enumerate(table.parameters) if one.number is not None
        }  # fmt: skip
        self.only_tensors = len(table.parameters) == count
        self.numbers_at = [self.by_name[one.name] for one in table.numbers]
        self.defaults = [_default(one) for one in table.parameters]
        self.several = table.outputs > 1
        self.library: Any = None
        self.direct = Direct(self)
        # The op of the gradients, where these can be differentiated.
        self.second: TorchOp | None = None

    # -- registration

    def register(self) -> Any:
        """Define the three ops; return the overload of the first."""
        self.library = library = torch.library.Library(self.namespace, "FRAGMENT")
        listed = ", ".join(_declared(one, self.table.parameters) for one in self.table.parameters)
        outputs = ", ".join(["Tensor"] * self.table.outputs)
        results = f"({outputs})" if self.several else outputs
        tags = (torch.Tag.needs_fixed_stride_order, torch.Tag.pt2_compliant_tag)
        try:
            library.define(f"{self.plain}({listed}) -> {results}", tags=tags)
        except RuntimeError as error:
            raise KernelArgumentError(
                f"torch has an op {self.name} already: {str(error).splitlines()[0]}",
                hint='give this one a name of its own: custom_op(op, name="mylib::name")',
            ) from error
        every = ", ".join(["Tensor"] * (self.table.outputs + self.table.extra))
        keeping = f"({every})" if "," in every else every
        library.define(f"{self.plain}_forward({listed}) -> {keeping}", tags=tags)
        library.define(
            f"{self.plain}_backward(int entry, Tensor[] kept, Tensor?[] cotangents, "
            "SymInt[] shapes, float[] reals, int[] integers, bool[] mask) -> Tensor[]",
            tags=tags,
        )
        space = getattr(torch.ops, self.namespace)
        self.inference_op: Any = getattr(space, self.plain).default
        self.forward_op: Any = getattr(space, f"{self.plain}_forward").default
        self.backward_op: Any = getattr(space, f"{self.plain}_backward").default
        for op, kernel, fake in (
            (self.inference_op, self.inference, self.fake_inference),
            (self.forward_op, self.forward, self.fake_forward),
            (self.backward_op, self.backward, self.fake_backward),
        ):
            full = op.name()
            library.impl(op, kernel, "CompositeExplicitAutograd")
            torch.library.register_fake(full, fake, lib=library)
            torch.library.register_vmap(full, _one_by_one(op), lib=library)
        self._differentiable()
        self._autocast()
        self.function = _function(self)
        return self.inference_op

    def _differentiable(self) -> None:
        """Gradients of the first two; those of the third are an error that says so.

        A call with plain tensors ends at its rule: nothing below would look at it.
        """
        outputs = self.table.outputs
        for op, kernel in (
            (self.inference_op, self._rule(self.inference_op, self.direct, outputs)),
            (
                self.forward_op,
                self._rule(self.forward_op, self.direct.kept, outputs + self.table.extra),
            ),
            (self.backward_op, self._rule_of_backward()),
        ):
            self.library.impl(op, kernel, "Autograd", with_keyset=True)

    def _rule(self, op: Any, direct: Callable[..., Any], shown: int) -> Callable[..., Any]:
        below, recorded = torch._C._after_autograd_keyset, _recorded(self)

        def autograd(keys: Any, *args: Any) -> Any:
            found = direct(args)
            if found is not None:
                return found
            if forward_ad._current_level >= 0:
                self.without_tangents(args)
            if torch.is_grad_enabled() and torch._C._any_requires_grad(*args):
                found = _one_level(recorded, keys & below, *args)
                if type(found) is not tuple or len(found) == shown:
                    return found
                return found[:shown] if shown > 1 else found[0]
            with torch._C._AutoDispatchBelowAutograd():
                return op.redispatch(keys & below, *args)

        return autograd

    def _rule_of_backward(self) -> Callable[..., Any]:
        below, again = torch._C._after_autograd_keyset, _again(self)

        def autograd(keys: Any, *args: Any) -> Any:
            entry, kept, cotangents, *plain = args
            recorded = torch.is_grad_enabled() and torch._C._any_requires_grad(*kept, *cotangents)
            found = None if recorded else self._direct_backward(*args)
            if found is not None:
                return found
            if forward_ad._current_level >= 0:
                self.without_tangents((*kept, *cotangents))
            if recorded:
                flat = (entry, len(kept), *plain, *kept, *cotangents)
                return list(_one_level(again, keys & below, *flat))
            with torch._C._AutoDispatchBelowAutograd():
                return self.backward_op.redispatch(keys & below, *args)

        return autograd

    def _autocast(self) -> None:
        """Under autocast, floating inputs are cast to the only dtype that the kernels take."""
        if self.table.dtypes == {"float32"}:
            for name in (self.inference_op.name(), self.forward_op.name()):
                torch.library.register_autocast(name, "cpu", torch.float32, lib=self.library)

    # -- calls

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The tensors, and the plain numbers in the order of the kernels."""
        if self.only_tensors:
            return list(args), []
        every = [*args, *self.defaults[len(args) :]]
        return [every[place] for place in self.tensors], [every[p] for p in self.numbers_at]

    def joined(self, tensors: Sequence[Any], numbers: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments of the op; the inverse of ``split``."""
        every: list[Any] = [None] * (len(tensors) + len(numbers))
        for places, values in ((self.tensors, tensors), (self.numbers_at, numbers)):
            for place, value in zip(places, values, strict=True):
                every[place] = value
        return tuple(every)

    def inference(self, *args: Any) -> Any:
        """The outputs, on the CPU."""
        tensors, numbers = self.split(args)
        found = self._call("inference", tensors, numbers)
        if self.several:
            return tuple(map(torch.from_numpy, found))
        return torch.from_numpy(found)

    def forward(self, *args: Any) -> Any:
        """The outputs, and what the forward kernel keeps, on the CPU."""
        tensors, numbers = self.split(args)
        outputs, residuals = self._call("forward", tensors, numbers)
        if not self.table.extra:
            return tuple(map(torch.from_numpy, outputs)) if self.several else _one(outputs)
        found = _tensors(outputs)
        entry = self.table.of_kind[type(residuals)]
        for one, value in zip(entry.case.residuals, residuals, strict=False):
            if one.source == "kernel":
                found.append(torch.from_numpy(value))
        while len(found) < self.table.outputs + self.table.extra:
            found.append(torch.empty(0))
        return tuple(found)

    def _call(self, which: str, tensors: Sequence[Any], numbers: Sequence[Any]) -> Any:
        try:
            arrays = [_array(one) for one in tensors]
        except (AttributeError, RuntimeError, TypeError) as error:
            raise self.wrong(tensors) or error from None
        runner = self.table.runners[0]
        if len(self.table.runners) > 1:
            runner = self.table.runner_for([one.dtype.name for one in arrays])
        try:
            call = getattr(runner, which)
            return call(*arrays, **runner.named(numbers)) if numbers else call(*arrays)
        except TypeError as error:
            raise self.wrong(tensors) or error from None

    def backward(
        self, position: int, kept: Sequence[Any], cotangents: Sequence[Any],
        shapes: Sequence[int], reals: Sequence[float], integers: Sequence[int],
        mask: Sequence[bool],
    ) -> list[Any]:  # fmt: skip
        """The gradients that ``mask`` marks, on the CPU."""
        entry = self.table.entries[position]
        arrays = [_array(one) for one in kept]
        given = [None if one is None else _array(one) for one in cotangents]
        names = (one.name for one in self.table.numbers)
        numbers = dict(zip(names, self._numbers(reals, integers), strict=True))
        sizes = self._sizes(entry, shapes)
        residuals = entry.pack(arrays, [sizes[name] for name in entry.case.sizes], numbers)
        found = entry.runner.backward(residuals, *given, needs_input_grad=tuple(mask))
        return [torch.from_numpy(one) for one in found if one is not None]

    def _direct_backward(
        self, position: int, kept: Sequence[Any], cotangents: Sequence[Any],
        shapes: Sequence[int], reals: Sequence[float], integers: Sequence[int],
        mask: Sequence[bool],
    ) -> list[Any] | None:  # fmt: skip
        """The same by the addresses of the tensors; None where these are not enough."""
        entry = self.table.entries[position]
        return self.direct.gradients(
            entry, lambda: self._sizes(entry, shapes), shapes, tuple(mask), [*kept, *cotangents],
            self._numbers(reals, integers),
        )  # fmt: skip

    def _numbers(self, reals: Sequence[float], integers: Sequence[int]) -> list[Any]:
        """The plain numbers in the order of the kernels."""
        values = (iter(reals), iter(integers))
        return [next(values[one.number == "int64"]) for one in self.table.numbers]

    def _sizes(self, entry: Entry, shapes: Sequence[Any]) -> dict[str, Any]:
        served = bound_sizes(entry, shapes)
        if served is None:
            raise KernelArgumentError(f"{self.name}: the shapes {list(shapes)} are not those kept")
        return served

    # -- shapes alone

    def served(self, tensors: Sequence[Any], numbers: Sequence[Any]) -> Served:
        """What serves these tensors, which may be fake.  Raises as a call does."""
        dtypes = [_dtype(one) for one in tensors]
        try:
            return self.table.served([tuple(one.shape) for one in tensors], dtypes, numbers)
        except TypeError as error:
            raise self.wrong(tensors) or error from None

    def fake_inference(self, *args: Any) -> Any:
        """The outputs without content."""
        tensors, numbers = self.split(args)
        served = self.served(tensors, numbers)
        found = _empty(tensors, served.entry.case.outputs, served.sizes)
        return tuple(found) if self.several else found[0]

    def fake_forward(self, *args: Any) -> Any:
        """The outputs and what is kept, without content."""
        tensors, numbers = self.split(args)
        served = self.served(tensors, numbers)
        entry = served.entry
        found = _empty(tensors, (*entry.case.outputs, *entry.extra), served.sizes)
        while len(found) < self.table.outputs + self.table.extra:
            found.append(tensors[0].new_empty(0, dtype=torch.float32))
        return tuple(found) if len(found) > 1 else found[0]

    def fake_backward(
        self, position: int, kept: Sequence[Any], cotangents: Sequence[Any], shapes: Sequence[Any],
        reals: Sequence[float], integers: Sequence[int], mask: Sequence[bool],
    ) -> list[Any]:  # fmt: skip
        """The gradients without content."""
        entry = self.table.entries[position]
        like = [one for one in (*kept, *cotangents) if one is not None]
        wanted = [array for array, needed in zip(entry.case.inputs, mask, strict=True) if needed]
        return _empty(like, wanted, self._sizes(entry, shapes))

    # -- gradients

    def keep(self, ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        """Save what backward needs: inputs, outputs, and what the forward kernel made."""
        outputs = output if isinstance(output, (tuple, list)) else (output,)
        tensors, numbers = self.split(inputs)
        ctx.set_materialize_grads(False)
        entry = self.table.entries[0]
        if len(self.table.entries) > 1:
            entry = self.served(tensors, numbers).entry
        extra = iter(outputs[self.table.outputs :])
        ctx.mark_non_differentiable(
            *outputs[self.table.outputs :],
            *(one for one in outputs[: self.table.outputs] if not one.is_floating_point()),
        )
        saved = []
        for one in entry.case.residuals:
            if one.source == "input":
                saved.append(tensors[one.position])
            elif one.source == "output":
                saved.append(outputs[one.position])
            elif one.source == "kernel":
                saved.append(next(extra))
        ctx.save_for_backward(*saved, *self.kept_inputs(tensors))
        ctx.symgrad_entry = entry.position
        ctx.symgrad_numbers = numbers
        ctx.symgrad_shapes = [x for one in tensors for x in (one.ndim, *one.shape)]

    def kept_inputs(self, tensors: Sequence[Any]) -> Sequence[Any]:
        """The inputs, for gradients that may be differentiated; none otherwise."""
        return () if self.second is None else tensors

    def gradients(self, ctx: Any, asked: Sequence[bool], *cotangents: Any) -> tuple[Any, ...]:
        """The gradients of tensors and, None, of numbers: those that are asked for."""
        mask = [
            bool(asked[place]) and possible
            for place, possible in zip(self.tensors, self.table.differentiable, strict=True)
        ]
        found: list[Any] = [None] * len(asked)
        given = list(cotangents[: self.table.outputs])
        if not any(mask) or all(one is None for one in given):
            return tuple(found)
        pairs = list(zip(self.table.numbers, ctx.symgrad_numbers, strict=True))
        entry = self.table.entries[ctx.symgrad_entry]
        saved = list(ctx.saved_tensors)
        count = sum(one.source != "number" for one in entry.case.residuals)
        if torch.is_grad_enabled() and len(saved) > count:
            return self._with_history(ctx, entry, saved[count:], given, mask, found)
        gradients = self.backward_op(
            ctx.symgrad_entry, saved[:count], given, ctx.symgrad_shapes,
            [value for one, value in pairs if one.number == "float64"],
            [value for one, value in pairs if one.number == "int64"],
            mask,
        )  # fmt: skip
        wanted = (place for place, needed in zip(self.tensors, mask, strict=True) if needed)
        for place, gradient in zip(wanted, gradients, strict=True):
            found[place] = gradient
        return tuple(found)

    def _with_history(
        self, ctx: Any, entry: Entry, inputs: Sequence[Any], cotangents: Sequence[Any],
        mask: Sequence[bool], found: list[Any],
    ) -> tuple[Any, ...]:  # fmt: skip
        """The gradients by the op that computes them, which can be differentiated."""
        assert self.second is not None
        sizes = self._sizes(entry, ctx.symgrad_shapes)
        given = [
            inputs[0].new_zeros(shape_in(array, sizes), dtype=OF_NAME[array.dtype])
            if one is None else one
            for one, array in zip(cotangents, entry.case.outputs, strict=True)
            if array.dtype in ("float32", "float64")
        ]  # fmt: skip
        named = dict(
            zip((one.name for one in self.table.numbers), ctx.symgrad_numbers, strict=True)
        )
        numbers = [named[one.name] for one in self.second.table.numbers]
        made = self.second(*self.second.kernels.joined([*inputs, *given], numbers))
        gradients = iter(made if self.second.kernels.several else (made,))
        for place, possible, needed in zip(
            self.tensors, self.table.differentiable, mask, strict=True
        ):
            gradient = next(gradients) if possible else None
            found[place] = gradient if needed else None
        return tuple(found)

    # -- errors

    def without_tangents(self, args: Sequence[Any]) -> None:
        """Raises NotImplementedError under forward mode, which the kernels do not have."""
        for one in args:
            if isinstance(one, torch.Tensor) and forward_ad.unpack_dual(one).tangent is not None:
                raise NotImplementedError(
                    f"Trying to use forward AD with {self.name}, which does not support it: a"
                    " compiled op has the gradients of backward alone"
                )

    def wrong(self, tensors: Sequence[Any]) -> Exception | None:
        """The first tensor that no kernel takes, in torch's words; None where there is none."""
        for array, tensor in zip(self.table.inputs, tensors, strict=True):
            where = f"{self.name}: input {array.name}"
            if tensor is None:
                return KernelTypeError(
                    f"{where} is None",
                    hint="whether an optional input is given is decided when the op is compiled",
                )
            if tensor.device.type != "cpu":
                return KernelTypeError(
                    f"{where} is on the device {tensor.device}, and its kernels run on the CPU",
                    hint="pass x.cpu(), and move what it returns back",
                )
            if tensor.layout != torch.strided:
                return KernelTypeError(
                    f"{where} has the layout {tensor.layout}", hint="pass x.to_dense()"
                )
        taken = [tuple(one.dtype for one in entry.case.inputs) for entry in self.table.entries]
        dtypes = tuple(_dtype(one) for one in tensors)
        if dtypes in taken:
            return None
        position = next(p for p, one in enumerate(dtypes) if one != taken[0][p])
        if len(self.table.runners) > 1:
            served = " or ".join("(" + ", ".join(one) + ")" for one in dict.fromkeys(taken))
            return KernelTypeError(
                f"{self.name}: the inputs have the dtypes ({', '.join(dtypes)}), and it is compiled"
                f" for {served}",
                hint=f"convert them with .to(torch.{taken[0][position]})",
            )
        return KernelTypeError(
            f"{self.name}: input {self.table.inputs[position].name} has the dtype"
            f" {dtypes[position]}, {taken[0][position]} is expected",
            hint=f"convert it with .to(torch.{taken[0][position]}), or compile the Function for its"
            " dtype too and pass both: custom_op(op32, op64)",
        )


def _one(array: Any) -> Any:
    return torch.from_numpy(array)


def _empty(like: Sequence[Any], arrays: Sequence[Array], sizes: dict[str, Any]) -> list[Any]:
    """New tensors of these shapes and dtypes, contiguous, on the CPU as ``like`` is."""
    made = torch.empty if not like else like[0].new_empty
    return [made(shape_in(one, sizes), dtype=OF_NAME[one.dtype]) for one in arrays]


def _default(parameter: Parameter) -> Any:
    """The default of a plain number; None where it has none."""
    number = parameter.number
    if number is None or not number.text:
        return None
    return int(number.text) if number.number == "int64" else float(number.text)


def _declared(parameter: Parameter, among: Sequence[Parameter]) -> str:
    """``float alpha=1.5``, as a schema has it; no default before what has none."""
    number = parameter.number
    if number is None:
        return f"Tensor {parameter.name}"
    text = f"{'int' if number.number == 'int64' else 'float'} {parameter.name}"
    behind = among[among.index(parameter) :]
    if all(one.number is not None and _LITERAL.fullmatch(one.number.text) for one in behind):
        text += f"={number.text}"
    return text


def bound_sizes(entry: Entry, flat: Sequence[Any]) -> dict[str, Any] | None:
    """The sizes for the shapes of the inputs: for each the number of its axes, then these."""
    shapes, at = [], 0
    for _ in entry.case.inputs:
        rank = int(flat[at])
        shapes.append(tuple(flat[at + 1 : at + 1 + rank]))
        at += 1 + rank
    return bound(entry.case, shapes)


# -- vmap


def _one_by_one(op: Callable[..., Any]) -> Callable[..., Any]:
    """A rule for vmap: one call for each element of the batch."""

    def rule(info: Any, in_dims: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        count = info.batch_size

        def called(index: int) -> Any:
            one = [_selected(arg, dim, index) for arg, dim in zip(args, in_dims, strict=False)]
            return op(*one)

        found = [called(index) for index in range(max(count, 1))]
        first = found[0]
        if not isinstance(first, (tuple, list)):
            return torch.stack(found)[:count], 0
        stacked = [torch.stack(parts)[:count] for parts in zip(*found, strict=True)]
        return type(first)(stacked), type(first)([0] * len(stacked))

    return rule


def _selected(value: Any, dim: Any, index: int) -> Any:
    """What one element of the batch is, of an argument or of a list of them."""
    if isinstance(value, (tuple, list)):
        dims = dim if isinstance(dim, (tuple, list)) else [dim] * len(value)
        return [_selected(one, where, index) for one, where in zip(value, dims, strict=True)]
    if dim is None or not isinstance(value, torch.Tensor):
        return value
    if value.shape[dim] == 0:  # a stand-in, whose results are thrown away
        shape = [*value.shape[:dim], *value.shape[dim + 1 :]]
        return value.new_zeros(shape)
    return value.select(dim, index)


# -- torch.autograd.Function


def _function(kernels: _Kernels) -> type[torch.autograd.Function]:
    """The op as users of ``torch.autograd.Function`` know it, also under ``torch.func``."""
    count = kernels.table.outputs

    class Exported(torch.autograd.Function):
        """An op of symgrad."""

        @staticmethod
        def forward(*args: Any) -> Any:
            return kernels.forward_op(*args)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            kernels.keep(ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            return kernels.gradients(ctx, ctx.needs_input_grad, *cotangents)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
            return _one_by_one(Exported.apply)(info, in_dims, *args)

    class Shown(Exported):
        """An op of symgrad: ``apply`` takes what the op takes."""

        @classmethod
        def apply(cls, *args: Any) -> Any:
            """The outputs, without what is kept for backward."""
            if not torch.compiler.is_compiling():
                found = kernels.direct(args)
                if found is not None:
                    return found
            found = Exported.apply(*args)
            if type(found) is not tuple or len(found) == count:
                return found
            return found[:count] if count > 1 else found[0]

    Exported.__name__ = Exported.__qualname__ = kernels.plain
    Shown.__name__ = Shown.__qualname__ = kernels.plain
    return Shown


# Below the dispatcher there is one level of ``torch.func`` at a time: what ``Function.apply`` does
# for all of them would begin again at the top.
_OneLevel: Any = torch.autograd.function._SingleLevelFunction


def _one_level(function: Any, *args: Any) -> Any:
    """Apply a function at this level alone."""
    if not torch._C._are_functorch_transforms_active():
        return function.apply(*args)
    from torch._functorch.autograd_function import enable_single_level_autograd_function

    with enable_single_level_autograd_function():
        return function.apply(*args)


def _below(op: Any, keys: Any, *args: Any) -> Any:
    """Call an op below autograd at this level, where the levels outside record what they need."""
    with torch._C._AutoDispatchBelowAutograd():
        if not torch._C._are_functorch_transforms_active():
            return op.redispatch(keys, *args)
        with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
            return op.redispatch(keys, *args)


def _recorded(kernels: _Kernels) -> Any:
    """What is recorded for the op: ``apply`` takes the keys of the dispatcher, then arguments."""

    class Recorded(_OneLevel):
        @staticmethod
        def forward(ctx: Any, keys: Any, *args: Any) -> Any:
            found = _below(kernels.forward_op, keys, *args)
            kernels.keep(ctx, args, found)
            return found

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            return None, *kernels.gradients(ctx, ctx.needs_input_grad[1:], *cotangents)

    Recorded.__name__ = Recorded.__qualname__ = kernels.plain
    return Recorded


def _again(kernels: _Kernels) -> Any:
    """The gradients, whose own derivative is an error."""

    class Again(_OneLevel):
        @staticmethod
        def forward(ctx: Any, keys: Any, entry: int, count: int, *args: Any) -> Any:
            plain, tensors = args[:4], args[4:]
            kept, given = list(tensors[:count]), list(tensors[count:])
            return tuple(_below(kernels.backward_op, keys, entry, kept, given, *plain))

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            raise NotImplementedError(
                f"derivative for {kernels.name}_backward is not implemented:"
                f" {kernels.name} is differentiable once; to differentiate it twice, export it with"
                " gradients=gradients_of(op), of symgrad.export.gradients"
            )

    Again.__name__ = Again.__qualname__ = f"{kernels.plain}_backward"
    return Again
