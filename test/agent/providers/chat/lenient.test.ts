import { expect } from 'chai'
import type { ModelPart } from '../../../../shared/agent/providers/port.ts'
import {
  callPiece,
  callRead,
  chunk,
  DONE,
  end,
  events,
  say,
  TOO_LONG_ERRORS,
  wholeCompletion,
} from '../../../support/model-server/chat-servers.ts'
import { type Answer, useModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, failureOf, partsOf, textOf } from '../ai-sdk/setup.ts'

const lastOf = (parts: ModelPart[]) => {
  const last = parts.at(-1)
  if (last?.type === 'failure') return last.failure.reason
  return last?.type === 'finish' ? last.reason : undefined
}

const callsOf = (parts: ModelPart[]) => partsOf(parts, 'tool_call').map(({ toolName, input }) => [toolName, input])

describe("an answer of a server that copies OpenAI's chat format loosely", () => {
  const server = useModelServer({ perTest: true })

  const read = async (answer: Answer) => {
    server.answer(answer)
    return ask(await connect('openai-compatible', server))
  }

  it('may contain chunks without choices, which are skipped', async () => {
    const parts = await read(events({ object: 'ping' }, say('a'), { usage: null }, { choices: null }, end(), DONE))
    expect([textOf(parts), lastOf(parts)]).to.deep.equal(['a', 'end_turn'])
  })

  it('may end with `[DONE]` without a finish reason after text, or after whole tool calls', async () => {
    expect(lastOf(await read(events(say('a'), DONE)))).to.equal('end_turn')
    expect(lastOf(await read(events(callRead('{"path": "a"}'), DONE)))).to.equal('tool_use')
    expect(lastOf(await read(events(chunk({}, { finish_reason: '' }), say('a'), DONE)))).to.equal('end_turn')
  })

  it('D4.4: is truncated when it ends so within a tool call, before any content, or without `[DONE]`', async () => {
    for (const input of ['{"path": ', '']) {
      expect(lastOf(await read(events(say('a'), callRead(input), DONE))), input).to.equal('truncated')
    }
    expect(lastOf(await read(events(chunk({ role: 'assistant' }), DONE)))).to.equal('truncated')
    expect(lastOf(await read(events(say('a'))))).to.equal('truncated')
  })

  it('may end without the blank line behind its last event, and without a line feed', async () => {
    const last = `data: ${JSON.stringify(end())}`
    for (const tail of [last, `${last}\n`, `${last}\r\n`, `${last}\n\ndata: [DONE]`]) {
      const parts = await read(events(say('a'), tail))
      expect([textOf(parts), lastOf(parts)], tail).to.deep.equal(['a', 'end_turn'])
    }
  })

  it('may be a whole completion instead of a stream', async () => {
    const parts = await read(
      wholeCompletion(
        {
          content: 'see',
          reasoning_content: 'hm',
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'Read', arguments: '{"path":"a"}' } }],
        },
        { usage: { prompt_tokens: 7, completion_tokens: 3 } },
      ),
    )
    expect(textOf(parts)).to.equal('see')
    expect(textOf(parts, 'thinking_delta')).to.equal('hm')
    expect(callsOf(parts)).to.deep.equal([['Read', '{"path":"a"}']])
    expect(parts.at(-1)).to.deep.include({ reason: 'tool_use' })
    expect(parts.at(-1)).to.have.nested.property('usage.input', 7)
  })

  it('may have the arguments of a call as an object, and no id', async () => {
    const parts = await read(events(callPiece({ function: { name: 'Read', arguments: { path: 'a' } } }), end(), DONE))
    expect(callsOf(parts)).to.deep.equal([['Read', '{"path":"a"}']])
    expect(partsOf(parts, 'tool_call')[0]?.id).to.match(/^call_\w+$/)
  })

  for (const [what, answer] of Object.entries(TOO_LONG_ERRORS)) {
    it(`D5.6: ${what} tells that the input is too long`, async () => {
      server.answer(answer)
      expect(await failureOf(await connect('openai-compatible', server))).to.include({ code: 'context_too_long' })
    })
  }

  it('that is JSON of another kind fails as unreadable', async () => {
    expect(lastOf(await read({ status: 200, body: { hello: 'world' } }))).to.equal('bad_answer')
    expect(lastOf(await read({ status: 200, body: '{"choices": [' }))).to.equal('bad_answer')
  })
})

describe('a JSON error under status 200', () => {
  const server = useModelServer({ perTest: true })

  for (const dialect of ['openai', 'anthropic', 'google'] as const) {
    it(`D4.8: is classified by its code over ${dialect}`, async () => {
      server.answer({ status: 200, body: { error: { type: 'overloaded_error', message: 'Overloaded' } } })
      expect(await failureOf(await connect(dialect, server))).to.include({
        code: 'provider_unavailable',
        reason: 'http_503',
      })
    })
  }
})
