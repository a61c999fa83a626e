"""Functions of modules under torch's names: ``import symgrad.nn.functional as F``.

In: nothing.  Out: the public operations, which ``sg`` has too: ``F.gelu is sg.gelu``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symgrad.tensor.functions import FUNCTIONS

_NAMES = """
    batch_norm binary_cross_entropy binary_cross_entropy_with_logits celu cosine_similarity
    cross_entropy dropout elu embedding gelu glu group_norm hardshrink hardsigmoid hardswish
    hardtanh hinge_embedding_loss huber_loss instance_norm kl_div l1_loss layer_norm leaky_relu
    linear log_softmax logsigmoid mish mse_loss nll_loss normalize one_hot pad pairwise_distance
    pixel_shuffle prelu relu relu6 rms_norm scaled_dot_product_attention selu sigmoid silu
    smooth_l1_loss softmax softmin softplus softshrink softsign tanh tanhshrink threshold
"""
__all__ = list(_NAMES.split())

globals().update({name: FUNCTIONS[name] for name in __all__})
if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def __dir__() -> list[str]:
    return __all__
