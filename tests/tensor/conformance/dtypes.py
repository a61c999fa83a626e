"""Integers of every width: promotion, wrapping around, division, indices, printing, conversion."""

from collections.abc import Callable
from typing import Any

NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")
INTEGERS = NAMES[1:6]


def _each(*calls: Callable[[], Any]) -> list[Any]:
    """What each returns, or that it is refused."""
    found: list[Any] = []
    for call in calls:
        try:
            found.append(call())
        except (RuntimeError, TypeError, IndexError, ValueError):
            found.append("refused")
    return found


def _operands(torch: Any) -> list[Any]:
    """Of each dtype a vector and a number; and Python's numbers."""
    tensors = [
        torch.ones(shape, dtype=getattr(torch, name)) for name in NAMES for shape in ((2,), ())
    ]
    return [*tensors, True, 2, 2.5]


def result_types(torch: Any) -> Any:
    operands = _operands(torch)
    return [
        str(torch.result_type(one, other)) for one in operands[:-3] for other in operands
    ]  # fmt: skip


def promoted_types(torch: Any) -> Any:
    kinds = [getattr(torch, name) for name in NAMES]
    return [
        str(call(one, other))
        for one in kinds
        for other in kinds
        for call in (torch.promote_types, torch.can_cast)
    ]


def arithmetic_of_all_dtypes(torch: Any) -> Any:
    operands = _operands(torch)
    return [
        _each(lambda: one + other, lambda: one * other, lambda: one / other, lambda: one == other)  # noqa: B023
        for one in operands[:-3]
        for other in operands
    ]


def _ends(torch: Any, name: str) -> Any:
    info = torch.iinfo(getattr(torch, name))
    return torch.tensor([info.min, info.max, 7, 3, 0], dtype=getattr(torch, name))


def wrapping_around(torch: Any) -> Any:
    x8, u8 = _ends(torch, "int8"), _ends(torch, "uint8")
    found = []
    for name in INTEGERS:
        x = _ends(torch, name)
        found += [
            x + x, x - 1, x + 1, x * 3, x * x, -x, abs(x), x**2, x**3, x.square(), x + 300, x - 300,
            x.sum(), x.prod(), x.sum(dtype=x.dtype), x.cumsum(0), x.cumprod(0),
            x.cumsum(0, dtype=x.dtype), x.add(x, alpha=3), x.addcmul(x, x), x.sign(), x.relu(),
        ]  # fmt: skip
    return [*found, x8 + u8, x8 * u8, u8 - x8, x8.maximum(u8), torch.where(x8 > 0, x8, u8)]


