import { expect } from 'chai'
import type { Answer, Received } from '../../support/model-server/model-server.ts'
import { heads, step, stepIdOf, usePlans } from '../../support/plans.ts'
import { inBothForms } from '../../support/product.ts'

const WAVES = [
  ['a', 'b', 'c'],
  ['d', 'e', 'f'],
  ['g', 'h'],
] as const

const EIGHT = [
  step('a'),
  step('b'),
  step('c'),
  step('d', 'a', 'b'),
  step('e', 'c'),
  step('f', 'b'),
  step('g', 'd', 'e'),
  step('h', 'f'),
]

const answer = (request: Received) => `out of ${stepIdOf(request)}`
const block = (id: string) => `<step_output step="${id}">\nout of ${id}\n</step_output>`

/** Answers the steps of each wave when its gate is open. */
function gated() {
  const gates = WAVES.map(() => Promise.withResolvers<void>())
  const answerStep = (request: Received): Answer => {
    const wave = WAVES.findIndex((ids) => ids.some((id) => id === stepIdOf(request)))
    return [{ hold: gates[wave]?.promise ?? Promise.resolve() }, { text: answer(request) }]
  }
  return { gates, answerStep }
}

inBothForms('plans', (startProduct, form) => {
  const bench = usePlans(startProduct, form)
  const { submit, read, begun, requestOf } = bench

  beforeEach(() => bench.product.model.otherwise(answer))

  const follow = (id: string, after?: number) =>
    bench.product.stream(`/plans/${id}/events`, undefined, after === undefined ? {} : { 'last-event-id': `${after}` })

  it('api.md Plan step: 8 steps in 3 waves, watched by polling and as a stream through every gateway', async () => {
    const { gates, answerStep } = gated()
    bench.product.model.otherwise(answerStep)
    const { id } = await submit({ steps: EIGHT, parallel: true, title: 'Eight' })
    const first = await follow(id)
    for (const [i, wave] of WAVES.entries()) {
      await begun(...wave)
      const polled = await Promise.all([read(id), read(id)])
      const expected = WAVES.flatMap((ids, j) =>
        ids.map((each) => [each, j < i ? 'done' : j === i ? 'running' : 'pending']),
      )
      for (const plan of polled) {
        expect(plan.status).to.equal('running')
        expect(plan.step_statuses).to.deep.equal(Object.fromEntries(expected))
      }
      if (i === 1) {
        while (heads(first.frames).filter((head) => head.startsWith('step_started')).length < 6) await first.next()
        first.leave()
      }
      gates[i]?.resolve()
    }
    const rest = await (await follow(id, first.frames.length)).all()
    const frames = [...first.frames, ...rest]

    expect(frames.map((frame) => frame.id)).to.deep.equal(frames.map((_, i) => i + 1))
    const seen = heads(frames)
    const groups = WAVES.flatMap((wave) => [
      wave.map((each) => `step_started ${each}`),
      wave.map((each) => `step_ended ${each} done`),
    ])
    expect(seen.shift()).to.equal('plan_started')
    expect(seen.pop()).to.equal('plan_ended done')
    for (const group of groups) expect(seen.splice(0, group.length)).to.have.members(group)
    expect(seen).to.be.empty

    const plan = await read(id)
    expect(plan).to.include({ status: 'done', title: 'Eight', parallel: true })
    expect(plan).not.to.have.any.keys('step_errors', 'error')
    const ids = WAVES.flat()
    expect(plan.step_outputs).to.deep.equal(Object.fromEntries(ids.map((each) => [each, `out of ${each}`])))
    for (const { id: each, prompt, depends_on: after = [] } of EIGHT) {
      const received = requestOf(each).prompt
      expect(received.split('\n')[0]).to.equal(prompt)
      const blocks = ids.filter((other) => received.includes(block(other)))
      expect(blocks, `the outputs in the prompt of ${each}`).to.have.members([...after])
    }
  })
})
