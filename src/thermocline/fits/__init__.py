"""Fits: from a target, or from draws of it, to a base."""
