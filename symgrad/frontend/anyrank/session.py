"""An any-rank trace: the axes of ``*batch`` are one axis, the batch axis.

In: operations and the tensors that they are called with.  Out: their results, or the first thing
that depends on the number of batch axes.

The axis has the size ``*batch``, a symbol that the program never sees: what it reads is ``batch``,
the number of elements of all batch axes together.  The graph is thrown away when the trace ends,
so that a reshape from one symbol to the other is a new input: no op relates the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

from symgrad.budgets import MOST_RANKS_APART
from symgrad.errors import Location
from symgrad.frontend.anyrank.stars import Ticket, consumer
from symgrad.frontend.caller import frame_location, here, user_frame
from symgrad.frontend.facts import SizeFacts
from symgrad.frontend.session import Session, active
from symgrad.frontend.sizes import AnyRankSize
from symgrad.frontend.views import Storage
from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Atom, Dim, DimLike, Size, product
from symgrad.ir.dtype import DType
from symgrad.ir.function import RELATIONS, InnerCall
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType

MARK = "*"
Guard = Callable[["AnyRankSession", str, Callable[..., Any], Any, Any], Any]
_OURS = ("symgrad.frontend.", "symgrad.tensor.")


@dataclass(frozen=True)
class Layout:
    """Where a batch axis stands: how many axes are left and right of it, and its size."""

    left: int
    batch: Dim
    right: int


def is_batch_axis(dim: Dim) -> bool:
    """Is it the size of a batch axis?"""
    return isinstance(dim.atom, Size) and dim.atom.name.startswith(MARK)


def layout_of(shape: Sequence[Any]) -> Layout | None:
    """Where the batch axis of a shape stands; None where there is none."""
    for place, dim in enumerate(shape):
        if isinstance(dim, Dim) and is_batch_axis(dim):
            return Layout(place, dim, len(shape) - place - 1)
    return None


class AnyRankSession(Session):
    """A trace with batch axes.

    ``batches``: the name of each, and that of the number of its elements.  ``observation``:
    the first thing that depends on the number of batch axes.  ``inside``: how many operations are
    being computed, which may look at what the program may not.  ``apart``: numbers of batch axes
    that this trace does not stand for.
    """

    any_rank = True

    def __init__(
        self, facts: SizeFacts, batches: Mapping[str, str], tensor_class: type[Any], guard: Guard,
        assumed: Sequence[Assumption] = (), inner: dict[Any, InnerCall] | None = None,
        apart: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        super().__init__(facts, assumed=assumed, inner=inner)
        self.tensor_class = tensor_class
        self._guard = guard
        self.observation: Observation | None = None
        self.inside = 0
        self.apart = apart
        self._wanted: frozenset[int] = frozenset()
        self._sizes: dict[Atom, Dim] = {
            Size(MARK + batch): Dim.size(name).substitute(facts.mapping)
            for batch, name in batches.items()
        }
        self._uncertain: list[Storage] = []
        self._tickets: list[Ticket] = []
        self._flattened: dict[tuple[Node, tuple[Dim, ...]], Node] = {}

    # -- what depends on the number of axes

    def observe(self, what: str, frame: FrameType | None = None) -> NoReturn:
        """Record it, and end the trace."""
        where = frame_location(frame) if frame is not None else here()
        self.observation = self.observation or Observation(what, where)
        raise RankDependent(self.observation)

    def close(self) -> None:
        """End the trace.  Raises RankDependent for what was recorded, however it was handled."""
        if self.observation is None:
            for ticket in self._tickets:
                if not ticket.redeemed:
                    self.observe("the shape is unpacked", ticket.frame)
        if self.observation is not None:
            raise RankDependent(self.observation)
        if self._wanted:
            raise RanksApart(self.apart | self._wanted)

    def rank_truth(self, relation: str, number: int) -> bool:
        """Whether the number of batch axes stands in a relation, for all but those judged apart.

        Raises RanksApart for numbers of them that answer unlike the others.
        """
        usual = relation in ("!=", ">", ">=")
        holds = RELATIONS[relation]
        odd = frozenset(r for r in range(max(number, 0) + 1) if holds(r, number) != usual)
        if len(self._sizes) > 1 or len(odd | self.apart) > MOST_RANKS_APART:
            self.observe(".ndim is read")
        if not odd <= self.apart:
            self._wanted = self._wanted | odd
            raise RanksApart(self.apart | odd)
        return usual

    def truth(self, left: DimLike, relation: str, right: DimLike) -> bool:
        """Whether a relation between sizes holds; nothing may be asked of a batch axis."""
        if any(
            is_batch_axis(Dim.of(atom)) for side in (left, right) for atom in Dim.of(side).atoms
        ):
            self.observe("the size of one batch axis is asked for")
        return super().truth(left, relation, right)

    def check_dtype(self, compute: Callable[[bool], DType]) -> DType:
        """A dtype that is computed with and without axes in tensors that may have none."""
        found = compute(False)
        if compute(True) != found:
            self.observe("a tensor without axes would give another dtype")
        return found

    def check_gradient(self, input: Sequence[Dim], returned: Sequence[Dim]) -> None:
        """May a gradient of this shape be summed to that of its input by any number of axes?"""
        own, other = layout_of(input), layout_of(returned)
        if own is None and other is None:
            return
        if other is None or (own is None and len(input) > other.right):
            self.observe("the gradient fits its input only for some numbers of batch axes")
        if own is not None and (own.batch, own.right) != (other.batch, other.right):
            self.observe("the gradient fits its input only for some numbers of batch axes")

    # -- operations

    def call(self, name: str, raw: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call the operation of a name, if it is known to be blind to the number of axes."""
        return self._guard(self, name, raw, args, kwargs)

    def bound(self, name: str, raw: Callable[..., Any], tensor: Any) -> Callable[..., Any]:
        """The method of a tensor."""

        def method(*args: Any, **kwargs: Any) -> Any:
            return self.call(name, raw, (tensor, *args), kwargs)

        method.__name__ = method.__qualname__ = name
        return method

    # -- memory

    def uncertain(self, one: Storage, other: Storage) -> None:
        """Remember memory that is shared for some numbers of batch axes and not for others."""
        self._uncertain += (one, other)

    def note_write(self, storage: Storage) -> None:
        """Some memory is about to be written."""
        if any(storage is known for known in self._uncertain):
            self.observe("what is written shares its memory only for some numbers of batch axes")

    # -- sizes

    def flat(self, dim: Dim) -> Dim:
        """A size with the number of elements in place of a batch axis."""
        return dim.substitute(self._sizes)

    def reshape(self, node: Node, shape: Sequence[DimLike]) -> Node:
        """As in any trace; where batch axes end or begin, an input stands for the result."""
        wanted = tuple(map(Dim.of, shape))
        old, new = product(node.shape), product(wanted)
        if old == new or self.flat(old) != self.flat(new):
            return super().reshape(node, wanted)
        key = (node, wanted)
        if key not in self._flattened:
            name = f"flattened {len(self._flattened)}"
            self._flattened[key] = self.graph.input(name, TensorType(node.dtype, wanted))
        return self._flattened[key]

    # -- iteration over shapes

    def ticket(self) -> Ticket:
        """What an iteration of the user's over a shape gets: it may only feed one call of ours."""
        frame = user_frame(_OURS)
        found = consumer(frame.f_code, frame.f_lasti) if frame is not None else None
        if frame is None or found is None:
            self.observe("the shape is iterated over", frame)
        self._tickets.append(Ticket(frame, frame.f_lasti, *found))
        return self._tickets[-1]

    def is_hint(self) -> bool:
        """Is the length asked for by an iteration that has just begun, to reserve memory?"""
        frame = user_frame(_OURS)
        ticket = self._tickets[-1] if self._tickets else None
        if ticket is None or ticket.measured or frame is not ticket.frame:
            return False
        ticket.measured = True
        return frame.f_lasti == ticket.origin

    def redeem(self, sizes: Iterable[AnyRankSize]) -> None:
        """The call that a ticket was for has come."""
        frame = user_frame(_OURS)
        for size in sizes:
            ticket = size.ticket
            if ticket is not None and not ticket.fits(frame):
                self.observe("the shape is unpacked", ticket.frame)
            if ticket is not None:
                ticket.redeemed = True

    @contextmanager
    def computing(self) -> Iterator[None]:
        """A block of ours, which may look at shapes."""
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1


def any_rank_session() -> AnyRankSession:
    """The trace with batch axes that is in progress."""
    session = active()
    assert isinstance(session, AnyRankSession)
    return session


@dataclass(frozen=True)
class Observation:
    """The first thing that may differ with the number of batch axes, and where."""

    what: str
    location: Location | None

    def __str__(self) -> str:
        return f"{self.what} ({self.location})" if self.location else self.what


class RanksApart(BaseException):
    """The program treats some numbers of batch axes unlike all others: they are judged apart.

    Not an ``Exception``, so that no handler in the traced program catches it.
    """

    def __init__(self, ranks: frozenset[int]) -> None:
        self.ranks = ranks
        super().__init__(str(sorted(ranks)))


class RankDependent(BaseException):
    """The traced program may behave differently for another number of batch axes.

    Not an ``Exception``, so that no handler in the traced program catches it.
    """

    def __init__(self, observation: Observation) -> None:
        self.observation = observation
        super().__init__(str(observation))
