"""What torch has and symgrad has not (yet): each asked for by name gets an error that names it.

In: a name that is not there.  Out: the error to raise.  Imports: ``symgrad.errors``,
the frontend's session.
"""

from __future__ import annotations

from symgrad.errors import Location, UnsupportedOpError
from symgrad.frontend.session import here


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RANDOM = _words(
    "bernoulli bernoulli_ cauchy_ dropout dropout_ exponential_ feature_dropout geometric_ "
    "log_normal_ multinomial normal normal_ poisson rand rand_like randint randint_like randn "
    "randn_like random_ randperm uniform_"
)
_DATA_DEPENDENT = _words("argwhere bincount histc masked_select nonzero unique unique_consecutive")
_OTHER_DTYPES = _words(
    "bfloat16 byte cdouble cfloat char complex complex128 complex64 half imag int real short "
    "view_as_complex view_as_real"
)
_AUTOGRAD = _words("backward register_hook retain_grad retains_grad grad_mode")
_OTHER = _words(
    "acosh_ addbmm adaptive_avg_pool2d addr as_strided as_strided_ avg_pool1d avg_pool2d "
    "bitwise_and bitwise_and_ bitwise_left_shift bitwise_not bitwise_or bitwise_or_ "
    "bitwise_right_shift bitwise_xor block_diag bucketize cdist cholesky cholesky_inverse "
    "cholesky_solve conj conv1d conv2d conv3d conv_transpose1d conv_transpose2d corrcoef cov "
    "cross cummax cummin det diag_scatter dist eig eigh einops erfcx fft fold fmax fmin frexp "
    "gcd geqrf grid_sample group_norm hypot i0 igamma igammac index_copy index_copy_ index_put "
    "index_put_ index_reduce instance_norm interpolate inverse isclose istft kron kthvalue lcm "
    "lgamma_ ldexp lerp lerp_ linalg_norm logcumsumexp logdet logit logit_ lu lu_solve "
    "masked_scatter masked_scatter_ matrix_exp matrix_power max_pool1d max_pool2d max_pool3d "
    "median mode mvlgamma nanmean nanmedian nansum nextafter one_hot orgqr ormqr pad pad_sequence "
    "pairwise_distance pdist pinverse polygamma qr quantile renorm renorm_ repeat_interleave "
    "resize resize_ roll rot90 scatter_reduce scatter_reduce_ searchsorted select_scatter "
    "sinc slice_scatter slogdet solve_triangular sort sparse_mask stft svd symeig take "
    "tensor_split topk trapezoid trapz triangular_solve unfold vander view_as_windows xlogy "
    "argsort inv solve"
)


def known(name: str) -> bool:
    """Is it a name of torch's?"""
    return any(
        name in group for group in (_RANDOM, _DATA_DEPENDENT, _OTHER_DTYPES, _AUTOGRAD, _OTHER)
    )


def _hint(name: str) -> str:
    if name in _RANDOM:
        return "draw random numbers outside and pass them as an input"
    if name in _DATA_DEPENDENT:
        return "its shape depends on values; keep the whole tensor and use a mask with sg.where"
    if name in _OTHER_DTYPES:
        return "symgrad computes in float32, float64, int64 and bool"
    if name in _AUTOGRAD:
        return "write the gradient out in backward"
    return "write it with the operations that are there, or ask for it in an issue"


class MissingOperationError(UnsupportedOpError, AttributeError):
    """An operation of torch's that symgrad has not; ``hasattr`` says False."""


def missing_op(name: str, location: Location | None) -> MissingOperationError:
    """The error for an operation that symgrad has not."""
    return MissingOperationError(
        f"symgrad has no operation {name!r}", location=location, hint=_hint(name)
    )


def missing_function(name: str) -> Exception:
    """The error for an attribute of symgrad: torch's gets a pointer, any other is just absent."""
    if known(name):
        return missing_op(name, here())
    return AttributeError(f"module 'symgrad' has no attribute {name!r}")


def missing_method(name: str, location: Location | None) -> Exception:
    """The error for an attribute of a tensor: torch's gets a pointer, any other is just absent."""
    if known(name):
        return missing_op(name, location)
    where = f" ({location})" if location else ""
    return AttributeError(f"a symbolic tensor has no attribute {name!r}{where}")
