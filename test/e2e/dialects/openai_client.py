"""The package openai of PyPI, unmodified, against the base URL of the first argument; the second one is the same over a connection that breaks.
Prints what it has seen as JSON, by name."""

import json
import sys

import openai
import pydantic

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
LIST = '/tool TodoWrite {"todos": []}'
WRITE = '/tool Write {"path": "a.txt", "content": "hello"}'
seen = {"models": [model.id for model in client.models.list()]}


def types(response):
    return [item.type for item in response.output]


def refusal(work):
    try:
        work()
    except openai.APIError as error:
        return [type(error).__name__, error.type, error.param, error.code]


def chat(content, **more):
    return client.chat.completions.create(model="main", messages=[{"role": "user", "content": content}], **more)


def answer(asked, approve):
    request = next(item for item in asked.output if item.type == "mcp_approval_request")
    reply = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
    return client.responses.create(model="main", previous_response_id=asked.id, input=[reply])


breaking = openai.OpenAI(base_url=sys.argv[2], api_key="none")
asked_once = [{"role": "user", "content": "/sleep 2000\n/say once only"}]
with_head = breaking.chat.completions.with_raw_response.create(model="main", messages=asked_once)
seen["retried"] = [with_head.headers["idempotency-replayed"], with_head.parse().choices[0].message.content.endswith("once only")]

whole = chat(f"{LIST}\n/say done")
chunks = list(chat(f"{LIST}\n/say done", stream=True, stream_options={"include_usage": True}))
streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
seen["chat"] = [whole.choices[0].message.content == streamed, whole.choices[0].finish_reason, "done" in streamed]


class Weather(pydantic.BaseModel):
    city: str
    degrees: float


OSLO = f'{LIST}\n/say {{"city": "Oslo", "degrees": 3}}'
oslo = {"messages": [{"role": "user", "content": OSLO}], "response_format": Weather}
parsed = client.chat.completions.parse(model="main", **oslo).choices[0].message.parsed
answered = client.responses.parse(model="main", input=OSLO, text_format=Weather).output_parsed
seen["parsed"] = [type(each).__name__ + each.city for each in (parsed, answered)]

seen["chat usage"] = whole.usage.total_tokens == chunks[-1].usage.total_tokens > 0

first = client.responses.create(model="main", input=f"/think hm\n{LIST}\n/say done")
call = next(item for item in first.output if item.type == "mcp_call")
second = client.responses.create(model="main", input="/say again", previous_response_id=first.id)
seen["response"] = [first.status, types(first), call.name, call.server_label, second.output_text]

for approve in (True, False):
    asked = client.responses.create(model="main", input=f"{WRITE}\n/say bye")
    rest = answer(asked, approve)
    seen[f"approve {approve}"] = [types(asked), rest.output[0].status, "bye" in rest.output_text]

with client.responses.stream(model="main", input="/say before\n/sleep 300\n/say after") as stream:
    events = []
    for event in stream:
        events.append(event)
        if event.type == "response.output_text.done" and event.text == "before":
            break
last, identity = events[-1].sequence_number, events[0].response.id
rest = list(client.responses.retrieve(identity, stream=True, starting_after=last))
seen["cut"] = [rest[0].sequence_number == last + 1, rest[-1].type, rest[-1].response.output_text.endswith("after")]
with client.responses.stream(model="main", input=f"/think hm\n{LIST}\n/say done") as stream:
    seen["stream"] = types(stream.get_final_response())

begun = client.responses.create(model="main", input="/sleep 60000", background=True)
seen["cancel"] = [begun.status, client.responses.cancel(begun.id).status]

ORDER = {"name": "get_order", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}}
asked_for = '/tool get_order {"id": "A"}\n/say bye'
messages = [{"role": "user", "content": asked_for}]
called = client.chat.completions.create(model="main", messages=messages, tools=[{"type": "function", "function": ORDER}])
message = called.choices[0].message
messages += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sent"}]
ended = client.chat.completions.create(model="main", messages=messages, tools=[{"type": "function", "function": ORDER}])
seen["own tools"] = [called.choices[0].finish_reason, message.tool_calls[0].function.arguments, ended.choices[0].finish_reason, "sent" in ended.choices[0].message.content]
called = client.responses.create(model="main", input=asked_for, tools=[{"type": "function", **ORDER}])
output = {"type": "function_call_output", "call_id": called.output[-1].call_id, "output": "sent"}
ended = client.responses.create(model="main", input=[output], previous_response_id=called.id)
seen["own functions"] = [types(called), "sent" in ended.output_text]

seen["failed"] = client.responses.create(model="main", input="/fail provider_rejected").error.code
seen["refused"] = refusal(lambda: chat("hi", tools=[{"type": "function", "function": {"name": "Read"}}]))
seen["upstream"] = refusal(lambda: chat("/fail provider_rejected"))
seen["broken"] = refusal(lambda: list(chat("/say a\n/fail provider_rejected", stream=True)))
seen["unknown"] = refusal(lambda: client.responses.retrieve("resp_x"))
print(json.dumps(seen))
