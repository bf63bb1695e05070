"""A Kalman filter for a position and a velocity, of which the position is observed."""

import numpy as np


def program(observations, transition, process_noise, observation_noise):
    """The log likelihood of the observations, and the filtered positions."""
    filtered = np.empty_like(observations)
    state = np.zeros_like(transition[0])
    covariance = np.zeros_like(transition)
    np.fill_diagonal(covariance, 1.0)
    log_likelihood = 0.0
    for t, observed in enumerate(observations):
        state[:] = transition @ state
        covariance[:] = transition @ covariance @ transition.T
        covariance += process_noise @ process_noise.T
        surprise = observed - state[0]
        variance = covariance[0, 0] + observation_noise**2
        gain = covariance[:, 0] / variance
        state += gain * surprise
        covariance -= np.outer(gain, covariance[0])
        log_likelihood -= 0.5 * (surprise**2 / variance + np.log(2 * np.pi * variance))
        filtered[t] = state[0]
    return np.append(filtered, log_likelihood)


def example():
    observations = np.array([0.1, 0.5, 0.8, 1.4, 1.5])
    transition = np.array([[1.0, 0.3], [-0.1, 0.95]])
    process_noise = np.array([[0.2, 0.0], [0.1, 0.3]])
    return observations, transition, process_noise, np.float64(0.4)
