import { expect } from 'chai'
import { elapsedMs } from '../support/elapsed.ts'
import type { EventStream } from '../support/event-stream.ts'
import type { Answer } from '../support/model-server/model-server.ts'
import { inBothForms, useProduct } from '../support/product.ts'

const HANG: Answer = [{ text: 'working' }, { hang: true }]
const agent = (description: string) => ({ description, prompt: `do ${description}` })

/** Reads frames until the condition holds; throws when the stream ends first. */
async function readUntil(stream: EventStream, isSo: () => boolean): Promise<void> {
  while (!isSo()) if (!(await stream.next())) throw new Error('the stream ended before all model calls were made')
}

inBothForms('cancelling sub-agents', (startProduct) => {
  const product = useProduct(startProduct)

  /** A run with a Team of eight, one of which has a sub-agent of its own. All wait for the model. */
  async function startTeam() {
    const agents = Array.from({ length: 8 }, (_, i) => agent(`task ${i}`))
    product.model.answer([{ tool: 'Team', input: { agents } }])
    product.model.otherwise(({ prompt }) =>
      prompt === 'do task 0' ? [{ tool: 'Agent', input: agent('grandchild') }] : HANG,
    )
    const first = product.model.requests.length
    const stream = await product.run({ prompt: 'go' })
    const asked = () => product.model.requests.slice(first)
    await readUntil(stream, () => asked().length >= 10)
    return { stream, hanging: asked().filter(({ prompt }) => prompt.startsWith('do ') && prompt !== 'do task 0') }
  }

  it('D4.5f: cancelling a run with eight sub-agents closes the model calls of the whole tree', async () => {
    const { stream, hanging } = await startTeam()
    expect(hanging).to.have.length(8)
    const cancelledAt = elapsedMs()
    expect((await product.call('DELETE', `/runs/${stream.runId}`)).status).to.equal(200)
    await Promise.all(hanging.map(({ closedByClient }) => closedByClient))
    expect(elapsedMs() - cancelledAt).to.be.below(2_000)
    expect((await stream.all()).at(-1))
      .to.deep.include({ event: 'error' })
      .nested.include({ 'data.code': 'cancelled' })
  })
})
