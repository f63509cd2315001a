import { expect } from 'chai'
import { useModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, DIALECTS, partsOf, textOf } from './setup.ts'

const FINISH_MS = 60

/** Ollama's own format ends with the line that names the reason. */
for (const dialect of DIALECTS.filter((each) => each !== 'ollama natively')) {
  describe(`an answer over ${dialect} whose finish reason was read`, () => {
    const server = useModelServer({ perTest: true })

    for (const afterFinish of ['silence', 'comments', 'reset'] as const) {
      it(`is whole when ${afterFinish} follows in place of the end, and closes the connection`, async () => {
        server.answer({ steps: [{ text: 'whole' }, { tool: 'Read', input: { a: 1 } }], afterFinish })
        const asked = server.nextRequest()
        const parts = await ask(await connect(dialect, server, { finishMs: FINISH_MS }))
        expect(textOf(parts)).to.equal('whole')
        expect(partsOf(parts, 'tool_call').map(({ toolName, input }) => [toolName, input])).to.deep.equal([
          ['Read', '{"a":1}'],
        ])
        expect(parts.at(-1)).to.include({ type: 'finish', reason: 'tool_use' })
        expect(partsOf(parts, 'finish')[0]?.usage).to.have.property('input').that.is.above(0)
        if (afterFinish !== 'reset') await (await asked).closedByClient
      })
    }
  })
}
