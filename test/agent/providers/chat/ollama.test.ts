import { expect } from 'chai'
import type { ModelRequest } from '../../../../shared/agent/providers/port.ts'
import type { ModelOptions } from '../../../../shared/kernel/model-options.ts'
import { type ModelServer, startModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, never, partsOf, request, textOf } from '../ai-sdk/setup.ts'

const TOOL = { name: 'Read', description: 'Reads a file.', inputSchema: { type: 'object', properties: {} } }

describe("Ollama's own format", () => {
  let server: ModelServer
  beforeEach(async () => {
    server = await startModelServer()
  })
  afterEach(() => server.close())

  const sent = async (options: ModelOptions, asked: Partial<ModelRequest> = {}) => {
    await ask(await connect('ollama natively', server, {}, options), request(asked))
    return server.requests.at(-1)?.body
  }

  it('D5.8: carries the configured window as num_ctx, with the other options of the model', async () => {
    const body = await sent({ context_window: 16_384, max_output_tokens: 77, temperature: 0, reasoning_effort: 'none' })
    expect(body).to.deep.include({ options: { num_ctx: 16_384, num_predict: 77, temperature: 0 }, think: false })
  })

  it('D5.8: carries the window that the server has told, so that the model is not loaded with another one', async () => {
    server.ollama = { loaded: { 'test-model': 8_192 }, numCtx: {} }
    const provider = await connect('ollama natively', server)
    await ask(provider)
    await provider.askWindow?.('test-model', never())
    await ask(provider)
    expect(server.requests.map(({ body }) => body['options'])).to.deep.equal([undefined, { num_ctx: 8_192 }])
  })

  it('has the arguments of calls as objects, and the name of the tool in their results', async () => {
    const body = await sent(
      {},
      {
        system: 'be brief',
        tools: [TOOL],
        messages: [
          { role: 'user', text: 'hi' },
          { role: 'assistant', blocks: [{ type: 'tool_use', id: 'a', toolName: 'Read', input: { path: 'x' } }] },
          { role: 'tool', results: [{ id: 'a', toolName: 'Read', output: 'it says so', isError: false }] },
        ],
      },
    )
    expect(body?.['messages']).to.deep.equal([
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'a', function: { name: 'Read', arguments: { path: 'x' } } }],
      },
      { role: 'tool', content: 'it says so', tool_call_id: 'a', tool_name: 'Read' },
    ])
  })

  it('D5.8: asks the server to refuse what is too long, in place of cutting it without a word', async () => {
    expect(await sent({})).to.deep.include({ truncate: false, shift: false })
  })

  it('may have a line of any length in an answer of any length', async () => {
    server.answer([{ tokens: 12_000 }])
    const parts = await ask(await connect('ollama natively', server, { maxEventBytes: 4_096 }))
    expect(partsOf(parts, 'text_delta')).to.have.length(12_000)
    expect(parts.at(-1)).to.include({ type: 'finish' })
  })

  it('fails with the error of a line, and at a line that is not JSON', async () => {
    const reasonOf = async (raw: string) => {
      server.answer([{ text: 'so' }, { raw }])
      const parts = await ask(await connect('ollama natively', server))
      expect(textOf(parts)).to.equal('so')
      return partsOf(parts, 'failure')[0]?.failure.reason
    }
    expect(await reasonOf('{"error":"an error was encountered while running the model"}\n')).to.equal('stream_error')
    expect(await reasonOf('oops\n')).to.equal('bad_chunk')
  })
})
