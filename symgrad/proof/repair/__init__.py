"""Wrong gradients: what is wrong with them, and what to write instead."""
