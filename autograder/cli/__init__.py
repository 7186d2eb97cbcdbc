"""The command ``autograder``: a thin face on what the package does."""
