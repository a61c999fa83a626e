"""Functions whose backward stops, in a module whose assertions pytest leaves as they are."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

Function: Any = torch.autograd.Function
READY = False
GROUPS: dict[str, Any] = {}
_GROUP = None


def group() -> Any:
    assert _GROUP is not None, "the group is not initialized"
    return _GROUP


def group_of(name: str) -> Any:
    if name in GROUPS:
        return GROUPS[name]
    raise RuntimeError("the group is not initialized")


def stop(said: str) -> None:
    raise RuntimeError(said)


def need(known: bool, said: str) -> None:
    if not known:
        stop(said)


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.rows = x.shape[0]
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Asserted(Square):
    @staticmethod
    def backward(ctx, g):
        assert torch.distributed.is_initialized(), "the group is not initialized"
        torch.distributed.all_reduce(g)
        return Square.backward(ctx, g)


class InHelper(Square):
    @staticmethod
    def backward(ctx, g):
        g = g * 1
        dist.all_reduce(g, group=group())
        return Square.backward(ctx, g)


class ByName(Square):
    @staticmethod
    def backward(ctx, g):
        named = group_of("tensor")
        dist.all_reduce(g, group=named)
        return Square.backward(ctx, g)


class Nested(Square):
    @staticmethod
    def backward(ctx, g):
        if ctx.needs_input_grad[0]:
            ready = READY
            need(ready, "call setup() first")
        return Square.backward(ctx, g)


class Missing(Square):
    @staticmethod
    def backward(ctx, g):
        try:
            import no_such_kernels  # noqa: F401
        except ImportError as error:
            raise RuntimeError("install the kernels") from error
        return Square.backward(ctx, g)


class Else(Square):
    @staticmethod
    def backward(ctx, g):
        if READY:
            return Square.backward(ctx, g)
        elif GROUPS:  # noqa: RET505
            return g
        else:
            raise RuntimeError("no backend")


class InLibrary(Square):
    @staticmethod
    def backward(ctx, g):
        return Square.backward(ctx, g) / dist.get_rank(_GROUP)


class OfShape(Square):
    @staticmethod
    def backward(ctx, g):
        assert g.dim() == 7
        return Square.backward(ctx, g)


class OfSaved(Square):
    @staticmethod
    def backward(ctx, g):
        need(ctx.rows < 0, "rows")
        return Square.backward(ctx, g)


class OfLocal(Square):
    @staticmethod
    def backward(ctx, g):
        known, sizes = [], False
        for size in g.shape:
            known.append(size)
        if len(known) > 0:
            sizes = False
        if not sizes:
            raise ValueError("sizes")
        return Square.backward(ctx, g)


class OfClosure(Square):
    @staticmethod
    def backward(ctx, g):
        rank = g.dim()

        def check():
            if rank != 7:
                raise ValueError("rank")

        check()
        return Square.backward(ctx, g)


class Always(Square):
    @staticmethod
    def backward(ctx, g):
        stop("there is none")


class NotWritten(Square):
    @staticmethod
    def backward(ctx, g):
        raise NotImplementedError


class False_(Square):
    @staticmethod
    def backward(ctx, g):
        assert False, "never"  # noqa: B011, PT015


class Unkept(Square):
    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale


class Removed(Square):
    @staticmethod
    def backward(ctx, g):
        return torch.symeig(g)[0]


class Unknown(Square):
    @staticmethod
    def backward(ctx, g):
        found = torch.no_such_function
        return found(g)


class Count(Square):
    @staticmethod
    def backward(ctx, g):
        return g, g


class NotInstalled(Square):
    @staticmethod
    def backward(ctx, g):
        from package_that_is_missing.settings import settings

        return Square.backward(ctx, g) * settings.one


class WithoutName(Square):
    @staticmethod
    def backward(ctx, g):
        from torch.nn.functional import function_that_is_missing

        return function_that_is_missing(Square.backward(ctx, g))


class HandlesImport(Square):
    @staticmethod
    def backward(ctx, g):
        try:
            import package_that_is_missing
        except ImportError:
            return 3 * g
        return package_that_is_missing.gradient(g)
