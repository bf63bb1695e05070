"""Settings shared by the whole test suite: how hypothesis draws."""

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "functrans",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=3,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("functrans")
