import { expect } from 'chai'
import type { Message } from '../../../../shared/agent/providers/port.ts'
import { useModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, request } from '../ai-sdk/setup.ts'

const FIRST: Message[] = [{ role: 'user', text: 'one' }]
const LATER: Message[] = [
  ...FIRST,
  { role: 'assistant', blocks: [{ type: 'tool_use', id: 'a', toolName: 'Read', input: {} }] },
  { role: 'tool', results: [{ id: 'a', toolName: 'Read', output: 'it says so', isError: false }] },
]

describe('prompt_cache_key', () => {
  const server = useModelServer({ perTest: true })

  const keyOf = (index: number) => server.requests[index]?.body['prompt_cache_key']

  for (const dialect of ['openai', 'openai behind a gateway'] as const) {
    it(`is the same for all requests over ${dialect} that begin alike, and tells nothing of them`, async () => {
      const provider = await connect(dialect, server)
      const other: Message[] = [{ role: 'user', text: 'two' }]
      for (const messages of [FIRST, LATER, other]) await ask(provider, request({ system: 'be brief', messages }))
      await ask(provider, request({ system: 'be long', messages: FIRST }))
      expect(keyOf(0)).to.match(/^[0-9a-f]{32}$/)
      expect([keyOf(1), keyOf(2)]).to.deep.equal([keyOf(0), keyOf(0)])
      expect(keyOf(3)).not.to.equal(keyOf(0))
    })
  }

  it('is sent to OpenAI only', async () => {
    for (const dialect of ['openai-compatible', 'ollama', 'anthropic', 'google'] as const) {
      await ask(await connect(dialect, server))
      expect(JSON.stringify(server.requests.at(-1)?.body), dialect).not.to.match(/cache_?key/i)
    }
  })
})
