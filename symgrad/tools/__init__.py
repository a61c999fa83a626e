"""What users run: the command line and what it finds, judges, writes and compares."""
