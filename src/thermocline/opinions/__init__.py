"""Second opinions on a result: another method, annealed runs both ways, path sampling's estimator."""
