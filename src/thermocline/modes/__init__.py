"""Modes: how they are searched for, and what the census says of them."""
