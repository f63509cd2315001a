// Tests turn.ts and vendors.ts: the answers of each vendor’s wire format, over HTTP.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { getEventListeners } from 'node:events'
import { expect } from 'chai'
import type { Message, ModelProvider } from '../../../../shared/agent/providers/port.ts'
import { startModelServer, useModelServer } from '../../../support/model-server/model-server.ts'
import { until } from '../../../support/until.ts'
import { ask, connect, DIALECTS, type Dialect, partsOf, request, textOf } from './setup.ts'

const USAGE = { input: 100, output: 20, cacheRead: 40, cacheWrite: 10, reasoning: 5 }

const AFTER_TOOLS: Message[] = [
  { role: 'user', text: 'hi' },
  { role: 'assistant', blocks: [{ type: 'tool_use', id: 'call_1', toolName: 'Read', input: {} }] },
  { role: 'tool', results: [{ id: 'call_1', toolName: 'Read', output: 'x', isError: false }] },
]

/** Dialects that do not report written cache tokens. */
const NO_CACHE_WRITE: Dialect[] = ['google', 'ollama natively']

for (const dialect of DIALECTS) {
  describe(`an answer over ${dialect}`, () => {
    let provider: ModelProvider

    const server = useModelServer({ perTest: true })
    beforeEach(async () => {
      provider = await connect(dialect, server)
    })

    it('D4.3: a text block is its deltas and then its end, and the last part is finish', async () => {
      server.answer('one two three')
      const parts = await ask(provider)
      expect(parts.map(({ type }) => type)).to.deep.equal([
        'text_delta',
        'text_delta',
        'text_delta',
        'text_end',
        'finish',
      ])
      expect(textOf(parts)).to.equal('one two three')
      expect(parts.at(-1)).to.include({ reason: 'end_turn' })
    })

    it('D4.3: thinking is a block of its own before the text block', async () => {
      server.answer([{ thinking: 'let me see' }, { text: 'ok' }])
      const parts = await ask(provider)
      expect(textOf(parts, 'thinking_delta')).to.equal('let me see')
      const order = parts.map(({ type }) => type).filter((type) => type !== 'thinking_delta')
      expect(order).to.deep.equal(['thinking_end', 'text_delta', 'text_end', 'finish'])
    })

    it('parallel tool calls are yielded as a whole, in order, with their input as JSON text', async () => {
      server.answer([
        { text: 'so' },
        { tool: 'Read', input: { path: 'a.txt', limit: 3 }, chunks: 4 },
        { tool: 'Glob', id: 'given' },
      ])
      const parts = await ask(provider)
      const calls = partsOf(parts, 'tool_call')
      expect(calls.map(({ toolName, input }) => [toolName, JSON.parse(input)])).to.deep.equal([
        ['Read', { path: 'a.txt', limit: 3 }],
        ['Glob', {}],
      ])
      expect(calls[1]?.id).to.equal('given')
      expect(new Set(calls.map(({ id }) => id))).to.have.property('size', 2)
      expect(parts.at(-1)).to.include({ reason: 'tool_use' })
    })

    it('tool input that is not JSON is yielded as the model wrote it', async () => {
      if (dialect === 'google') return // Google sends objects, and reports malformed input as a failure.
      server.answer([{ tool: 'Read', input: '{"path": ' }])
      expect(partsOf(await ask(provider), 'tool_call')[0]?.input).to.equal('{"path": ')
    })

    it("usage counts the cache's tokens apart, and `input` includes them", async () => {
      server.answer({ steps: [{ thinking: 'hm' }, { text: 'ok' }], usage: USAGE })
      const [finish] = partsOf(await ask(provider), 'finish')
      const cacheWrite = NO_CACHE_WRITE.includes(dialect) ? 0 : 10
      expect(finish?.usage).to.deep.equal({
        input: 100,
        cacheRead: dialect === 'ollama natively' ? 0 : 40,
        cacheWrite,
        output: 20,
      })
    })

    it('an answer that reached its maximum length ends with `max_tokens`', async () => {
      server.answer({ steps: [{ text: 'so on and' }], finish: 'length' })
      expect((await ask(provider)).at(-1)).to.include({ type: 'finish', reason: 'max_tokens' })
    })

    it('an empty answer is a failure that may be tried again, and behind the results of tools a regular end', async () => {
      server.answer([], [{ thinking: 'hm' }], [])
      for (let asked = 0; asked < 2; asked++) {
        const failure = partsOf(await ask(provider), 'failure')[0]?.failure
        expect(failure).to.include({ code: 'provider_unavailable', reason: 'empty_answer', isRetryable: true })
        expect(failure?.message).to.match(/without text and without a tool call/)
      }
      const [only, ...others] = await ask(provider, request({ messages: AFTER_TOOLS }))
      expect(only).to.include({ type: 'finish', reason: 'end_turn' })
      expect(others).to.be.empty
    })

    it('a turn leaves no listener on the signal of its caller, after an answer and after a failure', async () => {
      const { signal } = new AbortController()
      server.answer('one two', { status: 401 })
      await ask(provider, request(), signal)
      await ask(provider, request(), signal)
      await until(() => getEventListeners(signal, 'abort').length === 0, { what: 'the listeners to be removed' })
    })

    it('consecutive turns share connections', async () => {
      let connected = 0
      const count = () => (connected += 1)
      subscribe('net.client.socket', count)
      for (let turn = 0; turn < 6; turn++) await ask(provider)
      unsubscribe('net.client.socket', count)
      expect(connected).to.be.within(1, 5)
    })
  })
}

describe('an answer over anthropic', () => {
  it('D4.11: an answer that the provider ended at a stop sequence ends with `stop_sequence`', async () => {
    const server = await startModelServer()
    server.answer({ steps: [{ text: 'so far' }], stopSequence: 'END' })
    expect((await ask(await connect('anthropic', server))).at(-1)).to.include({ reason: 'stop_sequence' })
    await server.close()
  })

  it('an event that the package does not know is skipped', async () => {
    const server = await startModelServer()
    server.answer([{ text: 'a' }, { raw: 'event: tide\ndata: {"type":"tide","height":3}\n\n' }, { text: 'b' }])
    const parts = await ask(await connect('anthropic', server))
    expect(textOf(parts)).to.equal('ab')
    expect(parts.at(-1)).to.include({ type: 'finish' })
    await server.close()
  })
})
