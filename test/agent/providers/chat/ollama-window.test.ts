import { expect } from 'chai'
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
