"""The Functions behind ``symgrad.nn``: forward and backward by hand, each proved twice over.

In: nothing.  Out: the classes, by name; ``sg.verify(ReLU, order=2)`` judges one.
"""

from symgrad.nn.functions.activations import (
    ELU,
    GELU,
    SELU,
    GELUTanh,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    Mish,
    PReLU,
    ReLU,
    Sigmoid,
    SiLU,
    Softplus,
    Softsign,
    Tanh,
)
from symgrad.nn.functions.attention import Dropout, ScaledDotProductAttention
from symgrad.nn.functions.classification import (
    CrossEntropyLoss,
    NLLLoss,
    SoftTargetCrossEntropyLoss,
)
from symgrad.nn.functions.linear import Embedding, Linear
from symgrad.nn.functions.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    HuberLoss,
    KLDivLogLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
)
from symgrad.nn.functions.norms import (
    BatchNorm,
    BatchNormInference,
    GroupNorm,
    LayerNorm,
    RMSNorm,
)
from symgrad.nn.functions.shipped import SHIPPED as SHIPPED
from symgrad.nn.functions.softmax import LogSoftmax, Softmax

__all__ = [
    "ELU",
    "GELU",
    "SELU",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm",
    "BatchNormInference",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "GELUTanh",
    "GroupNorm",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HuberLoss",
    "KLDivLogLoss",
    "KLDivLoss",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "Mish",
    "NLLLoss",
    "PReLU",
    "RMSNorm",
    "ReLU",
    "ScaledDotProductAttention",
    "SiLU",
    "Sigmoid",
    "SoftTargetCrossEntropyLoss",
    "Softmax",
    "Softplus",
    "Softsign",
    "Tanh",
]
