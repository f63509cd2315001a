import { expect } from 'chai'
import { useModelServer } from '../../support/model-server/model-server.ts'
import { play } from '../engine/context/setup.ts'
import { connect, DIALECTS } from './ai-sdk/setup.ts'

const REFUSAL = { status: 400, message: 'registry.ollama.ai/library/m:latest does not support tools' }

for (const dialect of DIALECTS) {
  describe(`a model over ${dialect} that takes no tools`, () => {
    const server = useModelServer({ perTest: true })

    it('is asked without them, with a warning in each run, and remembered', async () => {
      server.answer(REFUSAL)
      const provider = await connect(dialect, server)
      for (const requests of [2, 3]) {
        const { warnings, events } = await play(provider, {})
        expect(warnings.map(({ code }) => code)).to.deep.equal(['tools_left_out'])
        expect(events.at(-1)).to.include({ type: 'done' })
        expect(server.requests).to.have.length(requests)
      }
      const [first, ...others] = server.requests.map(({ body }) => 'tools' in body)
      expect([first, ...new Set(others)]).to.deep.equal([true, false])
    })
  })
}
