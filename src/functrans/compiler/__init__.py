"""What is done with graphs: make them smaller, write them as NumPy source, compile and store them."""
