"""Functions with their own rules: custom derivatives, primitives, callbacks and checkpoints."""
