"""Short numerical programs in plain NumPy, as they are written in papers and notebooks.

Each module has a `program`, and an `example` with arguments for it. None of them knows that it will be
differentiated or batched: the tests do that without changing a line.
"""
