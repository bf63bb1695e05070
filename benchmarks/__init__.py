"""Benchmarks of functrans against other libraries and against hand-written NumPy."""
