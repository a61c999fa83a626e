"""Discrete Fourier transforms, as the sums that define them.

In: a tensor, real or complex, and torch's settings.  Out: its transform.

``X[k]`` is the sum over j of ``x[j] * exp(-2πi*j*k/n)``, for any number n of points.  Of a real x
``X[n - k]`` is the conjugate of ``X[k]``: ``rfft`` gives ``n//2 + 1`` of them, and ``irfft`` counts
those twice of which the other is not there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.errors import ShapeError
from symgrad.frontend.caller import here
from symgrad.frontend.complexes import ComplexTensor
from symgrad.frontend.lift import as_tensor
from symgrad.frontend.session import current
from symgrad.frontend.sizes import as_dim
from symgrad.frontend.table import functions as sg
from symgrad.frontend.views import Slice
from symgrad.interop.torch.complexes.table import (
    Parts,
    each,
    operation,
    paired,
    parts,
    refused,
)
from symgrad.interop.torch.dtypes import ours
from symgrad.ir.dim import Dim, minimum

FORWARD, INVERSE = -1, 1
"""The sign of the exponents."""


def _points(dtype: Any, rows: Any, columns: Any, count: Any) -> Parts:
    """The cosines and the sines of ``2π*j*k/count`` for the rows j and the columns k."""
    places = sg.arange(rows, dtype=dtype)[:, None] * sg.arange(columns, dtype=dtype)
    angles = places * (sg.acos(-sg.ones((), dtype=dtype)) * 2 / count)
    return sg.cos(angles), sg.sin(angles)


def _cut(part: Any, count: Any) -> Any:
    """No more than so many elements of the last axis: those behind are not counted."""
    if part is None:
        return None
    size, most = part.node.shape[-1], as_dim(count)
    fits = current().facts.decide(size, "<=", most)
    least = minimum(size, most) if fits is None else size if fits else most
    return part if least == size else part.shared(Slice(part.ndim - 1, Dim.of(0), 1, least))


def _count(size: Any, n: Any) -> Any:
    """The number of points: ``n`` where it is given.  Raises ShapeError for none."""
    count = size if n is None else n
    if not current().truth(as_dim(count), ">=", 1):
        raise ShapeError("a transform has no points", location=here(), hint="give it n=1 or more")
    return count


def _scale(norm: str | None, sign: int, count: Any) -> Any:
    """What a transform is divided by."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise refused(f"a transform is scaled by norm={norm!r}")
    if norm == "ortho":
        return count**0.5
    return count if (norm == "forward") == (sign == FORWARD) else None


def _scaled(part: Any, by: Any) -> Any:
    return part if by is None else part / by


def _last(given: Any, dim: int) -> Parts:
    """The parts with an axis moved to the end."""
    real, imaginary = parts(given)
    real = real if real.dtype.is_float else real.to(current().dtype)
    return real.movedim(dim, -1), None if imaginary is None else imaginary.movedim(dim, -1)


def _back(found: Parts, dim: int, given: Any) -> ComplexTensor:
    result = paired(*(one.movedim(-1, dim) for one in found), given)
    if dim not in (-1, given.ndim - 1):
        result.pairs.lies_anyhow()
    return result


def _whole(given: Any, n: Any, dim: int, norm: str | None, sign: int) -> ComplexTensor:
    real, imaginary = _last(given, dim)
    count = _count(real.shape[-1], n)
    real, imaginary = _cut(real, count), _cut(imaginary, count)
    cosines, sines = _points(real.dtype, real.shape[-1], count, count)
    by = _scale(norm, sign, count)
    found = real @ cosines, real @ sines * sign
    if imaginary is not None:
        found = found[0] - imaginary @ sines * sign, found[1] + imaginary @ cosines
    return _back((_scaled(found[0], by), _scaled(found[1], by)), dim, given)


