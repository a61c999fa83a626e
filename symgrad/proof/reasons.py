"""How reasons begin of what is UNDECIDED, as far as several rooms of the proof know them."""

NOWHERE = "no input was found on which the forward is finite"
"""How the reason begins of what is UNDECIDED for want of a point."""
