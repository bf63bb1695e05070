"""The back end "numpy": graphs as Python source of plain NumPy calls, for people and for `jit`."""
