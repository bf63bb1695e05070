"""Settings shared by the whole test suite: how hypothesis draws, and the markers in use."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "functrans",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=4,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("functrans")


def pytest_configure(config):
    config.addinivalue_line("markers", "peers: compares with JAX or HIPS autograd, where installed")
