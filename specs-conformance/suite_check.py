# SPDX-License-Identifier: Apache-2.0
"""A check of the suite."""
import typing


class Failure(Exception):
    """What the adapter did is not what the requirement asks for."""


class Check(typing.NamedTuple):
    name: str
    requirements: tuple
    op: str | None  # what the adapter needs to have for it
    run: typing.Callable


def expect(condition, sentence):
    if not condition:
        raise Failure(sentence)
