"""Pictures of graphs and of sweeps, drawn by ourselves; imported when first used."""
