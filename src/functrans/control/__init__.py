"""Control flow that stages: branches, loops and scans, and the procedures that they hold."""
