"""Programs for contributors, each run as `python -m tools.NAME`."""
