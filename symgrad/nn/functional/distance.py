"""Distances and directions, and other functions that are operations of the table.

In: tensors.  Out: tensors.
"""

from __future__ import annotations

from typing import Any

import symgrad as sg

celu: Any = sg.celu
cosine_similarity: Any = sg.cosine_similarity
glu: Any = sg.glu
hardshrink: Any = sg.hardshrink
hinge_embedding_loss: Any = sg.hinge_embedding_loss
normalize: Any = sg.normalize
pad: Any = sg.pad
pairwise_distance: Any = sg.pairwise_distance
pixel_shuffle: Any = sg.pixel_shuffle
softshrink: Any = sg.softshrink
tanhshrink: Any = sg.tanhshrink
threshold: Any = sg.threshold
