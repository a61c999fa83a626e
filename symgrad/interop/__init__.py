"""Other libraries: each is imported only where a program has imported it itself."""
