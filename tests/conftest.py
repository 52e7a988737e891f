"""Shared by all tests."""

from hypothesis import HealthCheck, settings

# Tests run side by side, and the machine may have other work: how long one example takes is nobody's subject.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")
