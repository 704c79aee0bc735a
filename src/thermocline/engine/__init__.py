"""The engine: from a path to draws, in rounds and chunks, with progress and checkpoints."""
