"""What a proof says: verdicts, reports, and how reports are rendered and merged."""
