"""Random numbers of torch: each draw is a fresh unknown of the trace.

In: a function of torch that draws, and its arguments.  Out: a tensor of unknowns.  The same tensor
is the same unknowns wherever it is kept; another call draws others.  Nothing is known of them but
where they lie, so that what is proved holds for all draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.errors import DTypeError, ShapeError
from symgrad.frontend.caller import here
from symgrad.frontend.lift import as_tensor
from symgrad.frontend.refusals import is_so
from symgrad.frontend.session import current
from symgrad.frontend.table import FUNCTIONS
from symgrad.frontend.tensor import fresh
from symgrad.interop.torch import settings
from symgrad.ir.dtype import bool_, float64, int64
from symgrad.ir.function import Relation

_IGNORED = ("device", "layout", "pin_memory", "requires_grad", "memory_format")


def drawn(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The unknowns that a function draws; None for one of which no more is known."""
    given = {key: value for key, value in kwargs.items() if key not in _IGNORED}
    made = _DRAWS.get(name)
    if made is None or given.pop("generator", None) is not None or given.get("out") is not None:
        return None
    return made(*args, **given)


def _like(kind: str) -> Callable[..., Any]:
    def call(input: Any, *, dtype: Any = None) -> Any:
        return _of(kind, FUNCTIONS["zeros_like"](input, dtype=dtype))

    return call


def _sized(kind: str) -> Callable[..., Any]:
    def call(*size: Any, dtype: Any = None, **named: Any) -> Any:
        return _of(kind, FUNCTIONS["zeros"](*size, dtype=dtype, **named))

    return call


def _of(kind: str, like: Any) -> Any:
    """Unknowns in the shape and dtype of a tensor."""
    return fresh(current().draw(kind, as_tensor(like).node.type))


def _bernoulli(input: Any, p: Any = None) -> Any:
    return _kept(input, input if p is None else p, "bernoulli")


def _kept(like: Any, p: Any, name: str) -> Any:
    """Zeros and ones: 1 with probability ``p``, always for 1 and never for 0."""
    share = settings.as_number(p)
    settings.check_within(share, 0, 1, f"the probability of {name}")
    if not settings.is_symbolic_tensor(share):
        never = not is_so(share, "!=", 0, f"the probability of {name} is not 0")
        if never or not is_so(share, "!=", 1, f"the probability of {name} is not 1"):
            return FUNCTIONS["zeros_like" if never else "ones_like"](like)
        return _of("binary", like)
    found = _of("binary", like)
    possible = FUNCTIONS["where"](found != 0, share, 1 - share)
    said = f"{name} draws 0 or 1, each where it is possible"
    current().drawn.append(Relation(said, ">", as_tensor(possible).node))
    return found


def _normal(mean: Any, std: Any = 1.0, size: Any = None, *, dtype: Any = None) -> Any:
    settings.check_within(settings.as_number(std), 0, None, "the deviation of normal")
    if size is not None:
        return mean + std * _of("real", FUNCTIONS["zeros"](size, dtype=dtype))
    like = mean + FUNCTIONS["zeros_like"](std) if hasattr(std, "shape") else mean
    return mean + std * _of("real", like)


def _integers(kind: Callable[..., Any], low: Any, high: Any) -> Any:
    """Unknown integers from low to high, without that: each is a part of the range."""
    count = high - low
    settings.check_above(count, 0, "the number of integers that are drawn from")
    place = FUNCTIONS["floor"](kind() * count).to(int64)
    return FUNCTIONS["clamp"](place, 0, count - 1) + low


def _randint(*given: Any, dtype: Any = None, **named: Any) -> Any:
    """``randint(high, size)``, ``randint(low, high, size)``."""
    size = named.get("size", given[-1])
    bounds = given if "size" in named else given[:-1]
    low, high = (0, *bounds) if len(bounds) == 1 else bounds or (0, None)
    low, high = named.get("low", low), named.get("high", high)
    found = _integers(lambda: _of("unit", FUNCTIONS["zeros"](*size, dtype=float64)), low, high)
    return found if dtype is None else found.to(dtype)


def _randint_like(input: Any, *bounds: Any, dtype: Any = None, **named: Any) -> Any:
    low, high = (0, *bounds) if len(bounds) == 1 else bounds or (0, None)
    low, high = named.get("low", low), named.get("high", high)
    like = FUNCTIONS["zeros_like"](input, dtype=float64)
    return _integers(lambda: _of("unit", like), low, high).to(dtype or input.dtype)


def _random_(self: Any, *bounds: Any, **named: Any) -> Any:
    """Without bounds it draws what its dtype holds, of which nothing is known but that."""
    low, high = (0, *bounds) if len(bounds) == 1 else bounds or (0, None)
    low, high = named.get("from", low), named.get("to", high)
    if high is None:
        return None
    like = FUNCTIONS["zeros_like"](self, dtype=float64)
    return self.copy_(_integers(lambda: _of("unit", like), low, high).to(self.dtype))


def _native_dropout(input: Any, p: Any, train: Any = True) -> Any:
    """The result, and which elements stay."""
    settings.check_within(p, 0, 1, "the probability of native_dropout")
    if train is False:
        return input.clone(), FUNCTIONS["ones_like"](input, dtype=bool_)
    mask = _kept(input, 1 - p, "native_dropout") != 0
    none = not is_so(p, "!=", 1, "the probability of native_dropout is not 1")
    return (0 * input if none else input * mask / (1 - p)), mask


