"""`make demo`: an agent answers questions about four long outputs, and what its window held."""
