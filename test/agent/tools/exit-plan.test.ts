import { expect } from 'chai'
import { createExitPlanTool } from '../../../shared/agent/tools/exit-plan.ts'
import type { QueuePlan } from '../../../shared/agent/tools/port.ts'
import { contextOf } from './setup.ts'

const PLAN = {
  title: 'Garden',
  steps: [
    { id: 'a', prompt: 'x'.repeat(201) },
    { id: 'b', title: 'Plant', prompt: 'plant it', depends_on: ['a'] },
    { id: 'c', prompt: 'y'.repeat(200), depends_on: [] },
  ],
}
const OUTLINE = `Garden\n1. ${'x'.repeat(200)}…\n2. Plant (after a)\n3. ${'y'.repeat(200)}`

describe('ExitPlanMode', () => {
  const tool = createExitPlanTool(({ steps }) => (steps.length > 3 ? 'too many steps' : undefined))
  const run = (queuePlan?: QueuePlan, plan: object = PLAN) =>
    tool.run({ ...plan }, contextOf('/nowhere', queuePlan && { queuePlan }))

  it('D5.4: asks for permission under every policy, and the request shows the outline of the plan', () => {
    expect(tool.alwaysAsks).to.equal(true)
    expect(tool.describe(PLAN)).to.equal(`Approve this plan:\n${OUTLINE}`)
    expect(tool.describe({ steps: [{ id: 'a', prompt: 'dig' }] })).to.equal('Approve this plan:\n1. dig')
  })

  it('passes the problem of a plan to the model before the client is asked', () => {
    expect(tool.problemWith?.(PLAN)).to.equal(undefined)
    expect(tool.problemWith?.({ steps: [...PLAN.steps, ...PLAN.steps] })).to.equal('too many steps')
  })

  it('lets the model carry out an approved plan when the run does not queue plans', async () => {
    expect(await run()).to.deep.equal({
      output: `The plan is approved. Carry it out now:\n${OUTLINE}`,
      isError: false,
    })
  })

  it('queues an approved plan and ends the run with its id', async () => {
    expect(await run(async () => ({ plan_id: 'plan_1' }))).to.deep.equal({
      output: 'The plan is queued as plan_1.',
      isError: false,
      ending: { type: 'plan_queued', plan_id: 'plan_1' },
    })
  })

  it('ends the run with a note when nothing was queued; a plan without steps is never queued', async () => {
    expect(await run(async () => ({ note: 'no queue' }))).to.deep.equal({
      output: 'Nothing was queued: no queue',
      isError: false,
      ending: { type: 'plan_queued', note: 'no queue' },
    })
    const queued = await run(() => expect.fail('it was queued'), { steps: [] })
    expect(queued.ending).to.deep.equal({ type: 'plan_queued', note: 'the plan has no steps' })
  })

  it('tells the model to try again when the queue does not answer', async () => {
    const { output, isError, ending } = await run(() => Promise.reject(new Error('redis://secret')))
    expect([isError, ending]).to.deep.equal([true, undefined])
    expect(output).to.match(/^The plan is approved, but could not be queued/)
  })
})
