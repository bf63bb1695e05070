"""Solutions of equations, differentiated through the equation and not through the solver."""
