import { expect } from 'chai'
import { type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'
import { connect } from '../providers/ai-sdk/setup.ts'
import { play } from './context/setup.ts'

describe('an answer that breaks off inside a tool call', () => {
  let server: ModelServer
  beforeEach(async () => {
    server = await startModelServer()
  })
  afterEach(() => server.close())

  for (const dialect of ['openai-compatible', 'openai', 'anthropic'] as const) {
    it(`D5.5: is requested again over ${dialect}, because the client has seen nothing of it`, async () => {
      server.answer([{ tool: 'Dig', input: { depth: 3 } }, { reset: true }], 'ok')
      const { types, warnings } = await play(await connect(dialect, server), {})
      expect(warnings.map(({ code }) => code)).to.deep.equal(['transport_retrying'])
      expect(types).to.deep.equal(['turn_start', 'warning', 'text_delta', 'text', 'turn_end', 'done'])
    })
  }

  it('D5.5: fails the run when a text was seen before', async () => {
    server.answer([{ text: 'so' }, { tool: 'Dig' }, { reset: true }], 'ok')
    const { last } = await play(await connect('anthropic', server), {})
    expect(last).to.include({ type: 'error', code: 'provider_unavailable' })
    expect(server.requests).to.have.length(1)
  })
})
