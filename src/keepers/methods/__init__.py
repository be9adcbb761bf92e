"""The methods, one file each: mathematics on top, the scikit-learn estimator below."""
