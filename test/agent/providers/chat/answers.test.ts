import { oneByOne } from '../../../../shared/kernel/async/batch.ts'
// Tests answer.ts, exchange.ts and turn.ts: a streamed answer as a provider gives it, over HTTP.

import { expect } from 'chai'
import { createProvider } from '../../../../services/wiring/models/create-provider.ts'
import { ChatAnswer } from '../../../../shared/agent/providers/chat/answer.ts'
import type { Message, ModelPart, Send } from '../../../../shared/agent/providers/port.ts'
import { ask, never, partsOf, request, textOf } from '../ai-sdk/setup.ts'

const FINISH = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }

const chunk = (delta: object, fields: object = {}) => ({ id: 'c', choices: [{ index: 0, delta, ...fields }] })
const say = (content: string) => chunk({ content })
const call = (piece: object) => chunk({ tool_calls: [piece] })

/** Enough texts for the template of a chunk to be learnt. */
const MANY = Array.from({ length: 12 }, (_, i) => `${i} `)

const streamOf = (...chunks: object[]) =>
  `${chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('')}data: [DONE]\n\n`

const answering = (bytes: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Send => {
  const body = (async function* () {
    yield* bytes
  })()
  return () => Promise.resolve({ status: 200, headers: {}, body })
}

const provider = (send: Send) => createProvider({ type: 'openai-compatible', baseUrl: 'http://model.test/v1', send })

/** The parts of an answer whose stream arrives in pieces of `size` bytes. */
async function read(text: string, size = 64 * 1024): Promise<ModelPart[]> {
  const bytes = Buffer.from(text)
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  )
  return ask(await provider(answering(pieces)))
}

const reasonOf = async (text: string) => partsOf(await read(text), 'failure')[0]?.failure.reason

