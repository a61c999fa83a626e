"""The Functions of ``symgrad.nn`` whose kernels come with symgrad.

In: nothing.  Out: ``SHIPPED``: Functions by the names of their modules in ``generated``; ``symgrad
regen`` compiles them, ``symgrad.tensor.shipped`` looks them up.
"""

from symgrad.nn.functions.activations import GELU, GELUTanh, ReLU, Sigmoid, SiLU, Softplus
from symgrad.nn.functions.classification import CrossEntropyLoss
from symgrad.nn.functions.losses import MSELoss
from symgrad.nn.functions.norms import LayerNorm, RMSNorm
from symgrad.nn.functions.softmax import LogSoftmax, Softmax
from symgrad.tensor.shipped import register

SHIPPED = {
    "nn_cross_entropy_loss": CrossEntropyLoss,
    "nn_gelu": GELU,
    "nn_gelu_tanh": GELUTanh,
    "nn_layer_norm": LayerNorm,
    "nn_log_softmax": LogSoftmax,
    "nn_mse_loss": MSELoss,
    "nn_relu": ReLU,
    "nn_rms_norm": RMSNorm,
    "nn_sigmoid": Sigmoid,
    "nn_silu": SiLU,
    "nn_softmax": Softmax,
    "nn_softplus": Softplus,
}
register(SHIPPED)
"""By the name of the module: ``symgrad.generated.<name>``."""
