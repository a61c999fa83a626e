"""Gradients over more than one machine, on Dask.

In: a function of tensors, a batch in shards.  Out: its value and gradient over the whole batch.

``gradients`` is what users call; ``batches`` finds the shards among the arguments; ``partials``
adds what they give, in one order; ``sending`` is how functions and kernels reach workers.
"""

from symgrad.interop.dask.gradients import ClusterError as ClusterError
from symgrad.interop.dask.gradients import Sharded as Sharded
from symgrad.interop.dask.gradients import sharded as sharded
from symgrad.interop.dask.gradients import value_and_grad as value_and_grad
from symgrad.interop.dask.partials import ShardError as ShardError
from symgrad.interop.dask.sending import Kernels as Kernels
