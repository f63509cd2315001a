"""The input and output of the blocking client."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, ParamSpec, TypeVar

import httpx

T = TypeVar("T")
P = ParamSpec("P")

Items = Generator[T, None, None]
Function = Callable[P, T]
Client = httpx.Client
Flag = threading.Event


class Io:
    def __init__(self, client: httpx.Client | None) -> None:
        self._client = client or httpx.Client()
        self._is_own = client is None

    def build(self, method: str, url: str, **options: Any) -> httpx.Request:
        return self._client.build_request(method, url, **options)

    def send(self, request: httpx.Request) -> httpx.Response:
        return self._client.send(request, stream=True)

    def chunks(self, response: httpx.Response) -> Iterator[bytes]:
        return response.iter_bytes()

    def read_file(self, path: str | os.PathLike[str]) -> Items[bytes]:
        """The bytes of a file, in pieces."""
        with open(path, "rb") as file:
            while piece := file.read(65_536):
                yield piece

    def text(self, response: httpx.Response) -> str:
        response.read()
        return response.text

    def leave(self, response: httpx.Response) -> None:
        response.close()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def flag(self) -> Flag:
        return threading.Event()

    def wait(self, flag: Flag, seconds: float) -> None:
        flag.wait(seconds)

    def beside(self, work: Callable[[], Any], on_failure: Callable[[BaseException], None]) -> None:
        def run() -> None:
            try:
                work()
            except BaseException as failure:  # noqa: BLE001 -- the reader raises it
                on_failure(failure)

        threading.Thread(target=run, daemon=True, name="agent-engine-permission").start()

    def close(self) -> None:
        if self._is_own:
            self._client.close()
