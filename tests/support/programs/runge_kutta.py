"""Predators and prey, by the classical Runge-Kutta method."""

import numpy as np


def growth(state, rates):
    change = np.empty_like(state)
    change[0] = rates[0] * state[0] - rates[1] * state[0] * state[1]
    change[1] = rates[2] * state[0] * state[1] - rates[3] * state[1]
    return change


def program(start, rates, steps=8, dt=0.1):
    """The populations over time, one row for each step."""
    history = np.zeros((steps + 1, 2), like=start)
    history[0] = start
    state = start.copy()
    for n in range(steps):
        k1 = growth(state, rates)
        k2 = growth(state + dt / 2 * k1, rates)
        k3 = growth(state + dt / 2 * k2, rates)
        k4 = growth(state + dt * k3, rates)
        k2 += k3
        k2 *= 2
        state += dt / 6 * (k1 + k2 + k4)
        history[n + 1] = state
    return history


def example():
    return np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.3, 0.8])
