"""Estimators: NumPy functions from draws to numbers with errors."""
