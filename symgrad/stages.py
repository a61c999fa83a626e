"""Names that the command line offers before the compiler is imported."""

STAGES = ("graph", "reverse", "index", "schedule", "c")
ALLOWED = ("UNDECIDED", "SURROGATE?", "REFUTED", "NOT VALIDATED")
"""What may be let through, if it is asked for."""
PREFERENCES = ("hand", "derived", "auto")
"""Which backward kernels compute: the hand-written one, the derived one, the cheaper one."""
