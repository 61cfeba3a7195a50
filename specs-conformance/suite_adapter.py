# SPDX-License-Identifier: Apache-2.0
"""The suite's end of the adapter protocol: one object a line, one answer for each."""
import contextlib
import json
import selectors
import shlex
import subprocess

PATIENCE_S = 60


class AdapterFailed(Exception):
    """The adapter did not answer as docs/ADAPTER.md has it."""


class InProcess:
    """A runtime in Python, without a process. It answers what a process would."""

    def __init__(self, runtime):
        self.runtime = runtime

    def ask(self, request):
        try:
            return json.loads(json.dumps(self.runtime.answer(request)))
        except Exception as error:  # whatever it is, a process would have died of it
            raise AdapterFailed(f"{request.get('op')}: {type(error).__name__}: {error}") from error

    def close(self):
        pass


class Process:
    """A program that is started anew after it died."""

    def __init__(self, command):
        self.command = shlex.split(command)
        self.process = None

    def start(self):
        try:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE)
        except OSError as error:
            raise AdapterFailed(f"the adapter does not start: {error}") from error

    def ask(self, request):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            line = self.read_line()
        except OSError as error:
            raise self.died(f"{error}") from error
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise self.died(f"no JSON: {line[:200]!r}") from error
        if not isinstance(answer, dict):
            raise self.died(f"no object: {line[:200]!r}")
        if "error" in answer:
            raise AdapterFailed(f"{request.get('op')} {request.get('do', '')}: {answer['error']}")
        return answer

    def read_line(self):
        """A line, or what there is of one when nothing more comes."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE_S):
                raise self.died(f"no answer in {PATIENCE_S} s")
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            raise self.died("it ended")
        return line

    def died(self, why):
        self.close()
        return AdapterFailed(f"{shlex.join(self.command)}: {why}")

    def close(self):
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # what it did not read any more
        self.process.stdout.close()
        self.process = None
