import { expect } from 'chai'
import type { ModelPart } from '../../../shared/agent/providers/port.ts'
import { useModelServer } from '../../support/model-server/model-server.ts'
import { ask, connect, DIALECTS, type Dialect, partsOf } from './ai-sdk/setup.ts'

const CHAT: Dialect[] = ['openai-compatible', 'ollama', 'ollama natively', 'openai behind a gateway']

/** Reasons that servers send when they broke an answer off. The last one is no server's. */
const BROKEN: Record<Dialect, string[]> = {
  'openai-compatible': ['error', 'insufficient_system_resource', 'abort', 'network_error', 'unheard_of'],
  ollama: ['load', 'unheard_of'],
  'ollama natively': ['load', 'unload', 'unheard_of'],
  'openai behind a gateway': ['error', 'unheard_of'],
  openai: ['unheard_of'],
  anthropic: ['compaction', 'unheard_of'],
  google: ['OTHER', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'MALFORMED_FUNCTION_CALL', 'unheard_of'],
}

const lastOf = (parts: ModelPart[]) => {
  const last = parts.at(-1)
  return last?.type === 'failure' ? last.failure : last?.type === 'finish' ? last.reason : last
}

for (const dialect of DIALECTS) {
  describe(`the end of an answer over ${dialect}`, () => {
    const server = useModelServer({ perTest: true })

    for (const rawFinish of BROKEN[dialect]) {
      it(`D4.4: \`${rawFinish}\` behind a text is a failure`, async () => {
        server.answer({ steps: [{ text: 'so far' }], rawFinish })
        const failure = lastOf(await ask(await connect(dialect, server)))
        expect(failure).to.include({ code: 'provider_unavailable', reason: rawFinish.toLowerCase() })
      })

      it(`D5.5: \`${rawFinish}\` behind a tool call is a failure, and the call is not yielded`, async () => {
        server.answer({ steps: [{ tool: 'Read', input: '{"path": "a"}' }], rawFinish })
        const parts = await ask(await connect(dialect, server))
        expect(parts.map(({ type }) => type)).to.deep.equal(['failure'])
        expect(lastOf(parts)).to.include({ code: 'provider_unavailable', isRetryable: true })
      })
    }

    it('D5.5: a stream that breaks off inside a tool call yields nothing but the failure', async () => {
      server.answer([{ tool: 'Read', input: { path: 'a' } }, { truncate: true }])
      const parts = await ask(await connect(dialect, server))
      expect(parts.map(({ type }) => type)).to.deep.equal(['failure'])
    })

    it('D4.4: tool calls of an answer that the output limit cut are yielded before `max_tokens`', async () => {
      server.answer({ steps: [{ tool: 'Read', input: { path: 'a' } }], finish: 'length' })
      const parts = await ask(await connect(dialect, server))
      expect(partsOf(parts, 'tool_call')).to.have.length(1)
      expect(lastOf(parts)).to.equal('max_tokens')
    })
  })
}

describe("the names of a good end in copies of OpenAI's chat format", () => {
  const server = useModelServer({ perTest: true })

  const ENDS: [rawFinish: string, reason: string][] = [
    ['STOP', 'end_turn'],
    ['eos_token', 'end_turn'],
    ['end_turn', 'end_turn'],
    ['stop_sequence', 'stop_sequence'],
    ['model_length', 'max_tokens'],
    ['max_tokens', 'max_tokens'],
  ]
  for (const [rawFinish, reason] of ENDS) {
    it(`D4.4: \`${rawFinish}\` is ${reason}`, async () => {
      server.answer({ steps: [{ text: 'ok' }], rawFinish })
      expect(lastOf(await ask(await connect('openai-compatible', server)))).to.equal(reason)
    })
  }

  for (const rawFinish of ['sensitive', 'content_filter: PROHIBITED_CONTENT']) {
    it(`D4.8: \`${rawFinish}\` is content_filtered`, async () => {
      server.answer({ steps: [{ text: 'ok' }], rawFinish })
      expect(lastOf(await ask(await connect('openai-compatible', server)))).to.include({ code: 'content_filtered' })
    })
  }

  for (const dialect of CHAT) {
    it(`an answer with tool calls over ${dialect} may end with \`stop\``, async () => {
      server.answer({ steps: [{ tool: 'Read' }], finish: 'stop' })
      expect(lastOf(await ask(await connect(dialect, server)))).to.equal('tool_use')
    })
  }
})
