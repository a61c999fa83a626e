"""Optimizers as in torch, the update of a parameter one compiled kernel.

In: parameters with gradients.  Out: the parameters, moved.

    updates (formulas) --inplace--> C that writes where it read --kernels--> step
"""

from symgrad.optim import lr_scheduler as lr_scheduler
from symgrad.optim.adam import Adam as Adam
from symgrad.optim.adam import AdamW as AdamW
from symgrad.optim.optimizer import Optimizer as Optimizer
from symgrad.optim.sgd import SGD as SGD
