"""k-means clustering: a fixed number of Lloyd's iterations."""

import numpy as np


def program(points, centers, iterations=4):
    """The sum of the squared distances to the nearest center, and the centers."""
    centers = centers.copy()
    distances = np.empty((len(points), len(centers)), like=points)
    for _ in range(iterations):
        for k, center in enumerate(centers):
            distances[:, k] = np.sum((points - center) ** 2, axis=1)
        nearest = np.argmin(distances, axis=1)
        for k in range(len(centers)):
            if np.any(nearest == k):
                centers[k] = points[nearest == k].mean(axis=0)
    inertia = np.sum((points - centers[nearest]) ** 2)
    return np.append(centers.ravel(), inertia)


def example():
    points = np.array(
        [[0.1, 0.2], [0.3, -0.1], [-0.2, 0.1], [2.1, 1.9], [1.8, 2.2], [4.0, 0.1], [4.2, -0.3]]
    )
    return points, np.array([[0.0, 0.5], [2.5, 1.5], [3.5, 0.0]])
