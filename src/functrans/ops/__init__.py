"""The primitives, each with all its rules in one place, one file per family."""
