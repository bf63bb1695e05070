"""Tools to find out what a function does: where a nan comes from, and where the time goes."""
