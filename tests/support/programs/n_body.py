"""Bodies under their gravity, by the leapfrog method."""

import numpy as np

SOFTENING = 0.1


def accelerations(positions, masses):
    """The sum of the attractions, pair by pair."""
    acceleration = np.zeros_like(positions)
    for i in range(len(masses)):
        for j in range(i):
            apart = positions[j] - positions[i]
            attraction = apart / (apart @ apart + SOFTENING**2) ** 1.5
            acceleration[i] += masses[j] * attraction
            acceleration[j] -= masses[i] * attraction
    return acceleration


def program(positions, velocities, masses, steps=5, dt=0.05):
    """The energy, and the positions after a few steps."""
    positions, velocities = positions.copy(), velocities.copy()
    acceleration = accelerations(positions, masses)
    for _ in range(steps):
        velocities += 0.5 * dt * acceleration
        positions += dt * velocities
        acceleration[...] = accelerations(positions, masses)
        velocities += 0.5 * dt * acceleration
    energy = 0.5 * np.sum(masses * np.sum(velocities**2, axis=1))
    for i in range(len(masses)):
        for j in range(i):
            distance = np.sqrt(np.sum((positions[i] - positions[j]) ** 2) + SOFTENING**2)
            energy -= masses[i] * masses[j] / distance
    return np.append(positions, energy)


def example():
    positions = np.array([[0.0, 0.1], [1.0, 0.0], [-0.2, 1.1]])
    velocities = np.array([[0.0, -0.2], [0.1, 0.6], [-0.7, 0.1]])
    return positions, velocities, np.array([1.0, 0.3, 0.2])
