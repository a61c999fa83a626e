"""``sg.vmap``: operations, Functions and gradients over whole batches."""
