"""The intermediate graph: data, checks and printing."""
