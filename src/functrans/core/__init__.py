"""What every other room knows: primitives, levels, tracers, shapes, pytrees and errors."""