describe('a streamed chat completion', () => {
  it('is read alike in pieces of every size', async () => {
    const text = `: hello\r\n\r\n${streamOf(say('a "quoted" \\ 😀'), say('é'), say('\n'), FINISH).replaceAll('\n\n', '\r\n\r\n')}`
    const whole = await read(text)
    expect(textOf(whole)).to.equal('a "quoted" \\ 😀é\n')
    for (const size of [1, 2, 3, 7, 50]) expect(await read(text, size), `${size} bytes each`).to.deep.equal(whole)
  })

  it('may have events with several data fields, and with other fields', async () => {
    const parts = await read(
      `event: x\nid: 1\ndata: {"choices":[{"delta":\ndata:{"content":"so"}}]}\n\n${streamOf(FINISH)}`,
    )
    expect(textOf(parts)).to.equal('so')
  })

  it('keeps every text, in chunks that differ in their text only and in others', async () => {
    const texts = [...MANY, '","role":"tool', '\\"', '{"content": "x"}', '\u2028 😀', '']
    const odd = chunk({ content: 'odd', reasoning_content: 'why' })
    const parts = await read(streamOf(...texts.map(say), odd, say('end'), chunk({ content: 'last' }, { x: 1 }), FINISH))
    expect(textOf(parts)).to.equal(`${texts.join('')}oddendlast`)
    expect(textOf(parts, 'thinking_delta')).to.equal('why')
  })

  it('fails at a content that is no string, even in a chunk that is otherwise equal to the others', async () => {
    const bad = JSON.stringify(say('@')).replace('"@"', '12')
    const text = `${streamOf(...MANY.map(say)).replace('data: [DONE]\n\n', '')}data: ${bad}\n\n`
    expect(await reasonOf(text)).to.equal('bad_chunk')
  })

  it('may have content in parts of thinking and text, as Mistral sends it', async () => {
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }
    const parts = await read(streamOf(chunk({ content: [thinking, { type: 'text', text: 'ok' }] }), FINISH))
    expect(parts.map(({ type }) => type)).to.deep.equal([
      'thinking_delta',
      'thinking_end',
      'text_delta',
      'text_end',
      'finish',
    ])
  })

  it('may have thinking in `reasoning`, which is not sent back', async () => {
    const [end] = partsOf(await read(streamOf(chunk({ reasoning: 'hm' }), say('ok'), FINISH)), 'thinking_end')
    expect(end).to.deep.equal({ type: 'thinking_end' })
  })

  it('D4.8: ends with content_filtered after the text of a refusal', async () => {
    const parts = await read(streamOf(chunk({ refusal: 'I will not.' }), FINISH))
    expect(textOf(parts)).to.equal('I will not.')
    expect(parts.at(-1)).to.have.nested.property('failure.code', 'content_filtered')
  })

  const BROKEN: [what: string, text: string, reason: string][] = [
    ['choices that are no list', streamOf({ choices: {} }), 'bad_chunk'],
    ['a content that is no text', streamOf(chunk({ content: 5 })), 'bad_chunk'],
    ['calls that are no list', streamOf(chunk({ tool_calls: {} })), 'bad_chunk'],
    ['a finish reason that is no text', streamOf(chunk({}, { finish_reason: 7 })), 'bad_chunk'],
    ['an error beside choices', streamOf({ ...say('x'), error: { code: 503, message: 'Busy.' } }), 'http_503'],
    ['an unknown reason behind nothing', streamOf(chunk({}, { finish_reason: 'Abort' })), 'abort'],
    ['a call without a name', streamOf(call({ index: 0, function: { arguments: '{}' } }), FINISH), 'bad_answer'],
  ]
  for (const [what, text, reason] of BROKEN) {
    it(`D4.8: fails with ${reason} for ${what}`, async () => expect(await reasonOf(text)).to.equal(reason))
  }

  it('ends with the answer where the connection breaks behind the finish reason, and fails before it', async () => {
    for (const [chunks, type] of [
      [[say('ok'), FINISH], 'finish'],
      [[say('ok')], 'failure'],
    ] as const) {
      const broken = (async function* () {
        yield Buffer.from(streamOf(...chunks).replace('data: [DONE]\n\n', ''))
        throw new Error('broken')
      })()
      expect((await ask(await provider(answering(broken)))).at(-1)).to.include({ type })
    }
  })

  it('is whole without a finish reason where it is no stream, and an empty refusal is none', async () => {
    const message = { content: 'ok', refusal: '' }
    expect((await read(JSON.stringify({ choices: [{ message }] }))).at(-1)).to.include({ reason: 'end_turn' })
    expect((await read(streamOf(chunk(message), FINISH))).at(-1)).to.include({ reason: 'end_turn' })
  })

  /** The types of the parts that one read gives. */
  const typesOf = (framing: 'events' | 'lines', text: string) => {
    const quirks = { origin: 'models.test', sendsReasoning: false, namesStops: false }
    const failed = { type: 'ollama', model: 'm', apiKey: '', instance: undefined } as const
    const answer = new ChatAnswer({ call: failed, quirks, framing, stopSequences: [], mayBeEmpty: false })
    return answer.read(Buffer.from(text)).map(({ type }) => type)
  }

  it("ends at once with the last line of Ollama's own format, and what follows that is not read", () => {
    const lines = '{"message":{"content":"ok"}}\n{"done":true}\n{"error":"late"}\n'
    expect(typesOf('lines', lines)).to.deep.equal(['text_delta', 'text_end', 'finish'])
  })

  it('ends a thought as soon as a call begins, but no text, whose call may be in the midst of it', () => {
    const framed = (...deltas: object[]) =>
      streamOf(...deltas.map((delta) => chunk(delta))).replace('data: [DONE]\n\n', '')
    const calls = { tool_calls: [{ index: 0, function: { name: 'Read', arguments: '{' } }] }
    expect(typesOf('events', framed({ reasoning: 'hm' }, calls))).to.deep.equal(['thinking_delta', 'thinking_end'])
    expect(typesOf('events', framed({ reasoning: 'hm' }, { tool_calls: [] }))).to.deep.equal(['thinking_delta'])
    expect(typesOf('events', framed({ content: 'ok' }, calls))).to.deep.equal(['text_delta'])
  })

  it('ends regularly with an `error` of null, and without `[DONE]`', async () => {
    const parts = await read(
      `data: ${JSON.stringify({ ...chunk({ content: 'ok' }, { finish_reason: 'stop' }), error: null })}\n\n`,
    )
    expect(parts.at(-1)).to.include({ type: 'finish' })
  })
})

