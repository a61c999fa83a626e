"""Functions of tensors while they are traced: lifted tensors, and gradients inside."""
