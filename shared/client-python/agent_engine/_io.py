"""The two ways to wait. All else is written once, as coroutines: under `BlockingIo` they never suspend, so that `drive` runs them to their end."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Protocol, TypeVar, cast

import httpx

T = TypeVar("T")


class Flag(Protocol):
    """Something that happens once, and that can be waited for."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...


class Io(Protocol):
    """What differs between the twins."""

    async def send(self, request: httpx.Request) -> httpx.Response:
        """A response whose body is read with `chunks` or `text`."""

    def build(self, method: str, url: str, **options: Any) -> httpx.Request: ...
    def chunks(self, response: httpx.Response) -> AsyncIterator[bytes]: ...
    async def text(self, response: httpx.Response) -> str: ...
    async def leave(self, response: httpx.Response) -> None: ...
    async def sleep(self, seconds: float) -> None: ...
    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """The result of a function of the user, which may be a coroutine where that can be awaited."""

    def flag(self) -> Flag: ...
    async def wait(self, flag: Flag, seconds: float) -> None: ...
    def beside(self, work: Callable[[], Any], on_failure: Callable[[BaseException], None]) -> None:
        """Runs it beside the reading."""

    async def close(self) -> None: ...


class BlockingIo:
    def __init__(self, client: httpx.Client | None) -> None:
        self._client = client or httpx.Client()
        self._is_own = client is None

    def build(self, method: str, url: str, **options: Any) -> httpx.Request:
        return self._client.build_request(method, url, **options)

    async def send(self, request: httpx.Request) -> httpx.Response:
        return self._client.send(request, stream=True)

    async def chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        for chunk in response.iter_bytes():
            yield chunk

    async def text(self, response: httpx.Response) -> str:
        response.read()
        return response.text

    async def leave(self, response: httpx.Response) -> None:
        response.close()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def flag(self) -> Flag:
        return threading.Event()

    async def wait(self, flag: Flag, seconds: float) -> None:
        cast(threading.Event, flag).wait(seconds)

    def beside(self, work: Callable[[], Any], on_failure: Callable[[BaseException], None]) -> None:
        def run() -> None:
            try:
                work()
            except BaseException as failure:  # noqa: BLE001 -- the reader raises it
                on_failure(failure)

        threading.Thread(target=run, daemon=True, name="agent-engine-permission").start()

    async def close(self) -> None:
        if self._is_own:
            self._client.close()


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

    def flag(self) -> Flag:
        return asyncio.Event()

    async def wait(self, flag: Flag, seconds: float) -> None:
        try:
            await asyncio.wait_for(cast(asyncio.Event, flag).wait(), seconds)
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


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise RuntimeError("a coroutine of the blocking client has suspended")


def drive_all(items: AsyncGenerator[T, None]) -> Iterator[T]:
    """The items of a generator that never suspends."""
    try:
        while True:
            try:
                item = drive(items.__anext__())
            except StopAsyncIteration:
                return
            yield item
    finally:
        drive(items.aclose())
