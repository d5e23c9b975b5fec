"""A call that runs on a thread of its own, while the thread that waits for it runs its callbacks and hears Ctrl-C."""
from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Optional, TypeVar

_T = TypeVar("_T")

# After an exception or Ctrl-C: as long as the steps of most runs take. What takes longer ends by itself, unseen.
PATIENCE_SECONDS = 0.5


class _Request:
    """A callback that waits for its answer."""

    def __init__(self, work: Callable[[], int], otherwise: int):
        self.work, self.answer = work, otherwise
        self.answered = threading.Event()


class Caller:
    """Callbacks run where the user called: what is local to that thread is there, and exceptions pass as they are."""

    def __init__(self, cancel: Callable[[], None]):
        self._cancel = cancel
        self._requests: queue.SimpleQueue[Optional[_Request]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting: set[_Request] = set()
        self._closed = False

    def ask(self, work: Callable[[], int], otherwise: int) -> int:
        """On the call's thread: what `work` gives on the other one, or `otherwise` when that listens no more."""
        request = _Request(work, otherwise)
        with self._lock:
            if self._closed:
                return otherwise
            self._waiting.add(request)
            self._requests.put(request)
        request.answered.wait()
        return request.answer

    def run(self, call: Callable[[], _T]) -> _T:
        """What `call` gives or raises. An exception of a callback, or Ctrl-C, cancels it first."""
        outcome: list[Any] = []

        def work() -> None:
            try:
                outcome.append((call(), None))
            except BaseException as error:
                outcome.append((None, error))
            self._requests.put(None)

        worker = threading.Thread(target=work, name="modelflow", daemon=True)
        try:
            worker.start()
            self._serve()
        except BaseException:
            self._cancel()
            self._close()
            worker.join(PATIENCE_SECONDS)
            raise
        value, error = outcome[0]
        if error is not None:
            raise error
        answer: _T = value
        return answer

    def _serve(self) -> None:
        for request in iter(self._requests.get, None):
            request.answer = request.work()
            with self._lock:
                self._waiting.discard(request)
            request.answered.set()

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            for request in self._waiting:
                request.answered.set()
