"""For all tests."""

import os

import pytest
from hypothesis import HealthCheck, settings

# A busy machine draws examples slowly; that is no fault.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what scikit-learn asks of estimators that take array API objects: ours do not."""
    asked = [item for item in items if "check_array_api_input" in item.name]
    if asked:
        config.hook.pytest_deselected(items=asked)
        items[:] = [item for item in items if item not in asked]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs signals that kill, pipes, links or permissions as POSIX has them."""
    if os.name != "posix" and item.get_closest_marker("posix") is not None:
        pytest.skip("this system has no such signals, pipes, links or permissions")