def _to_half(given: Any, n: Any, dim: int, norm: str | None, sign: int) -> ComplexTensor:
    """The transform of reals, of which one half is given."""
    if isinstance(given, ComplexTensor):
        raise refused("torch takes no complex numbers here", "write torch.fft.fft")
    real, _ = _last(given, dim)
    count = _count(real.shape[-1], n)
    real = _cut(real, count)
    cosines, sines = _points(real.dtype, real.shape[-1], count // 2 + 1, count)
    by = _scale(norm, sign, count)
    return _back((_scaled(real @ cosines, by), _scaled(real @ sines * sign, by)), dim, given)


def _from_half(given: Any, n: Any, dim: int, norm: str | None, sign: int) -> Any:
    """The reals of whose transform one half is given."""
    real, imaginary = _last(given, dim)
    count = _count(2 * (real.shape[-1] - 1), n)
    real, imaginary = _cut(real, count // 2 + 1), _cut(imaginary, count // 2 + 1)
    rows = real.shape[-1]
    cosines, sines = _points(real.dtype, rows, count, count)
    place = sg.arange(rows)
    times = sg.where((place == 0) | (2 * place == count), 1.0, 2.0).to(real.dtype)
    found = (real * times) @ cosines
    if imaginary is not None:
        found = found - (imaginary * times) @ sines * sign
    result = _scaled(found, _scale(norm, sign, count)).movedim(-1, dim)
    result.lies_anyhow()
    return result


# -- torch's functions


def _of_one(name: str, transform: Callable[..., Any], sign: int) -> None:
    def call(input: Any, n: Any = None, dim: int = -1, norm: str | None = None) -> Any:
        return transform(input, n, dim, norm, sign)

    operation(f"fft_{name}", of_reals=True)(call)


_of_one("fft", _whole, FORWARD)
_of_one("ifft", _whole, INVERSE)
_of_one("rfft", _to_half, FORWARD)
_of_one("ihfft", _to_half, INVERSE)
_of_one("irfft", _from_half, INVERSE)
_of_one("hfft", _from_half, FORWARD)


def _of_several(name: str, transform: Callable[..., Any], sign: int) -> None:
    """A transform along several axes: the last one of them is that of the reals."""

    def several(input: Any, s: Any, dim: Any, norm: str | None) -> Any:
        axes = _all_axes(input, s, dim)
        counts = [None] * len(axes) if s is None else [None if one == -1 else one for one in s]
        if len(counts) != len(axes):
            raise refused("a transform has another number of sizes than of axes")
        *others, last = zip(counts, axes, strict=True)
        real_first = transform is _to_half
        found = transform(input, *last, norm, sign) if real_first else input
        for count, axis in reversed(others):
            found = _whole(found, count, axis, norm, sign)
        return found if real_first else transform(found, *last, norm, sign)

    def of_any(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
        return several(input, s, dim, norm)

    def of_two(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
        return several(input, s, dim, norm)

    operation(f"fft_{name}n", of_reals=True)(of_any)
    operation(f"fft_{name}2", of_reals=True)(of_two)


def _all_axes(input: Any, s: Any, dim: Any) -> Sequence[int]:
    if dim is not None:
        return (dim,) if isinstance(dim, int) else tuple(dim)
    return range(input.ndim) if s is None else range(-len(s), 0)


_of_several("fft", _whole, FORWARD)
_of_several("ifft", _whole, INVERSE)
_of_several("rfft", _to_half, FORWARD)
_of_several("irfft", _from_half, INVERSE)


def _frequencies(name: str, *, half: bool) -> None:
    def places(
        n: Any, d: float = 1.0, *, dtype: Any = None, device: Any = None, layout: Any = None,
        requires_grad: bool = False,
    ) -> Any:  # fmt: skip
        kind = current().dtype if dtype is None else ours(dtype)
        if half:
            return sg.arange(n // 2 + 1, dtype=kind) / (n * d)
        place = sg.arange(n)
        return sg.where(2 * place < n, place, place - n).to(kind) / (n * d)

    operation(f"fft_{name}", of_reals=True)(places)


_frequencies("fftfreq", half=False)
_frequencies("rfftfreq", half=True)


def _shifted(name: str, *, centre_first: bool) -> None:
    """A function that exchanges the halves of axes; the first is shorter where it is to come."""

    def exchanged(part: Any, axis: int) -> Any:
        size = part.node.shape[axis]
        first = size // 2 if centre_first else size - size // 2
        place = axis % part.ndim
        before = part.shared(Slice(place, Dim.of(0), 1, first))
        return sg.cat([part.shared(Slice(place, first, 1, size - first)), before], place)

    def shift(input: Any, dim: Any = None) -> Any:
        axes = _all_axes(as_tensor(input), None, dim)

        def moved(part: Any) -> Any:
            return functools.reduce(exchanged, axes, part)

        return each(moved, input) if isinstance(input, ComplexTensor) else moved(input)

    operation(f"fft_{name}", of_reals=True)(shift)


_shifted("fftshift", centre_first=False)
_shifted("ifftshift", centre_first=True)


@operation("stft", of_reals=True)
def _short(
    input: Any, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None, align_to_window: Any = None,
) -> Any:  # fmt: skip
    """The transforms of windows of a signal, one a column."""
    if isinstance(input, ComplexTensor) or isinstance(window, ComplexTensor) or align_to_window:
        raise refused("stft is called of complex numbers, or with align_to_window")
    length = n_fft if win_length is None else win_length
    weights = sg.ones(length, dtype=input.dtype) if window is None else window
    before = (n_fft - length) // 2
    weights = sg.pad(weights, (before, n_fft - length - before))
    signal = input
    if center:
        row = sg.pad(input.reshape(1, -1, input.shape[-1]), (n_fft // 2,) * 2, mode=pad_mode)
        signal = row.reshape(*input.shape[:-1], row.shape[-1])
    frames = signal.unfold(-1, n_fft, n_fft // 4 if hop_length is None else hop_length) * weights
    transform = _whole if onesided is False else _to_half
    found = transform(frames, None, -1, "ortho" if normalized else None, FORWARD)
    turned = each(lambda part: part.transpose(-1, -2), found)
    return turned if return_complex else turned.pairs
