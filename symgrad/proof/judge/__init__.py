"""The decision for one gradient: proof by the normal form, conditions, protocol."""
