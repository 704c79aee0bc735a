"""Results: what a run leaves, saved, loaded, handed to ArviZ, compared."""
