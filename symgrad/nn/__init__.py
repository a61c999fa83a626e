"""Layers as in torch, every one of them on proved Functions.

In: sizes and settings.  Out: modules, ``functional``, ``init``, files of parameters.

    module --functional--> Function, by hand --verify--> PROVED, to second order
"""

from symgrad.nn import functional as functional
from symgrad.nn import functions as functions
from symgrad.nn import init as init
from symgrad.nn import utils as utils
from symgrad.nn.files import load_file as load_file
from symgrad.nn.files import save_file as save_file
from symgrad.nn.modules.activation import ELU as ELU
from symgrad.nn.modules.activation import GELU as GELU
from symgrad.nn.modules.activation import SELU as SELU
from symgrad.nn.modules.activation import Hardsigmoid as Hardsigmoid
from symgrad.nn.modules.activation import Hardswish as Hardswish
from symgrad.nn.modules.activation import Hardtanh as Hardtanh
from symgrad.nn.modules.activation import LeakyReLU as LeakyReLU
from symgrad.nn.modules.activation import LogSigmoid as LogSigmoid
from symgrad.nn.modules.activation import LogSoftmax as LogSoftmax
from symgrad.nn.modules.activation import Mish as Mish
from symgrad.nn.modules.activation import PReLU as PReLU
from symgrad.nn.modules.activation import ReLU as ReLU
from symgrad.nn.modules.activation import ReLU6 as ReLU6
from symgrad.nn.modules.activation import Sigmoid as Sigmoid
from symgrad.nn.modules.activation import SiLU as SiLU
from symgrad.nn.modules.activation import Softmax as Softmax
from symgrad.nn.modules.activation import Softmin as Softmin
from symgrad.nn.modules.activation import Softplus as Softplus
from symgrad.nn.modules.activation import Softsign as Softsign
from symgrad.nn.modules.activation import Tanh as Tanh
from symgrad.nn.modules.attention import MultiheadAttention as MultiheadAttention
from symgrad.nn.modules.containers import ModuleDict as ModuleDict
from symgrad.nn.modules.containers import ModuleList as ModuleList
from symgrad.nn.modules.containers import ParameterList as ParameterList
from symgrad.nn.modules.containers import Sequential as Sequential
from symgrad.nn.modules.linear import Dropout as Dropout
from symgrad.nn.modules.linear import Embedding as Embedding
from symgrad.nn.modules.linear import Flatten as Flatten
from symgrad.nn.modules.linear import Identity as Identity
from symgrad.nn.modules.linear import Linear as Linear
from symgrad.nn.modules.linear import Unflatten as Unflatten
from symgrad.nn.modules.loss import BCELoss as BCELoss
from symgrad.nn.modules.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from symgrad.nn.modules.loss import CosineSimilarity as CosineSimilarity
from symgrad.nn.modules.loss import CrossEntropyLoss as CrossEntropyLoss
from symgrad.nn.modules.loss import HuberLoss as HuberLoss
from symgrad.nn.modules.loss import KLDivLoss as KLDivLoss
from symgrad.nn.modules.loss import L1Loss as L1Loss
from symgrad.nn.modules.loss import MSELoss as MSELoss
from symgrad.nn.modules.loss import NLLLoss as NLLLoss
from symgrad.nn.modules.loss import PairwiseDistance as PairwiseDistance
from symgrad.nn.modules.loss import SmoothL1Loss as SmoothL1Loss
from symgrad.nn.modules.module import Module as Module
from symgrad.nn.modules.normalization import BatchNorm1d as BatchNorm1d
from symgrad.nn.modules.normalization import BatchNorm2d as BatchNorm2d
from symgrad.nn.modules.normalization import BatchNorm3d as BatchNorm3d
from symgrad.nn.modules.normalization import GroupNorm as GroupNorm
from symgrad.nn.modules.normalization import InstanceNorm1d as InstanceNorm1d
from symgrad.nn.modules.normalization import InstanceNorm2d as InstanceNorm2d
from symgrad.nn.modules.normalization import InstanceNorm3d as InstanceNorm3d
from symgrad.nn.modules.normalization import LayerNorm as LayerNorm
from symgrad.nn.modules.normalization import RMSNorm as RMSNorm
from symgrad.nn.parameter import Parameter as Parameter
