"""Shared by all tests: Hypothesis without deadlines, and repeatable on every machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tabweave", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tabweave")
