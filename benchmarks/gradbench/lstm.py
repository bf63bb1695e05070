"""LSTM: the cell and the loss of ADBench, whose weight matrices are all diagonal.

Every layer has weights and biases of four gates (forget, in, out, change), of b numbers each. The forget and
the out gate see the layer's input, the in gate and the change its last hidden state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.problem import Problem, Size

BITS = 14  # of a character


def objective(lib: Any, params: Any, state: Any, pairs: Any) -> Any:
    """Minus the mean of target times log-softmax of the prediction; `pairs` are (input, target)."""
    xp = lib.xp
    main, extra = params
    gates = [
        [(layer[0, gate], layer[1, gate]) for gate in range(4)]
        for layer in (main[i] for i in range(main.shape[0]))
    ]
    scale, out_weight, out_bias = extra[0], extra[1], extra[2]

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + xp.exp(-x))

    def step(carry: Any, pair: Any) -> Any:
        total, layers = carry
        signal = pair[0] * scale
        after = []
        for (forget, enter, leave, change), (hidden, cell) in zip(gates, layers, strict=True):
            cell = cell * sigmoid(signal * forget[0] + forget[1]) + (
                sigmoid(hidden * enter[0] + enter[1]) * xp.tanh(hidden * change[0] + change[1])
            )
            hidden = sigmoid(signal * leave[0] + leave[1]) * xp.tanh(cell)
            after.append((hidden, cell))
            signal = hidden
        prediction = signal * out_weight + out_bias
        normal = xp.log(xp.sum(xp.exp(prediction)) + 2.0)
        return total + xp.sum(pair[1] * (prediction - normal)), tuple(after)

    layers = tuple((state[i, 0], state[i, 1]) for i in range(state.shape[0]))
    total, _ = lib.loop(step, (xp.zeros_like(scale[0]), layers), pairs)
    return -total / (pairs.shape[0] * pairs.shape[2])


def by_hand(params: Any, state: Any, pairs: Any) -> Any:
    """Backpropagation through time."""
    main, extra = params
    depth = len(main)
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    hidden, cell = state[:, 0].copy(), state[:, 1].copy()
    kept = []
    for given, target in pairs:
        signal = given * extra[0]
        for i in range(depth):
            weight, bias = main[i]
            old_hidden, old_cell = hidden[i].copy(), cell[i].copy()
            forget = sigmoid(signal * weight[0] + bias[0])
            enter = sigmoid(old_hidden * weight[1] + bias[1])
            leave = sigmoid(signal * weight[2] + bias[2])
            change = np.tanh(old_hidden * weight[3] + bias[3])
            cell[i] = old_cell * forget + enter * change
            bent = np.tanh(cell[i])
            kept.append((signal, old_hidden, old_cell, forget, enter, leave, change, bent))
            signal = hidden[i] = leave * bent
        prediction = signal * extra[1] + extra[2]
        powers = np.exp(prediction)
        kept.append((signal, target - target.sum() * powers / (powers.sum() + 2.0)))

    by_main, by_extra = np.zeros_like(main), np.zeros_like(extra)
    by_hidden, by_cell = np.zeros_like(hidden), np.zeros_like(cell)
    for given, _ in reversed(pairs):
        signal, by_prediction = kept.pop()
        by_extra[1] += by_prediction * signal
        by_extra[2] += by_prediction
        by_signal = by_prediction * extra[1]
        for i in reversed(range(depth)):
            weight = main[i, 0]
            signal, old_hidden, old_cell, forget, enter, leave, change, bent = kept.pop()
            by_out = by_hidden[i] + by_signal
            by_state = by_cell[i] + by_out * leave * (1 - bent * bent)
            by_gates = np.stack(
                [
                    by_state * old_cell * forget * (1 - forget),
                    by_state * change * enter * (1 - enter),
                    by_out * bent * leave * (1 - leave),
                    by_state * enter * (1 - change * change),
                ]
            )
            by_main[i, 0] += by_gates * np.stack([signal, old_hidden, signal, old_hidden])
            by_main[i, 1] += by_gates
            by_hidden[i] = by_gates[1] * weight[1] + by_gates[3] * weight[3]
            by_cell[i] = by_state * forget
            by_signal = by_gates[0] * weight[0] + by_gates[2] * weight[2]
        by_extra[0] += by_signal * given
    factor = -1.0 / (len(pairs) * pairs.shape[2])
    return [factor * by_main, factor * by_extra]


def data(l: int, c: int, b: int = BITS) -> tuple[Any, ...]:
    random = np.random.default_rng(0)
    params = (random.uniform(-0.5, 0.5, (l, 2, 4, b)), random.uniform(-0.5, 0.5, (3, b)))
    sequence = random.integers(0, 2, (c, b)).astype(float)
    pairs = np.stack([sequence[:-1], sequence[1:]], axis=1)
    return params, random.uniform(-0.5, 0.5, (l, 2, b)), pairs


PROBLEM = Problem(
    name="lstm",
    title="LSTM",
    kind="gradient",
    derivative="gradient",
    objective=objective,
    data=data,
    by_hand=by_hand,
    sizes=(
        *(Size(f"l = 2, c = {c:,}", {"l": 2, "c": c}, work=2 * c, n=c) for c in (64, 256, 1_024)),
        Size("l = 4, c = 1,024", {"l": 4, "c": 1_024}, work=4 * 1_024),
    ),
    tiny={"l": 2, "c": 5, "b": 3},
    growth="characters",
)
