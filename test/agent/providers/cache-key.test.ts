import { expect } from 'chai'
import { promptCacheKey } from '../../../shared/agent/providers/cache-key.ts'
import type { ModelRequest } from '../../../shared/agent/providers/port.ts'

const MINUTE_MS = 60_000
let flow = 0

const requestOf = (system: string, text: string, tools: string[] = []): ModelRequest => ({
  ...{ model: 'm', system, stopSequences: [], messages: [{ role: 'user', text }] },
  tools: tools.map((name) => ({ name, description: '', inputSchema: {} })),
})

describe('the key of a prompt cache', () => {
  /** The keys of so many runs of a flow of its own, in one minute, each with an input of its own. */
  function keysOf(count: number, system = `flow ${flow++}`, minute = 10): string[] {
    return Array.from({ length: count }, (_, i) => promptCacheKey(requestOf(system, `input ${i}`), minute * MINUTE_MS))
  }

  it('is one for runs that share the system prompt and the tools, whatever their inputs are', () => {
    expect(new Set(keysOf(15)).size).to.equal(1)
    const keys = [requestOf('a', 'x'), requestOf('b', 'x'), requestOf('a', 'x', ['Read'])].map((each) =>
      promptCacheKey(each),
    )
    expect(new Set(keys).size).to.equal(3)
  })

  it('above 15 requests a minute there are as few as keep each below that, and one conversation keeps its own', () => {
    const system = `flow ${flow++}`
    keysOf(1_000, system, 10)
    const keys = keysOf(1_000, system, 11)
    const counts = [...Map.groupBy(keys, (key) => key).values()].map(({ length }) => length)
    expect(counts).to.have.length(64)
    expect(Math.max(...counts)).to.be.below(40)
    expect(keysOf(1_000, system, 11)).to.deep.equal(keys)
  })

  it('a minute without requests makes it one again', () => {
    const system = `flow ${flow++}`
    keysOf(100, system, 10)
    expect(new Set(keysOf(10, system, 11)).size).to.be.above(1)
    expect(new Set(keysOf(10, system, 13)).size).to.equal(1)
  })
})
