// Tests ollama-facts.ts: what a server tells of its models, over HTTP.

import { expect } from 'chai'
import { probeModel } from '../../../../shared/agent/providers/probe.ts'
import { type ModelServer, startModelServer } from '../../../support/model-server/model-server.ts'
import { play, talk } from '../../engine/context/setup.ts'
import { ask, connect, never } from '../ai-sdk/setup.ts'

describe("Ollama's context window", () => {
  let server: ModelServer
  beforeEach(async () => {
    server = await startModelServer()
  })
  afterEach(() => server.close())

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

describe('what a model can do as Ollama tells it', () => {
  let server: ModelServer
  beforeEach(async () => {
    server = await startModelServer()
  })
  afterEach(() => server.close())

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
