"""The input and output of the asynchronous client. `_blocking_io.py` has the same names without `Async`."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

import httpx

T = TypeVar("T")
P = ParamSpec("P")

AsyncItems = AsyncGenerator[T, None]
AsyncFunction = Callable[P, Awaitable[T]]
AsyncClient = httpx.AsyncClient
AsyncFlag = asyncio.Event


class AsyncIo:
    def __init__(self, client: httpx.AsyncClient | None) -> None:
        self._client = client or httpx.AsyncClient()
        self._is_own = client is None
        self._tasks: set[asyncio.Task[None]] = set()

    def build(self, method: str, url: str, **options: Any) -> httpx.Request:
        return self._client.build_request(method, url, **options)

    async def send(self, request: httpx.Request) -> httpx.Response:
        return await self._client.send(request, stream=True)

    def chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        return response.aiter_bytes()

    async def read_file(self, path: str | os.PathLike[str]) -> AsyncItems[bytes]:
        """The bytes of a file, in pieces."""
        with await asyncio.to_thread(open, path, "rb") as file:
            while piece := await asyncio.to_thread(file.read, 65_536):
                yield piece

    async def text(self, response: httpx.Response) -> str:
        await response.aread()
        return response.text

    async def leave(self, response: httpx.Response) -> None:
        await response.aclose()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        result = function(*args)
        return await result if inspect.isawaitable(result) else result

    def flag(self) -> AsyncFlag:
        return asyncio.Event()

    async def wait(self, flag: AsyncFlag, seconds: float) -> None:
        try:
            await asyncio.wait_for(flag.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    def beside(self, work: Callable[[], Any], on_failure: Callable[[BaseException], None]) -> None:
        async def run() -> None:
            try:
                result = work()
                if inspect.isawaitable(result):
                    await result
            except Exception as failure:  # noqa: BLE001 -- the reader raises it
                on_failure(failure)

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        if self._is_own:
            await self._client.aclose()
