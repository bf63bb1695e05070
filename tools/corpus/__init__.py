"""How much public NumPy code works under the transforms of functrans with its source unchanged.

`python -m tools.corpus` runs functions of packages from the registry, which were not written with
functrans in mind, through `grad`, `jvp`, `vmap` and `hessian`, and compares the results with finite
differences and loops. The functions and their arguments were found by `--discover` and are stored
in `functions.jsonl`.
"""
