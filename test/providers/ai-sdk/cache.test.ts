import { expect } from 'chai'
import type { Message, ModelRequest } from '../../../shared/providers/port.ts'
import { type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'
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

/** A request, and the parts of it that end with a cache point, in their order. */
const ROWS: [what: string, asked: Partial<ModelRequest>, points: string[]][] = [
  [
    'the system prompt, which stands behind the tools, and the first message',
    { system: 'be brief', tools: [tool('Read'), tool('Glob')], messages: [user('one')] },
    ['be brief', 'one'],
  ],
  ['the last tool where there is no system prompt', { tools: [tool('Read'), tool('Glob')] }, ['Glob', 'hi']],
  [
    "the last request's end and this one's, in the middle of a run",
    { system: 'be brief', tools: [tool('Read')], messages: ROUND },
    ['be brief', 'one', 'of b'],
  ],
  [
    "the last request's end when a run goes on a conversation",
    { system: 'be brief', messages: [...ROUND, says('done'), user('two')] },
    ['be brief', 'of b', 'two'],
  ],
  ['nothing twice: the one message of a request without more', {}, ['hi']],
]

describe('prompt caching', () => {
  let server: ModelServer

  beforeEach(async () => {
    server = await startModelServer()
  })

  afterEach(() => server.close())

  for (const [what, asked, points] of ROWS) {
    it(`Anthropic is given cache points behind ${what}`, async () => {
      await ask(await connect('anthropic', server), request(asked))
      expect(pointsIn(server.requests[0]?.body)).to.deep.equal(points)
    })
  }

  it('of a request with a long history Anthropic is given at most four cache points', async () => {
    const messages = [...Array.from({ length: 30 }, () => ROUND).flat(), user('two')]
    await ask(await connect('anthropic', server), request({ system: 'be brief', tools: [tool('Read')], messages }))
    expect(pointsIn(server.requests[0]?.body)).to.have.length.within(1, 4)
  })

  it('the others cache by themselves and are sent no cache points', async () => {
    for (const dialect of DIALECTS.filter((name) => name !== 'anthropic')) {
      await ask(await connect(dialect, server), request({ system: 'be brief', messages: ROUND, tools: [tool('Read')] }))
      expect(JSON.stringify(server.requests.at(-1)?.body), dialect).not.to.match(/cache_?control/i)
    }
  })

  it('the end of one request is a cache point of the next, so that a run reads its own prefix', async () => {
    const provider = await connect('anthropic', server)
    let messages: Message[] = [user('one')]
    for (let turn = 0; turn < 4; turn++) {
      await ask(provider, request({ messages }))
      messages = [...messages, calls(`t${turn}`), gives(`t${turn}`)]
    }
    const points = server.requests.map(({ body }) => pointsIn(body))
    for (const [index, [before]] of points.slice(1).entries()) expect(before).to.equal(points[index]?.at(-1))
  })

  it("what the cache gave and took is told apart in the answer's usage", async () => {
    server.answer({ steps: [{ text: 'ok' }], usage: { input: 3_000, cacheRead: 2_000, cacheWrite: 500 } })
    const [finish] = partsOf(await ask(await connect('anthropic', server)), 'finish')
    expect(finish?.usage).to.include({ input: 3_000, cacheRead: 2_000, cacheWrite: 500 })
  })
})

type Json = { [key: string]: unknown }

/** The words of the parts that carry `cache_control`, in the order in which Anthropic reads them. */
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
