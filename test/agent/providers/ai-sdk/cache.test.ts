// Tests prompt.ts: the cache points of the requests that the packages send.

import { expect } from 'chai'
import type { Message, ModelRequest } from '../../../../shared/agent/providers/port.ts'
import { useModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, DIALECTS, partsOf, request } from './setup.ts'

const tool = (name: string) => ({ name, description: name, inputSchema: { type: 'object' } })

const user = (text: string): Message => ({ role: 'user', text })
const says = (text: string): Message => ({ role: 'assistant', blocks: [{ type: 'text', text }] })
const calls = (...ids: string[]): Message => ({
  role: 'assistant',
  blocks: ids.map((id) => ({ type: 'tool_use', id, toolName: 'Read', input: {} })),
})
const gives = (...ids: string[]): Message => ({
  role: 'tool',
  results: ids.map((id) => ({ id, toolName: 'Read', output: `of ${id}`, isError: false })),
})

const ROUND = [user('one'), calls('a', 'b'), gives('a', 'b')]

/** A request, and its parts that end with a cache point, in order. */
const ROWS: [what: string, asked: Partial<ModelRequest>, points: string[]][] = [
  [
    'the system prompt, which covers the tools, and the first message',
    { system: 'be brief', tools: [tool('Read'), tool('Glob')], messages: [user('one')] },
    ['be brief', 'one'],
  ],
  ['the last tool where there is no system prompt', { tools: [tool('Read'), tool('Glob')] }, ['Glob', 'hi']],
  [
    'the end of the last request and the end of this one, in the middle of a run',
    { system: 'be brief', tools: [tool('Read')], messages: ROUND },
    ['be brief', 'one', 'of b'],
  ],
  [
    'the end of the last request when a run continues a conversation',
    { system: 'be brief', messages: [...ROUND, says('done'), user('two')] },
    ['be brief', 'of b', 'two'],
  ],
  ['the only message of a request, once', {}, ['hi']],
]

describe('prompt caching', () => {
  const server = useModelServer({ perTest: true })

  for (const [what, asked, points] of ROWS) {
    it(`requests to Anthropic have cache points after ${what}`, async () => {
      await ask(await connect('anthropic', server), request(asked))
      expect(pointsIn(server.requests[0]?.body)).to.deep.equal(points)
    })
  }

  it('a request to Anthropic with a long history has at most four cache points', async () => {
    const messages = [...Array.from({ length: 30 }, () => ROUND).flat(), user('two')]
    await ask(await connect('anthropic', server), request({ system: 'be brief', tools: [tool('Read')], messages }))
    expect(pointsIn(server.requests[0]?.body)).to.have.length.within(1, 4)
  })

  it('requests to the other providers, which cache without marks, have no cache points', async () => {
    for (const dialect of DIALECTS.filter((name) => name !== 'anthropic')) {
      await ask(await connect(dialect, server), request({ system: 'be brief', messages: ROUND, tools: [tool('Read')] }))
      expect(JSON.stringify(server.requests.at(-1)?.body), dialect).not.to.match(/cache_?control/i)
    }
  })

  it('the end of one request is a cache point of the next, so that a run reads its own prefix from the cache', async () => {
    const provider = await connect('anthropic', server)
    let messages: Message[] = [user('one')]
    for (let turn = 0; turn < 4; turn++) {
      await ask(provider, request({ messages }))
      messages = [...messages, calls(`t${turn}`), gives(`t${turn}`)]
    }
    const points = server.requests.map(({ body }) => pointsIn(body))
    for (const [index, [before]] of points.slice(1).entries()) expect(before).to.equal(points[index]?.at(-1))
  })

  it('the usage of an answer counts tokens read from the cache and written to it', async () => {
    server.answer({ steps: [{ text: 'ok' }], usage: { input: 3_000, cacheRead: 2_000, cacheWrite: 500 } })
    const [finish] = partsOf(await ask(await connect('anthropic', server)), 'finish')
    expect(finish?.usage).to.include({ input: 3_000, cacheRead: 2_000, cacheWrite: 500 })
  })
})

type Json = { [key: string]: unknown }

/** The texts of the parts with `cache_control`, in the order in which Anthropic reads them. */
function pointsIn(body: Json = {}): unknown[] {
  const found: unknown[] = []
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const part = value as Json
    if (part['cache_control'] !== undefined) {
      expect(part['cache_control']).to.deep.equal({ type: 'ephemeral' })
      found.push(part['text'] ?? part['content'] ?? part['name'])
    }
    for (const inner of Object.values(part)) visit(inner)
  }
  for (const key of ['tools', 'system', 'messages']) visit(body[key])
  return found
}
