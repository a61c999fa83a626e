"""The campaign: what hostile programs, calls and processes do to symgrad, against torch."""
