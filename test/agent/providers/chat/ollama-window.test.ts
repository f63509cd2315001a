// Tests ollama-facts.ts: what a server tells of its models, over HTTP.

import { Readable } from 'node:stream'
import { mock } from 'node:test'
import { expect } from 'chai'
import { createOllamaFacts } from '../../../../shared/agent/providers/chat/ollama-facts.ts'
import type { Send } from '../../../../shared/agent/providers/port.ts'
import { probeModel } from '../../../../shared/agent/providers/probe.ts'
import { useModelServer } from '../../../support/model-server/model-server.ts'
import { play, talk } from '../../engine/context/setup.ts'
import { ask, connect, never } from '../ai-sdk/setup.ts'

describe("Ollama's context window", () => {
  const server = useModelServer({ perTest: true })

  const asked = async (model = 'test-model') => (await connect('ollama', server)).askWindow?.(model, never())

  it('D5.8: is the one with which the server has loaded the model', async () => {
    server.ollama = { loaded: { 'test-model:latest': 8_192 }, numCtx: { 'test-model': 32_768 } }
    expect(await asked()).to.equal(8_192)
    expect(await asked('test-model:latest')).to.equal(8_192)
  })

  it("D5.8: is the model's own setting while it is not loaded, and else unknown", async () => {
    server.ollama = { loaded: {}, numCtx: { 'test-model': 32_768 } }
    expect(await asked()).to.equal(32_768)
    expect(await asked('other')).to.equal(undefined)
  })

  it('D5.8: is the server’s own default for a model without a setting, which is loaded for it', async () => {
    server.ollama = { loaded: {}, numCtx: { 'test-model': null }, defaultWindow: 4_096 }
    expect(await asked()).to.equal(4_096)
  })

  it('D5.8: is asked for before the first turn, and the parts of every request that fill half of it are a warning', async () => {
    server.ollama = { loaded: { m: 4_096 }, numCtx: {} }
    const provider = await connect('ollama', server)
    const { warnings } = await play(provider, { systemPrompt: 'x'.repeat(8_400), messages: talk(1) })
    expect(warnings.map(({ code }) => code)).to.deep.equal(['context_window'])
    expect(warnings[0]?.detail).to.include({ model: 'm', window_tokens: 4_096 })
    const short = await play(provider, { systemPrompt: 'x'.repeat(2_000), messages: talk(1) })
    expect(short.warnings).to.deep.equal([])
  })

  it('is unknown at a server that does not have the question, and no other server is asked', async () => {
    expect(await asked()).to.equal(undefined)
    expect((await connect('openai-compatible', server)).askWindow).to.equal(undefined)
  })

  it('is asked once for many runs', async () => {
    server.ollama = { loaded: { 'test-model': 8_192 }, numCtx: {} }
    const provider = await connect('ollama', server)
    await provider.askWindow?.('test-model', never())
    server.ollama = { loaded: { 'test-model': 1 }, numCtx: {} }
    expect(await provider.askWindow?.('test-model', never())).to.equal(8_192)
  })

  it('D5.8: bounds the history of a run', async () => {
    server.ollama = { loaded: { m: 4_096 }, numCtx: {} }
    server.answer('a summary', 'ok')
    const { warnings } = await play(await connect('ollama', server), { messages: talk(20) })
    expect(warnings.map(({ code }) => code)).to.deep.equal(['context_compacted'])
  })

  it('D5.8: a configured context_window is sent as num_ctx, and the server is not asked', async () => {
    const provider = await connect('ollama', server, {}, { context_window: 16_384 })
    await ask(provider)
    expect(server.requests[0]?.body).to.deep.include({ options: { num_ctx: 16_384 } })
    expect(provider.contextWindow).to.equal(16_384)
    const other = await connect('openai-compatible', server, {}, { context_window: 16_384 })
    await ask(other)
    expect(server.requests[1]?.body).not.to.have.property('options')
  })
})

