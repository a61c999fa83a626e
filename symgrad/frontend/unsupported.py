"""What torch has and symgrad has not (yet): each asked for by name gets an error that names it.

In: a name that is not there.  Out: the error to raise.
"""

from __future__ import annotations

from collections.abc import Iterable

from symgrad.errors import Location, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.ir.dtype import LISTED


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RANDOM = _words(
    "alpha_dropout bernoulli bernoulli_ cauchy_ dropout_ exponential_ feature_dropout geometric_ "
    "log_normal_ multinomial normal normal_ poisson rand rand_like randint randint_like randn "
    "randn_like random_ randperm uniform_"
)
_DATA_DEPENDENT = _words("unique unique_consecutive")
_OTHER_DTYPES = _words("bfloat16 byte char half")
_COMPLEX = _words(
    "angle cdouble cfloat chalf complex complex128 complex64 conj conj_physical conj_physical_ fft "
    "imag is_conj is_neg isreal istft polar real resolve_conj resolve_neg stft view_as_complex "
    "view_as_real"
)
IN_PARTS = (
    "this is not traced of complex numbers: state which inputs are complex (c64[n m]), or compute "
    "with the real and the imaginary part, two real tensors, or put a reference that does in "
    "the place of the function that calls it (replace in symgrad.toml, --replace "
    "module.fn=reference.fn)"
)
"""What to do where complex numbers are computed with."""
_AUTOGRAD = _words("backward register_hook retain_grad retains_grad grad_mode")
_OTHER = _words(
    "affine_grid_generator alpha_dropout alpha_dropout_ apply_ as_strided as_strided_ "
    "as_strided_scatter as_subclass bartlett_window binomial "
    "blackman_window "
    "cartesian_prod ccol_indices celu_ channel_shuffle coalesce "
    "col_indices combinations const_data_ptr constant_pad_nd "
    "conv_tbc convolution cosine_embedding_loss crow_indices ctc_loss "
    "cumulative_trapezoid data_ptr dense_dim dequantize diag_scatter dim_order "
    "dropout1d dropout2d dropout3d dsmm dsplit dstack eig einops empty_permuted "
    "empty_strided erfcx feature_dropout_ fractional_max_pool2d fractional_max_pool3d frexp "
    "gaussian_nll_loss gcd gcd_ geqrf grad_dtype gradient gumbel_softmax "
    "hamming_window hann_window hash_tensor heaviside_ histogram histogramdd hsmm hsplit i0 i0_ "
    "igamma igamma_ igammac igammac_ index indices int_repr "
    "inv ipu is_coalesced is_distributed is_inference is_ipu is_maia is_meta "
    "is_mkldnn is_mps is_mtia is_nested is_nonzero is_pinned is_set_to is_shared is_signed "
    "is_sparse_csr is_vulkan is_xla is_xpu itemsize kaiser_window "
    "lcm lcm_ ldexp ldexp_ local_response_norm logspace lp_pool1d lp_pool2d lp_pool3d "
    "lstsq lu lu_solve lu_unpack map2_ map_ matrix_exp matrix_rank mode module_load mtia mvlgamma "
    "mvlgamma_ name nanquantile narrow_copy nbytes new_empty_strided nextafter nextafter_ "
    "nonzero_static norm_except_dim orgqr ormqr output_nr pad_sequence pca_lowrank "
    "pin_memory pixel_unshuffle poisson_nll_loss polygamma_ put put_ "
    "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point "
    "qscheme range record_stream register_post_accumulate_grad_hook reinforce renorm "
    "renorm_ resize resize_ resize_as resize_as_ resize_as_sparse_ "
    "row_indices row_stack rrelu_ saddmm selu_ set_ "
    "share_memory_ slice_inverse smm solve sparse_dim "
    "sparse_mask sparse_resize_ sparse_resize_and_clear_ spmm sspaddmm storage "
    "storage_offset storage_type stride svd_lowrank swapaxes_ swapdims_ symeig threshold_ "
    "to_dense to_dlpack to_mkldnn to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr "
    "to_sparse_coo to_sparse_csc to_sparse_csr trapezoid trapz unsafe_chunk unsafe_split "
    "unsafe_split_with_sizes untyped_storage values view_as_windows volatile vsplit xpu"
)


def known(name: str) -> bool:
    """Is it a name of torch's?"""
    return any(
        name in group
        for group in (_RANDOM, _DATA_DEPENDENT, _OTHER_DTYPES, _COMPLEX, _AUTOGRAD, _OTHER)
    )


def _hint(name: str) -> str:
    if name in _RANDOM:
        return "draw random numbers outside and pass them as an input"
    if name in _DATA_DEPENDENT:
        return "its shape depends on values; keep the whole tensor and use a mask with sg.where"
    if name in _OTHER_DTYPES:
        return f"symgrad computes in {LISTED}"
    path = name.split(".")
    if path[-1] in _COMPLEX or "fft" in path:
        return IN_PARTS
    if name in _AUTOGRAD:
        return "write the gradient out in backward"
    return (
        "write it with the operations that are there, or put a reference in the place of the "
        "function that calls it (replace in symgrad.toml, --replace module.fn=reference.fn)"
    )


class MissingOperationError(UnsupportedOpError, AttributeError):
    """An operation of torch's that symgrad has not; ``hasattr`` says False."""


def missing_op(name: str, location: Location | None) -> MissingOperationError:
    """The error for an operation that symgrad has not."""
    return MissingOperationError(
        f"symgrad has no operation {name!r}", location=location, hint=_hint(name)
    )


def missing_function(name: str, public: Iterable[str] = ()) -> Exception:
    """The error for an attribute of symgrad: torch's gets a pointer, any other is just absent.

    ``public``: the names that are there, of which the nearest is named.
    """
    if known(name):
        return missing_op(name, here())
    from difflib import get_close_matches  # only needed for a name that is wrong

    near = get_close_matches(name, public, 1, 0.75)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return AttributeError(f"module 'symgrad' has no attribute {name!r}{hint}")


def missing_method(name: str, location: Location | None) -> Exception:
    """The error for an attribute of a tensor: torch's gets a pointer, any other is just absent."""
    if known(name):
        return missing_op(name, location)
    where = f" ({location})" if location else ""
    return AttributeError(f"a symbolic tensor has no attribute {name!r}{where}")
