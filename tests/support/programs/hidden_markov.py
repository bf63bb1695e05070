"""The forward algorithm of a hidden Markov model, with scaling."""

import numpy as np

SYMBOLS = [0, 2, 1, 1, 0, 2]


def softmax(scores):
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights /= np.sum(weights, axis=-1, keepdims=True)
    return weights


def program(initial_scores, transition_scores, emission_scores):
    """The log probability of the sequence, and the beliefs after every symbol."""
    initial, transition = softmax(initial_scores), softmax(transition_scores)
    emission = softmax(emission_scores)
    beliefs = np.zeros((len(SYMBOLS), len(initial)), like=initial)
    scales = np.zeros(len(SYMBOLS), like=initial)
    beliefs[0] = initial * emission[:, SYMBOLS[0]]
    for t, symbol in enumerate(SYMBOLS):
        if t > 0:
            beliefs[t] = (beliefs[t - 1] @ transition) * emission[:, symbol]
        scales[t] = beliefs[t].sum()
        beliefs[t] /= scales[t]
    return np.append(beliefs.ravel(), np.sum(np.log(scales)))


def example():
    transition = np.array([[1.0, 0.2], [-0.3, 0.7]])
    emission = np.array([[0.5, -0.2, 0.1], [-0.4, 0.3, 0.8]])
    return np.array([0.3, -0.1]), transition, emission