describe('the facts that an Ollama tells, and what it may answer in their place', () => {
  type Asked = { method: string; path: string; body: string }
  /** The facts of a server with these answers by their paths; a text is sent as it is. */
  function factsOf(answers: Record<string, unknown>, status = 200) {
    const asked: Asked[] = []
    const send: Send = async (url, { method, body }) => {
      const path = url.replace('http://models.test', '')
      asked.push({ method, path, body: String(body) })
      const answer = answers[path]
      const text = typeof answer === 'string' ? answer : JSON.stringify(answer ?? {})
      return { status, headers: {}, body: Readable.from([Buffer.from(text.slice(0, 9)), Buffer.from(text.slice(9))]) }
    }
    return { facts: createOllamaFacts({ chatUrl: 'http://models.test/api/chat', headers: {}, send }), asked }
  }
  const windowOf = async (answers: Record<string, unknown>, status?: number) =>
    factsOf(answers, status).facts.askWindow('m', never())
  const loaded = (context_length: unknown) => ({ '/api/ps': { models: [7, { name: 'm', context_length }] } })
  const shown = (parameters: unknown) => ({ '/api/show': { parameters } })

  it('D5.8: are windows of 256 tokens at least, and those of answers of another form are unknown', async () => {
    const rows: [answers: Record<string, unknown>, tokens: number | undefined][] = [
      [loaded(256), 256],
      [loaded(255), undefined],
      [loaded('8192'), undefined],
      [{ '/api/ps': { models: {} }, ...shown('stop x\nnum_ctx   4096') }, 4_096],
      [shown('min_num_ctx 4096'), undefined],
      [shown(7), undefined],
      [{ '/api/ps': 'oops', ...shown(null) }, undefined],
      [{ '/api/ps': { ...loaded(8_192)['/api/ps'], more: 'x'.repeat(1024 * 1024) } }, undefined],
    ]
    for (const [answers, tokens] of rows)
      expect(await windowOf(answers), JSON.stringify(answers).slice(0, 80)).to.equal(tokens)
    expect(await windowOf(loaded(8_192), 404)).to.equal(undefined)
  })

  it('D5.8: are asked for as its API has them, and once for the models of a minute, of which 64 are remembered', async () => {
    const { facts, asked } = factsOf({})
    expect(facts.lastWindowOf('m')).to.equal(undefined)
    await facts.askWindow('m', never())
    expect(asked).to.deep.equal([
      { method: 'GET', path: '/api/ps', body: '' },
      { method: 'POST', path: '/api/show', body: '{"model":"m"}' },
      { method: 'POST', path: '/api/generate', body: '{"model":"m","stream":false}' },
      { method: 'GET', path: '/api/ps', body: '' },
    ])
    for (let n = 1; n < 64; n++) await facts.askWindow(`m${n}`, never())
    const count = asked.length
    await facts.askWindow('m', never())
    expect(asked).to.have.length(count)
    await facts.askWindow('one more', never())
    await facts.askWindow('m', never())
    expect(asked).to.have.length(count + 8)
    const unknown = factsOf({ '/api/ps': {}, '/api/show': 'oops' })
    await unknown.facts.askWindow('m', never())
    expect(unknown.asked, 'a server without the question loads nothing').to.have.length(2)
  })

  it('are asked for anew after a minute', async () => {
    let now = 1_000
    mock.method(performance, 'now', () => now)
    const { facts, asked } = factsOf(loaded(8_192))
    for (now of [1_000, 60_999, 61_000]) await facts.askWindow('m', never())
    mock.restoreAll()
    expect(asked).to.have.length(2)
  })

  it('D8.4: are capabilities by their names', async () => {
    const of = (capabilities: unknown) => factsOf({ '/api/show': { capabilities } }).facts.askCapabilities('m', never())
    expect(await of(['tools', 7])).to.deep.equal(['tools'])
    expect(await of('tools')).to.equal(undefined)
  })
})

describe('what a model can do as Ollama tells it', () => {
  const server = useModelServer({ perTest: true })

  it('D8.4: counts in the probe, and what it does not tell is tried', async () => {
    server.ollama = { loaded: {}, numCtx: { 'test-model': 4_096 }, capabilities: ['completion', 'tools'] }
    server.otherwise(() => 'Red, I think.')
    const plain = await connect('ollama natively', server)
    const { capabilities } = await probeModel({ plain, reasoning: plain }, 'test-model', never())
    expect(capabilities).to.deep.equal({
      streaming: true,
      tools: true,
      structured_output: false,
      thinking: false,
      vision: false,
    })
    expect(server.requests).to.have.length(2)
  })
})
