"""What users call: each transform starts an interpreter, runs the function, collects the answer."""
