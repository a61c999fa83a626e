"""A function of a shard as a function of a whole batch, which Dask computes.

In: a function; arguments in which collections of Dask stand for the batch.  Out: the sum, or the
mean over all rows, of what it returns for each shard.

The graph has a task a shard, and a tree of tasks that add.  Each is pure and names all that it
needs: if a worker is lost, Dask makes the shards again that it held, and nothing else.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import dask
import distributed
from dask.base import get_scheduler
from dask.diagnostics import ProgressBar

from symgrad.errors import SpecError, SymgradError
from symgrad.interop.dask.batches import Batch, batch_of, call_with, rows_of, same_length
from symgrad.interop.dask.partials import Partial, ShardError, combined, finished, partial_of
from symgrad.interop.dask.sending import Program
from symgrad.tensor.functional.differentiated import Places
from symgrad.tensor.functional.transforms import value_and_grad as _value_and_grad

SPLIT_EVERY = 8
"""How many neighbours a task adds."""

Count = Callable[..., int]


class ClusterError(SymgradError, RuntimeError):
    """The workers did not live to compute what was asked for."""


def value_and_grad(
    func: Callable[..., Any], argnums: Places = 0, *, reduction: str = "mean",
    count: Count | None = None, split_every: int = SPLIT_EVERY, progress: bool = False,
) -> Sharded:  # fmt: skip
    """``(value, gradient)`` over a batch of shards, as ``sg.value_and_grad`` gives them over one.

    Call it with the batch as a ``dask.array`` with chunks along axis 0, a ``dask.bag`` of shards or
    a list of ``Delayed`` shards; every other argument goes to each shard whole.  ``func`` is given
    tensors.  ``reduction="mean"``: it returns the mean over the rows of a shard, which count as
    they are many; ``"sum"``: the sum.  ``count``: called as ``func`` is, says how many rows a shard
    has, in place of the length of its first array.  ``split_every``: how many neighbours a task
    adds, a power of two; it does not change a bit.  ``progress``: show a bar.
    """
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    step = _value_and_grad(func, argnums)
    return Sharded(step, reduction, count, split_every, progress, differentiated=places)


def sharded(
    step: Callable[..., Any], *, reduction: str = "mean", count: Count | None = None,
    split_every: int = SPLIT_EVERY, progress: bool = False,
) -> Sharded:  # fmt: skip
    """The same for a ``step`` that returns any numbers, tensors and arrays, in containers.

    ``sharded(sg.jit(sg.value_and_grad(f)))`` is one kernel a shard; a step may return metrics
    beside gradients.
    """
    return Sharded(step, reduction, count, split_every, progress)


class Sharded:
    """A function of a batch in shards.  It returns arrays, and tensors if it is given one."""

    def __init__(
        self, step: Callable[..., Any], reduction: str, count: Count | None, split_every: int,
        progress: bool, differentiated: Sequence[int] = (),
    ) -> None:  # fmt: skip
        if reduction not in ("mean", "sum"):
            raise SpecError(f"reduction={reduction!r}", hint='"mean" or "sum"')
        is_int = isinstance(split_every, int)
        if not is_int or split_every < 2 or split_every & (split_every - 1):
            raise SpecError(f"split_every={split_every!r}", hint="a power of two: 2, 4, 8...")
        functools.update_wrapper(self, step, updated=())
        self.step, self.mean, self.count = step, reduction == "mean", count
        self.split_every, self.progress = split_every, progress
        self.differentiated = differentiated

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value for the whole batch, computed by Dask's scheduler of the moment.

        Raises ShardError, ClusterError where too many workers are lost, and what ``step`` raises.
        """
        return _computed(self.delayed(*args, **kwargs), self.progress)

    def delayed(self, *args: Any, **kwargs: Any) -> Any:
        """The same as a ``Delayed`` object.  Raises ShardError."""
        batch = batch_of(args, kwargs)
        for place in self.differentiated:
            if place % max(len(args), 1) in batch.split:
                raise ShardError(
                    f"argument {place} is split into shards, and is differentiated by",
                    hint="argnums names the arguments that all shards share",
                )
        return self._graph(batch, uuid.uuid4().hex)

    def _graph(self, batch: Batch, mark: str) -> Any:
        program = Program((self.step, self.count, self.mean))
        sent = dask.delayed(program, name=f"symgrad-program-{mark}", traverse=False)
        template = dask.delayed(batch.template, name=f"symgrad-arguments-{mark}", traverse=False)
        leaf = dask.delayed(_partition if batch.in_bags else _shard, pure=False)
        add = dask.delayed(combined, pure=False)
        row = [
            leaf(sent, template, batch.shared, list(own),
                 dask_key_name=f"symgrad-shard-{mark}-{number}")
            for number, own in enumerate(zip(*batch.parts, strict=True))
        ]  # fmt: skip
        level = 0
        while len(row) > 1:
            groups = [
                row[at : at + self.split_every] for at in range(0, len(row), self.split_every)
            ]
            row = [
                add(group, dask_key_name=f"symgrad-add-{mark}-{level}-{number}")
                for number, group in enumerate(groups)
            ]
            level += 1
        finish = dask.delayed(finished, pure=False)
        return finish(row[0], self.mean, batch.tensors, dask_key_name=f"symgrad-total-{mark}")


def _shard(
    program: Program, template: Any, shared: Sequence[Any], own: Sequence[Any]
) -> Partial | None:
    """What a shard gives; None for one of no rows.  Runs on a worker."""
    step, count, mean = program.function()
    args, kwargs = call_with(template, own, shared)
    rows = rows_of(own) if count is None else int(count(*args, **kwargs))
    if rows is None and mean:
        raise ShardError(
            "nothing says how many rows a shard has, which is no array and holds none",
            hint="give count=, or reduction='sum'",
        )
    if rows is not None and rows < 0:
        raise ShardError(f"count= returned {rows} for a shard")
    if rows == 0:
        return None
    return partial_of(step(*args, **kwargs), rows or 1, mean)


def _partition(
    program: Program, template: Any, shared: Sequence[Any], lists: Sequence[Any]
) -> Partial | None:
    """What the shards in a partition of each bag give together."""
    found = [_shard(program, template, shared, own) for own in same_length(lists)]
    return combined(found)


def _computed(lazy: Any, progress: bool) -> Any:
    """The value of a graph.  Raises ClusterError where Dask gives it up."""
    client = getattr(get_scheduler(), "__self__", None)
    try:
        if not progress:
            return lazy.compute()
        if not isinstance(client, distributed.Client):
            with ProgressBar():
                return lazy.compute()
        future = client.compute(lazy)
        distributed.progress(future, notebook=False)
        return future.result()
    except distributed.KilledWorker as error:
        raise ClusterError(
            f"workers died again and again at the same task: {error}",
            hint="does a shard fit into a worker's memory? Make smaller ones; "
            "distributed.scheduler.allowed-failures says how many deaths are survived",
        ) from error
    except (distributed.CancelledError, distributed.comm.core.CommClosedError) as error:
        raise ClusterError(
            f"the cluster was lost while it computed: {error}",
            hint="connect a new Client, and call it again",
        ) from error
