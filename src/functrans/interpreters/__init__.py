"""One file per meaning of the primitives: evaluate, dual, tape, batch, stage."""
