"""Graphs at work: optimize them, write them as NumPy source, compile and store them."""
