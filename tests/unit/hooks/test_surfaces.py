"""The blocking and the asynchronous hook offer the same."""

from __future__ import annotations

import inspect

from airflow.sdk import BaseHook

from airflow_provider_webdata.hooks.webdata import WebDataHook
from airflow_provider_webdata.hooks.webdata_async import AsyncWebDataHook

# Airflow tests connections through the blocking hook, and only blocking code is interrupted by signals.
ONLY_BLOCKING = {"test_connection", "sibling"}


def surface(hook: type) -> dict[str, str]:
    """Return the public methods that the hook adds to Airflow's, with their parameters."""
    return {
        name: str(inspect.signature(member).replace(return_annotation=inspect.Signature.empty))
        for name, member in inspect.getmembers(hook, inspect.isfunction)
        if not name.startswith("_") and member is not getattr(BaseHook, name, None)
    }


def test_equal_surfaces():
    """Same methods, same parameters."""
    blocking, other = surface(WebDataHook), surface(AsyncWebDataHook)
    assert blocking.keys() - other.keys() == ONLY_BLOCKING
    assert other == {name: parameters for name, parameters in blocking.items() if name not in ONLY_BLOCKING}
    assert len(other) > 12


def test_asynchronous_methods_are_awaited():
    """Each is a coroutine, or an asynchronous generator where the twin is a generator."""
    for name in surface(AsyncWebDataHook):
        blocking, other = getattr(WebDataHook, name), getattr(AsyncWebDataHook, name)
        if inspect.isgeneratorfunction(blocking):
            assert inspect.isasyncgenfunction(other), name
        else:
            assert inspect.iscoroutinefunction(other), name