def _of_channels(count: int) -> Callable[..., Any]:
    """Dropout of whole channels, along the axes behind them."""

    def call(input: Any, p: Any = 0.5, training: bool = True, inplace: bool = False) -> Any:
        settings.check_within(p, 0, 1, "the probability of dropout")
        if not training or not is_so(p, "!=", 0, "the probability of dropout is not 0"):
            return input
        if input.ndim != count + 2:
            return None
        few = input[(...,) + (slice(0, 1),) * count]
        none = not is_so(p, "!=", 1, "the probability of dropout is not 1")
        found = 0 * input if none else input * _of("binary", few) / (1 - p)
        return input.copy_(found) if inplace else found

    return call


def _permutation(n: Any, *, dtype: Any = None) -> Any:
    """The order of unknowns: any permutation is one."""
    found = FUNCTIONS["argsort"](_of("real", FUNCTIONS["zeros"](n, dtype=float64)))
    return found if dtype is None else found.to(dtype)


def _multinomial(input: Any, num_samples: Any, replacement: bool = False) -> Any:
    """As torch draws: the greatest shares, each divided by an exponential unknown of its own."""
    shares = as_tensor(input)
    if not shares.dtype.is_float:
        raise DTypeError(
            "multinomial only supports floating-point dtypes for input, got: "
            f"{shares.dtype.scalar_type}", location=here(),
        )  # fmt: skip
    settings.check_within(shares, 0, None, "the shares of multinomial")
    settings.check_above(shares.sum(-1), 0, "the sum of the shares of multinomial")
    if replacement:
        count = shares.shape[-1]
        shares = shares.unsqueeze(-2).expand(*shares.shape[:-1], num_samples, count)
        return FUNCTIONS["argmax"](shares / _exponential(shares), -1)
    if num_samples > shares.shape[-1]:
        raise ShapeError(
            f"multinomial draws {num_samples} of {shares.shape[-1]} without replacement",
            location=here(),
        )
    order = FUNCTIONS["argsort"](shares / _exponential(shares), -1, descending=True)
    return order[..., :num_samples]


def _exponential(like: Any) -> Any:
    return FUNCTIONS["exp"](_of("real", like))


def _dropout(input: Any, p: Any = 0.5, training: bool = True, inplace: bool = False) -> Any:
    settings.check_within(p, 0, 1, "the probability of dropout")
    if not training or not is_so(p, "!=", 0, "the probability of dropout is not 0"):
        return input
    none = not is_so(p, "!=", 1, "the probability of dropout is not 1")
    found = 0 * input if none else input * _of("binary", input) / (1 - p)
    return input.copy_(found) if inplace else found


def _bernoulli_(self: Any, p: Any = 0.5) -> Any:
    return self.copy_(_kept(self, p, "bernoulli_"))


def _uniform_(self: Any, low: Any = 0.0, to: Any = 1.0, **named: Any) -> Any:
    low = named.get("from", low)
    settings.check_within(to - low, 0, None, "the length of the range of uniform_")
    return self.copy_(low + (to - low) * _of("unit", self))


def _normal_(self: Any, mean: Any = 0.0, std: Any = 1.0) -> Any:
    settings.check_within(std, 0, None, "the deviation of normal_")
    return self.copy_(mean + std * _of("real", self))


def _exponential_(self: Any, lambd: Any = 1.0) -> Any:
    settings.check_above(lambd, 0, "the rate of exponential_")
    return self.copy_(_exponential(self) / lambd)


def _log_normal_(self: Any, mean: Any = 1.0, std: Any = 2.0) -> Any:
    settings.check_above(std, 0, "the deviation of log_normal_")
    return self.copy_(FUNCTIONS["exp"](mean + std * _of("real", self)))


def _cauchy_(self: Any, median: Any = 0.0, sigma: Any = 1.0) -> Any:
    settings.check_above(sigma, 0, "the scale of cauchy_")
    return self.copy_(median + sigma * _of("real", self))


def _gumbel_softmax(
    logits: Any, tau: Any = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """As torch writes it; ``eps`` is not used there either."""
    soft = FUNCTIONS["softmax"]((logits - _exponential_(logits.clone()).log()) / tau, dim)
    if not hard:
        return soft
    place = soft.max(dim, keepdim=True)[1]
    return FUNCTIONS["zeros_like"](logits).scatter(dim, place, 1.0) - soft.detach() + soft


_DRAWS: dict[str, Callable[..., Any]] = {
    "rand": _sized("unit"), "randn": _sized("real"), "rand_like": _like("unit"),
    "randn_like": _like("real"), "bernoulli": _bernoulli, "normal": _normal, "dropout": _dropout,
    "bernoulli_": _bernoulli_, "uniform_": _uniform_, "normal_": _normal_,
    "exponential_": _exponential_, "log_normal_": _log_normal_, "cauchy_": _cauchy_,
    "gumbel_softmax": _gumbel_softmax, "randperm": _permutation, "multinomial": _multinomial,
    "randint": _randint, "randint_like": _randint_like, "random_": _random_,
    "native_dropout": _native_dropout,
    **{f"dropout{count}d": _of_channels(count) for count in (1, 2, 3)},
}  # fmt: skip
OF_SIZES = frozenset(("rand", "randn", "normal", "randint", "randperm"))
"""Those of them that need no tensor."""
NAMES = frozenset(_DRAWS)
"""Functions whose draws are unknowns."""
