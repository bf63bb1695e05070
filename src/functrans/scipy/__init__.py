"""SciPy on traced values.

The ufuncs of `scipy.special` work as they are: `from scipy.special import erf` and `grad(erf)`.
"""
