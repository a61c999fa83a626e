"""Pictures of graphs: ``sg.draw``.

In: tensors with history, Functions with shapes, traced Functions.  Out: ``Drawing``, an SVG.

    Tensor   --tape-----> Picture --layout--> Placed --render--> SVG
    Function --function->
"""

from __future__ import annotations

from symgrad.drawing.draw import Drawing as Drawing
from symgrad.drawing.draw import draw as draw
