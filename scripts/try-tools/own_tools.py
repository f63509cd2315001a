"""Agents of LangChain, pydantic-ai and OpenAI's Agents SDK, each with a tool of its own, against the base URL of the first argument.
Prints what each has answered, one JSON object a line: the name, and the answer or the error."""

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

import agents
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

BASE_URL = sys.argv[1]
PROMPT = "Where is order A-7?"


class Order(BaseModel):
    id: str
    state: str


def get_order(id: str) -> str:
    """Looks an order up."""
    return f"{id} was sent on Monday"


def langchain(stream: bool, **options: Any) -> str:
    model = ChatOpenAI(model="main", base_url=BASE_URL, api_key="none", **options)
    agent = create_agent(model, tools=[tool(get_order)])
    asked = {"messages": [{"role": "user", "content": PROMPT}]}
    if not stream:
        return str(agent.invoke(asked)["messages"][-1].text)
    last = [update for update in agent.stream(asked, stream_mode="values")][-1]
    return str(last["messages"][-1].text)


def structured(method: str, **options: Any) -> str:
    model = ChatOpenAI(model="main", base_url=BASE_URL, api_key="none", **options)
    return str(model.with_structured_output(Order, method=method).invoke(PROMPT).model_dump_json())


def pydantic_ai(model: type, output_type: Any) -> str:
    provider = OpenAIProvider(base_url=BASE_URL, api_key="none")
    agent = Agent(model("main", provider=provider), tools=[get_order], output_type=output_type)
    output = agent.run_sync(PROMPT).output
    return str(output.model_dump_json()) if isinstance(output, BaseModel) else str(output)


def agents_sdk(api: str, stream: bool) -> str:
    agents.set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=BASE_URL, api_key="none")
    kinds = {"chat": agents.OpenAIChatCompletionsModel, "responses": agents.OpenAIResponsesModel}
    model = kinds[api](model="main", openai_client=client)
    agent = agents.Agent(name="orders", model=model, tools=[agents.function_tool(get_order)])

    async def run() -> str:
        if not stream:
            return str((await agents.Runner.run(agent, PROMPT)).final_output)
        result = agents.Runner.run_streamed(agent, PROMPT)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    return asyncio.run(run())


TRIALS: dict[str, Callable[[], str]] = {
    "LangChain create_agent, chat completions": lambda: langchain(False),
    "LangChain create_agent, chat completions, stream": lambda: langchain(True, streaming=True),
    "LangChain create_agent, responses": lambda: langchain(False, use_responses_api=True),
    "LangChain with_structured_output json_schema, chat completions": lambda: structured("json_schema"),
    "LangChain with_structured_output function_calling, chat completions": lambda: structured("function_calling"),
    "LangChain with_structured_output json_schema, responses": lambda: structured("json_schema", use_responses_api=True),
    "pydantic-ai, chat completions": lambda: pydantic_ai(OpenAIChatModel, str),
    "pydantic-ai output_type, chat completions": lambda: pydantic_ai(OpenAIChatModel, Order),
    "pydantic-ai, responses": lambda: pydantic_ai(OpenAIResponsesModel, str),
    "Agents SDK, chat completions": lambda: agents_sdk("chat", False),
    "Agents SDK, responses": lambda: agents_sdk("responses", False),
    "Agents SDK, responses, stream": lambda: agents_sdk("responses", True),
}

for name, attempt in TRIALS.items():
    try:
        print(json.dumps({"name": name, "answer": attempt()}), flush=True)
    except Exception as failure:  # noqa: BLE001 -- it is what was seen
        print(json.dumps({"name": name, "error": f"{type(failure).__name__}: {failure}"[:600]}), flush=True)