def division(torch: Any) -> Any:
    found = []
    for name in INTEGERS:
        x = _ends(torch, name)
        for by in (3, 7, 1) if name == "uint8" else (3, -3, 1, -7):
            found += [
                x // by, x % by, x.fmod(by), x / by, torch.div(x, by, rounding_mode="floor"),
                torch.div(x, by, rounding_mode="trunc"), x.remainder(torch.tensor(by)),
            ]  # fmt: skip
    return [*found, _ends(torch, "int8") // -1, _ends(torch, "int16") // -1]


def conversions(torch: Any) -> Any:
    wide = torch.tensor([0, 1, -1, 127, 128, 255, 256, 32768, -32769, 2**31, -(2**40) + 5])
    real = torch.tensor([0.0, 1.7, -1.7, 127.9, 200.5, -128.0])
    found = [wide.to(getattr(torch, name)) for name in NAMES]
    found += [real.to(getattr(torch, name)) for name in NAMES]
    found += [getattr(wide, name)() for name in ("byte", "char", "short", "int", "long", "bool")]
    small = wide.char()
    return [
        *found, small.float(), small.double(), small.byte(), small.type(torch.int16),
        small.type_as(real), small.to(torch.uint8).to(torch.int8), [one.type() for one in found],
        small.bool(), small.tolist(), small[3].item(), int(small[3]), small.element_size(),
        str(torch.short), str(torch.int), str(torch.long), str(torch.float), str(torch.double),
    ]  # fmt: skip


def creation(torch: Any) -> Any:
    kinds = [getattr(torch, name) for name in INTEGERS]
    found = [
        (
            torch.zeros(2, dtype=kind), torch.ones((), dtype=kind), torch.full((2,), 7, dtype=kind),
            torch.arange(5, dtype=kind), torch.eye(2, dtype=kind), torch.tensor([1, 2], dtype=kind),
            torch.linspace(0, 9, 4, dtype=kind), torch.tensor([1.7, 0.2], dtype=kind),
            torch.zeros(2).to(kind).new_ones(3), torch.zeros_like(torch.ones(2, dtype=kind)),
        )
        for kind in kinds
    ]  # fmt: skip
    import numpy as np

    arrays = [np.arange(3, dtype=name) for name in INTEGERS]
    return [
        *found, [torch.tensor(one) for one in arrays], [torch.from_numpy(one) for one in arrays],
        [torch.as_tensor(one).numpy() for one in arrays], torch.arange(300, dtype=torch.int8)[-3:],
        torch.tensor(-1, dtype=torch.uint8), torch.iinfo(torch.int16).max,
    ]  # fmt: skip


def what_does_not_fit(torch: Any) -> Any:
    x = torch.tensor([1, 2], dtype=torch.int8)
    return _each(
        lambda: torch.tensor(300, dtype=torch.int8), lambda: torch.tensor([300], dtype=torch.int8),
        lambda: torch.full((2,), 300, dtype=torch.int8), lambda: x.clone().fill_(300),
        lambda: torch.where(x > 0, x, 300), lambda: x.masked_fill(x > 0, 300),
        lambda: x.clamp(0, 300), lambda: x.new_tensor(300), lambda: x.new_full((2,), -200),
        lambda: torch.tensor(-300, dtype=torch.uint8), lambda: x.clone().mul_(1.5),
        lambda: x.clone().div_(2), lambda: x.requires_grad_(), lambda: x.mean(),
        lambda: x.clone().add_(torch.tensor(1.0)), lambda: -torch.tensor([True]),
    )  # fmt: skip


def comparisons(torch: Any) -> Any:
    found = []
    for name in INTEGERS:
        x = _ends(torch, name)
        found += [
            x == 7, x < 7, x >= x.flip(0), x != 0, x > 2.5, x == torch.tensor(3), x.any(), x.all(),
            x.max(0).indices, x.argmin(), x.amax(), x.amin(), x.min(0).values, x.clamp(1, 5),
            x.maximum(x.flip(0)), x.bool(), x.logical_and(x), x.logical_not(), x.count_nonzero(),
            x.isnan(), x.isfinite(), x.equal(x), x.any(0, keepdim=True),
        ]  # fmt: skip
    return found


def order(torch: Any) -> Any:
    found = []
    for name in INTEGERS:
        x = _ends(torch, name)
        s = x.sort(descending=True)
        k = x.topk(2)
        found += [s.values, s.indices, k.values, k.indices, x.argsort(), x.unique(), x.flip(0)]
    return found


def rearranged(torch: Any) -> Any:
    found = []
    for name in INTEGERS:
        x = _ends(torch, name).reshape(1, 5)
        found += [
            x.t(), x.expand(2, 5), torch.cat([x, x], 0), torch.stack([x, x]), x.repeat(2, 1),
            torch.tril(x.expand(2, 5)), x[0].diag(), x[:, 1:3], x.roll(1, 1), x.clone().fill_(3),
            x.masked_fill(x > 3, 1), x.nonzero(),
        ]  # fmt: skip
    u8, x8 = _ends(torch, "uint8"), _ends(torch, "int8")
    return [*found, torch.cat([u8, x8]), torch.stack([u8, x8]), torch.cat([x8, torch.ones(2)])]


def indices(torch: Any) -> Any:
    x = torch.arange(12.0).reshape(3, 4)
    rows = torch.tensor([2, 0, -1], dtype=torch.int32)
    places = torch.tensor([[0, 2, 1, 1]], dtype=torch.int32)
    embedding = torch.nn.functional.embedding
    y, z = x.clone(), x.clone()
    y[rows] = -1.0
    z[:, rows] += 1.0
    return [
        x[rows], x[:, rows], x[rows, rows], y, z, x.index_select(0, places[0, :3]),
        x.gather(0, places), x.scatter(0, places, 5.0), x.scatter_add(0, places, x[:1]),
        x.index_add(0, places[0, :3], x), embedding(places, x), x[torch.tensor(1)],
        x[torch.tensor(2, dtype=torch.int32)],
    ]  # fmt: skip


def what_is_no_index(torch: Any) -> Any:
    x = torch.arange(12.0).reshape(3, 4)
    i8, i16 = torch.tensor([1, 0], dtype=torch.int8), torch.tensor([1, 0], dtype=torch.int16)
    embedding = torch.nn.functional.embedding
    return _each(
        lambda: x[i8], lambda: x[i16], lambda: x[:, i8], lambda: x.index_select(0, i16),
        lambda: embedding(i16, x), lambda: x[torch.tensor([3], dtype=torch.int32)],
        lambda: x.index_select(0, torch.ones(2)), lambda: x[torch.ones(2)],
    )  # fmt: skip


def masks_of_uint8(torch: Any) -> Any:
    x = torch.arange(3.0)
    mask = torch.tensor([1, 0, 2], dtype=torch.uint8)
    y = x.clone()
    y[mask] = torch.tensor([7.0, 8.0])
    return [x[mask], y]


def added_at_places(torch: Any) -> Any:
    places = torch.tensor([0, 0, 1, 2, 2])
    return [
        torch.zeros(3, dtype=x.dtype).scatter_add(0, places, x)
        for x in (_ends(torch, name) for name in INTEGERS)
    ]


def in_place(torch: Any) -> Any:
    found = []
    for name in INTEGERS:
        x = _ends(torch, name)
        x += 3
        x *= 2
        x -= torch.tensor(1)
        x //= 2
        x[0] = 5
        x[1:2] = torch.tensor(2.75)
        found.append(x.copy_(x + 1).clamp_(0, 9))
    return found


def printing(torch: Any) -> Any:
    for name in INTEGERS:
        x = _ends(torch, name)
        print(x, x[2], x[:0], x.reshape(5, 1))
    return None


def gradients_beside_integers(torch: Any) -> Any:
    found = []
    for name in INTEGERS:
        k = _ends(torch, name)
        x = torch.arange(5.0, requires_grad=True)
        (x * k + (k // 2).float() * x**2).sum().backward()
        found.append(x.grad)
    return found
