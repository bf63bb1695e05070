"""The vocabulary: every primitive with all its rules side by side, one file per family."""
