"""What every room may use: errors, optional packages, PyTrees, precision, scale factors, fingerprints, tables."""
