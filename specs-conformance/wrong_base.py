# SPDX-License-Identifier: Apache-2.0
"""What a wrong adapter is, and the list of them."""
import typing


class Wrong(typing.NamedTuple):
    name: str
    shown_by: str  # the beginning of the names of checks that must see it
    change: typing.Callable


ALL = {}


def wrong(shown_by):
    def add(function):
        name = function.__name__.replace("_", "-")
        ALL[name] = Wrong(name, shown_by, function)
        return function
    return add
