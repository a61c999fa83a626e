"""Kernels written by symgrad: nn_cross_entropy, nn_elu, nn_erf, nn_gelu, nn_gelu_tanh, nn_layer_norm, nn_log_softmax, nn_logsigmoid, nn_logsumexp, nn_mish, nn_mse_loss, nn_relu, nn_rms_norm, nn_sigmoid, nn_silu, nn_softmax, nn_softplus.

Each is a module with `forward`, `backward` and `inference`; importing it loads its kernels, which
are compiled once where no shared object lies beside it.  MANIFEST.json says what each was made
from and what was proved of it.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = [
    "get_num_threads",
    "nn_cross_entropy",
    "nn_elu",
    "nn_erf",
    "nn_gelu",
    "nn_gelu_tanh",
    "nn_layer_norm",
    "nn_log_softmax",
    "nn_logsigmoid",
    "nn_logsumexp",
    "nn_mish",
    "nn_mse_loss",
    "nn_relu",
    "nn_rms_norm",
    "nn_sigmoid",
    "nn_silu",
    "nn_softmax",
    "nn_softplus",
    "set_num_threads",
]


def __getattr__(name: str) -> Any:
    """Import a module of kernels, or a function that sets the threads, when it is asked for.

    `export_torch` and `export_jax` hand the kernels to these: `export_torch.custom_op(module)`;
    `gufunc(module)` takes the keywords of NumPy's generalised ufuncs.
    """
    if name in ("export_torch", "export_jax"):
        return importlib.import_module(f"._runtime.{name}", __name__)
    if name == "gufunc" and name not in __all__:
        return importlib.import_module("._runtime.gufunc", __name__).gufunc
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.endswith("_num_threads"):
        return getattr(importlib.import_module("._runtime.threads", __name__), name)
    return importlib.import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