describe('tool calls of a streamed chat completion', () => {
  const callsOf = async (...pieces: object[]) =>
    partsOf(await read(streamOf(...pieces.map(call), FINISH)), 'tool_call').map(({ id, toolName, input }) => [
      id,
      toolName,
      input,
    ])

  it('are assembled by index, in the order of the index, also when the name comes late', async () => {
    const calls = await callsOf(
      { index: 1, id: 'b', function: { name: 'Glob', arguments: '{' } },
      { index: 0, id: 'a', function: { arguments: '{"x"' } },
      { index: 1, function: { arguments: '}' } },
      { index: 0, function: { name: 'Read', arguments: ':1}' } },
    )
    expect(calls).to.deep.equal([
      ['a', 'Read', '{"x":1}'],
      ['b', 'Glob', '{}'],
    ])
  })

  it('may repeat their id and name with each piece', async () => {
    const head = { index: 0, id: 'a' }
    const pieces = ['{"x"', ':', '1}'].map((json) => ({ ...head, function: { name: 'Read', arguments: json } }))
    expect(await callsOf(...pieces)).to.deep.equal([['a', 'Read', '{"x":1}']])
  })

  it('are distinguished when all have the same index, or none', async () => {
    for (const index of [0, undefined]) {
      const pieces = ['a', 'b'].map((id) => ({ index, id, function: { name: 'Read', arguments: `{"x":"${id}"}` } }))
      expect(await callsOf(...pieces)).to.deep.equal([
        ['a', 'Read', '{"x":"a"}'],
        ['b', 'Read', '{"x":"b"}'],
      ])
    }
  })

  it('get an id of their own when theirs is missing or used already', async () => {
    const named = (path: string) => ({ name: 'Read', arguments: JSON.stringify({ path }) })
    const calls = await callsOf(
      { index: 0, id: 'a', function: named('x') },
      { index: 1, id: 'a', function: named('y') },
    )
    const [first, second] = calls.map(([id]) => id)
    expect(first).to.equal('a')
    expect(second).to.match(/^call_\w{32}$/)
  })

  it("are sent back with Google's signature", async () => {
    const extra_content = { google: { thought_signature: 'EpEg' } }
    const [made] = partsOf(
      await read(
        streamOf(call({ index: 0, id: 'a', function: { name: 'Read', arguments: '{}' }, extra_content }), FINISH),
      ),
      'tool_call',
    )
    const block = {
      type: 'tool_use',
      id: 'a',
      toolName: 'Read',
      input: {},
      ...(made?.meta && { meta: made.meta }),
    } as const
    const messages: Message[] = [{ role: 'assistant', blocks: [block] }]
    let sent = ''
    const send: Send = (_url, { body }) => {
      sent = String(Buffer.from(body))
      return answering([Buffer.from(streamOf(FINISH))])('', { method: 'POST', headers: {}, body, signal: never() })
    }
    await ask(await provider(send), request({ messages }))
    expect(sent).to.include('"thought_signature":"EpEg"')
  })
})

describe('the connection of a chat completion', () => {
  it('gives the parts of one read together, and is read again only when they have been taken', async () => {
    let pulls = 0
    const endless = {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          pulls++
          return { done: false as const, value: Buffer.from(streamOf(say('a'), say('b')).slice(0, -14)) }
        },
      }),
    }
    const send: Send = () => Promise.resolve({ status: 200, headers: {}, body: endless })
    const parts = (await provider(send)).stream(request(), never())[Symbol.asyncIterator]()
    for (const expected of [1, 2, 3]) {
      const { value } = await parts.next()
      expect([value, pulls]).to.deep.equal([['a', 'b'].map((piece) => ({ type: 'text_delta', text: piece })), expected])
    }
    await parts.return?.()
  })

  it('is kept when the response ends shortly after `[DONE]`, and closed when it does not', async () => {
    for (const isEnding of [true, false]) {
      const closed = Promise.withResolvers<boolean>()
      const send: Send = (_url, { signal }) => {
        const body = (async function* () {
          yield Buffer.from(streamOf(say('ok'), FINISH))
          const { promise, resolve } = Promise.withResolvers<void>()
          signal.addEventListener('abort', () => resolve())
          if (isEnding) setTimeout(resolve, 20)
          await promise
          closed.resolve(signal.aborted)
        })()
        return Promise.resolve({ status: 200, headers: {}, body })
      }
      expect((await ask(await provider(send))).at(-1)).to.include({ type: 'finish' })
      expect(await closed.promise).to.equal(!isEnding)
    }
  })

  it('is kept when the caller aborts its signal as soon as it has the whole answer', async () => {
    const caller = new AbortController()
    const closed = Promise.withResolvers<boolean>()
    const send: Send = (_url, { signal }) => {
      const body = (async function* () {
        yield Buffer.from(streamOf(say('ok'), FINISH))
        const { promise, resolve } = Promise.withResolvers<void>()
        caller.signal.addEventListener('abort', () => resolve())
        await promise
        closed.resolve(signal.aborted)
      })()
      return Promise.resolve({ status: 200, headers: {}, body })
    }
    const parts = (await provider(send)).stream(request(), caller.signal)
    for await (const part of oneByOne(parts)) if (part.type === 'finish') break
    caller.abort('cancelled')
    expect(await closed.promise).to.equal(false)
  })

  it('keeps the query of the base URL', async () => {
    let asked = ''
    const send: Send = (url) => {
      asked = url
      return Promise.reject(new Error('enough'))
    }
    await ask(await createProvider({ type: 'openai', baseUrl: 'https://gw.test/deploy/?api-version=1', send }))
    expect(asked).to.equal('https://gw.test/deploy/chat/completions?api-version=1')
  })
})
