import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect } from 'chai'
import { createProvider } from '../../../../services/wiring/models/create-provider.ts'
import type { ModelLimits } from '../../../../shared/agent/providers/limits.ts'
import { oneByOne } from '../../../../shared/kernel/async/batch.ts'
import { type Answer, useModelServer } from '../../../support/model-server/model-server.ts'
import { until } from '../../../support/until.ts'
import { ask, connect, DIALECTS, failureOf, request, textOf } from './setup.ts'

type Row = [limit: string, limits: Partial<ModelLimits>, answer: Answer, expected: { code: string; reason: string }]

const LIMITS: Row[] = [
  [
    'the first byte',
    { firstByteMs: 60 },
    { hangBeforeHeaders: true },
    { code: 'timeout', reason: 'first_byte_timeout' },
  ],
  [
    'headers alone',
    { firstByteMs: 60 },
    [{ raw: '' }, { hang: true }],
    { code: 'timeout', reason: 'first_byte_timeout' },
  ],
  [
    'silence between chunks',
    { idleMs: 60 },
    [{ text: 'so' }, { hang: true }],
    { code: 'timeout', reason: 'idle_timeout' },
  ],
  ['the whole turn', { turnMs: 150 }, [{ tokens: 9_999, everyMs: 10 }], { code: 'timeout', reason: 'turn_timeout' }],
  [
    'the bytes of a turn',
    { maxTurnBytes: 20_000 },
    [{ tokens: 9_999 }, { hang: true }],
    { code: 'provider_unavailable', reason: 'turn_bytes' },
  ],
  [
    'the bytes of an event',
    { maxEventBytes: 5_000 },
    [{ text: 'so' }, { raw: `data: ${'x'.repeat(9_000)}` }, { hang: true }],
    { code: 'provider_unavailable', reason: 'event_bytes' },
  ],
]

for (const dialect of DIALECTS) {
  describe(`the limits of a call over ${dialect}`, () => {
    const server = useModelServer({ perTest: true })

    for (const [limit, limits, answer, expected] of LIMITS) {
      it(`exceeding the limit for ${limit} ends the call with ${expected.code} and closes the connection`, async () => {
        // In the other dialects the model server sends an opening event with the headers.
        if (limit === 'headers alone' && dialect !== 'google') return
        const provider = await connect(dialect, server, limits)
        server.answer(answer)
        expect(await failureOf(provider)).to.include(expected)
        // On a busy machine the limit for the first byte may end the call before the server has read its request.
        await until(() => server.openConnections() === 0, { what: 'the connection to close' })
      })
    }

    for (const [when, answer] of [
      ['before the answer', { hangBeforeHeaders: true }],
      ['in mid-stream', [{ text: 'so' }, { hang: true }]],
    ] as [string, Answer][]) {
      it(`aborting ${when} ends the iteration without a last part and closes the connection`, async () => {
        const provider = await connect(dialect, server)
        const caller = new AbortController()
        server.answer(answer)
        const asked = server.nextRequest()
        const parts = ask(provider, request(), caller.signal)
        const { closedByClient } = await asked
        caller.abort('cancelled')
        expect((await parts).filter(({ type }) => type !== 'text_delta')).to.be.empty
        await closedByClient
      })
    }

    it('the limit for an event is not a limit for many small events', async () => {
      server.answer([{ tokens: 300 }])
      const parts = await ask(await connect(dialect, server, { maxEventBytes: 3_000 }))
      expect(parts.at(-1)).to.include({ type: 'finish' })
    })

    it('leaving the iteration closes the connection', async () => {
      const provider = await connect(dialect, server)
      server.answer([{ text: 'so' }, { hang: true }])
      const asked = server.nextRequest()
      for await (const part of oneByOne(provider.stream(request(), new AbortController().signal))) {
        expect(part).to.deep.equal({ type: 'text_delta', text: 'so' })
        break
      }
      await (await asked).closedByClient
    })
  })
}

/** The parts of an answer whose body arrives in these chunks. */
async function askOf(chunks: Buffer[]) {
  const send = () => Promise.resolve({ status: 200, headers: {}, body: ReadableStream.from(chunks) })
  return ask(await createProvider({ type: 'ollama', baseUrl: 'http://127.0.0.1:11434/v1', send }))
}

