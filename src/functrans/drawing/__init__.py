"""Pictures of graphs, and of forward and backward passes; imported on first use."""
