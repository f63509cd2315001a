import { expect } from 'chai'
import { useModelServer } from '../../../support/model-server/model-server.ts'
import { connect, DIALECTS } from '../../providers/ai-sdk/setup.ts'
import { play, talk } from './setup.ts'

describe('a context on the wire', () => {
  const server = useModelServer({ perTest: true })

  for (const dialect of DIALECTS) {
    it(`D5.6: the way ${dialect} rejects an input that is too long leads to a shorter one`, async () => {
      server.answer({ contextTooLong: true }, 'they spoke of p', 'ok')
      const { types, warnings, done } = await play(await connect(dialect, server), { messages: talk(20) })
      expect(types).to.deep.equal(['turn_start', 'warning', 'text_delta', 'text', 'turn_end', 'done'])
      expect(warnings[0]).to.include({ code: 'context_compacted' })
      expect(done).to.include({ turn_count: 1 })
      const [before = 0, , after = 0] = server.requests.map(({ body }) => JSON.stringify(body).length)
      expect(after).to.be.below(before / 2)
      expect(JSON.stringify(server.requests[2]?.body)).to.include('they spoke of p').and.include('and now?')
    })
  }

  it("D4.10: a run reads its own prefix from Anthropic's cache, and reports it in turn_end and done", async () => {
    server.answer(
      { steps: [{ tool: 'Dig' }], usage: { input: 3_000, cacheWrite: 2_900 } },
      { steps: [{ text: 'found' }], usage: { input: 3_400, cacheRead: 2_900, cacheWrite: 400 } },
    )
    const { events, done } = await play(await connect('anthropic', server), {
      systemPrompt: 'be brief',
      output: 'gold',
    })
    const points = server.requests.map(({ body }) => JSON.stringify(body).split('"cache_control"').length - 1)
    expect(points).to.deep.equal([2, 3])
    const [first, second] = events.filter((event) => event.type === 'turn_end')
    expect(first).to.include({ cache_write_tokens: 2_900 }).and.not.have.property('cache_read_tokens')
    expect(second).to.include({ input_tokens: 3_400, cache_read_tokens: 2_900, cache_write_tokens: 400 })
    expect(done).to.include({ total_input_tokens: 6_400, cache_read_tokens: 2_900, cache_write_tokens: 3_300 })
  })
})
