"""Modes: how they are searched for, and what a table says of them."""
