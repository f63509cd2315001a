import { expect } from 'chai'
import type { Answer, Received } from '../../support/model-server/model-server.ts'
import { heads, step, stepIdOf, usePlans } from '../../support/plans.ts'
import { inBothForms } from '../../support/product.ts'
import { until } from '../../support/until.ts'

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
  const { submit, read, ended, begun, events, requestOf } = bench

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

  it('api.md Plan step: in a diamond the steps behind a failed one are skipped transitively, the others run', async () => {
    bench.product.model.otherwise((request) =>
      stepIdOf(request) === 'b' ? { status: 400, message: 'no such shelf' } : answer(request),
    )
    const steps = [step('a'), step('b', 'a'), step('c', 'a'), step('d', 'b', 'c'), step('e', 'd')]
    const { id } = await submit({ steps, parallel: true })
    const frames = await events(id)
    const plan = await read(id)
    const statuses = { a: 'done', b: 'failed', c: 'done', d: 'skipped', e: 'skipped' }
    expect(plan).to.deep.include({ status: 'failed', step_statuses: statuses })
    expect(plan.step_errors).to.have.all.keys('b')
    expect(plan.step_errors?.['b']).to.include('no such shelf')
    expect(plan.error).to.equal(plan.step_errors?.['b'])
    expect(plan.step_outputs).to.deep.equal({ a: 'out of a', c: 'out of c' })
    expect(heads(frames)).to.include.members(['step_ended b failed', 'step_ended d skipped', 'step_ended e skipped'])
    expect(frames.at(-1)?.data).to.include({ status: 'failed', error: plan.error })
    expect(bench.product.model.requests.map(stepIdOf)).to.have.members(['a', 'b', 'c'])
  })

  it('api.md Plan: the error of the plan is its first failure, in whatever order the steps are', async () => {
    const second = Promise.withResolvers<void>()
    bench.product.model.otherwise(async (request) => {
      if (stepIdOf(request) === 'a') await second.promise
      return { status: 400, message: `no ${stepIdOf(request)}` }
    })
    const { id } = await submit({ steps: [step('a'), step('b')], parallel: true })
    const hasFailed = async () => (await read(id)).step_statuses['b'] === 'failed'
    await until(hasFailed, { what: 'the step b to fail' })
    second.resolve()
    const { error, step_errors } = await ended(id)
    expect(step_errors).to.have.all.keys('a', 'b')
    expect(error).to.equal(step_errors?.['b']).and.include('no b')
  })

  it('api.md Plan step: without parallel one step runs at a time, in the order of dependencies', async () => {
    const { id } = await submit({ steps: [step('a', 'c'), step('b'), step('c')] })
    expect(heads(await events(id))).to.deep.equal([
      'plan_started',
      ...['b', 'c', 'a'].flatMap((each) => [`step_started ${each}`, `step_ended ${each} done`]),
      'plan_ended done',
    ])
    expect(bench.product.model.requests.map(stepIdOf)).to.deep.equal(['b', 'c', 'a'])
    expect(await read(id)).not.to.have.property('parallel')
  })
})