describe('the limits of a call', () => {
  const server = useModelServer({ perTest: true })

  it('a signal that is already aborted makes no request', async () => {
    expect(await ask(await connect('anthropic', server), request(), AbortSignal.abort())).to.be.empty
    expect(server.requests).to.be.empty
  })

  it('the idle limit does not count while the reader is slow', async () => {
    const provider = await connect('openai-compatible', server, { idleMs: 250 })
    server.answer({ steps: [{ tokens: 5_000 }] })
    let said = ''
    for await (const part of oneByOne(provider.stream(request(), new AbortController().signal))) {
      if (said === '') await once(AbortSignal.timeout(750), 'abort')
      if (part.type === 'text_delta') said += part.text
      expect(part.type).not.to.equal('failure')
    }
    expect(said).to.match(/^1 2 .* 4999 5000 $/)
  })

  it('bytes that are not UTF-8 fail the call, and a character cut in two does not', async () => {
    const chunk = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"😀"}}]}\n\n`)
    const end = Buffer.from('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
    const middle = chunk.indexOf('😀') + 2
    const whole = await askOf([chunk.subarray(0, middle), chunk.subarray(middle), end])
    expect(textOf(whole)).to.equal('😀')
    const torn = await askOf([chunk.subarray(0, middle), Buffer.from('"}}]}\n\n'), end])
    expect(torn.at(-1)).to.have.nested.property('failure.reason', 'not_utf8')
  })

  it('a response that ends shortly after its last event keeps its connection', async () => {
    const ended = Promise.withResolvers<boolean>()
    const answer = `event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"output_tokens":1}}}\n\nevent: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ok"}}\n\nevent: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}\n\nevent: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n`
    const provider = await createProvider({
      type: 'anthropic',
      apiKey: 'k',
      fetch: (_url, init) => {
        const body = new ReadableStream({
          start(controller) {
            controller.enqueue(Buffer.from(answer))
            setTimeout(() => {
              ended.resolve(init?.signal?.aborted === false)
              controller.close()
            }, 30)
          },
        })
        return Promise.resolve(new Response(body))
      },
    })
    expect((await ask(provider)).at(-1)).to.include({ type: 'finish' })
    expect(await ended.promise).to.equal(true)
  })

  it('a host that accepts the connection and never completes the TLS handshake is a timeout', async () => {
    const mute = createServer((socket) => socket.resume()).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const { port } = mute.address() as { port: number }
    const settings = {
      type: 'openai-compatible',
      baseUrl: `https://127.0.0.1:${port}`,
      limits: { connectMs: 50 },
    } as const
    expect(await failureOf(await createProvider(settings))).to.include({ code: 'timeout', reason: 'connect_timeout' })
    mute.close()
  })

  it('a host that does not speak HTTP is provider_unavailable', async () => {
    const shell = createServer((socket) => socket.resume().end('SSH-2.0-OpenSSH_9.2\r\n')).listen(0, '127.0.0.1')
    await once(shell, 'listening')
    const { port } = shell.address() as { port: number }
    const failure = await failureOf(await createProvider({ type: 'ollama', baseUrl: `http://127.0.0.1:${port}/v1` }))
    expect(failure).to.include({ code: 'provider_unavailable', isRetryable: true })
    shell.close()
  })

  it('the idle limit does not count while this process is paused', async () => {
    const provider = await connect('openai-compatible', server, { idleMs: 100 })
    const held = Promise.withResolvers<void>()
    server.answer([{ text: 'before' }, { hold: held.promise }, { text: ' after' }])
    let said = ''
    for await (const part of oneByOne(provider.stream(request(), new AbortController().signal))) {
      if (said === '') setImmediate(() => block(700, held.resolve))
      if (part.type === 'text_delta') said += part.text
      expect(part.type).not.to.equal('failure')
    }
    expect(said).to.equal('before after')
  })
})

/** Blocks the process, as if it were stopped, and then calls `then`. */
function block(ms: number, then: () => void): void {
  const end = performance.now() + ms
  while (performance.now() < end);
  then()
}
