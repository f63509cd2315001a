import { expect } from 'chai'
import type { Frame } from '../../support/event-stream.ts'
import type { Received } from '../../support/model-server/model-server.ts'
import { step, stepIdOf, usePlans } from '../../support/plans.ts'
import { inBothForms, type Product } from '../../support/product.ts'

const PROMPT = 'Make a plan.'
const PLAN = { title: 'Two', parallel: true, steps: [step('a'), step('b', 'a')] }

/** Answers a run with a plan, and everything else with a text. */
const proposing = (plan: object) => (request: Received) =>
  request.prompt === PROMPT ? [{ tool: 'ExitPlanMode', input: plan }] : `out of ${stepIdOf(request)}`

/** Runs an agent that proposes a plan, replies to its request, and returns the last frame of the run. */
async function propose(product: Product, plan: object, { allow = true, isQueued = true } = {}): Promise<Frame> {
  product.model.otherwise(proposing(plan))
  const stream = await product.run({ prompt: PROMPT, ...(isQueued && { auto_queue_plan: true }) })
  const { data } = await stream.until('permission_request')
  expect(data).to.include({ tool_name: 'ExitPlanMode' })
  const path = `/sessions/${stream.runId}/permissions/${data['id']}`
  expect((await product.call('POST', path, { allow })).status).to.equal(200)
  const frames = await stream.all()
  const run = await product.call('GET', `/runs/${stream.runId}`)
  expect(run.body).to.include({ status: 'done' })
  return frames.at(-1) as Frame
}

inBothForms('auto_queue_plan', (startProduct, form) => {
  const bench = usePlans(startProduct, form)

  it('api.md Events 6: an approved plan is queued, ends the run with its id, and is carried out', async () => {
    const { event, data } = await propose(bench.product, PLAN)
    expect(event).to.equal('plan_queued')
    expect(data)
      .to.have.property('plan_id')
      .that.matches(/^plan_[0-9a-f]{32}$/)
    const plan = await bench.ended(String(data['plan_id']))
    const outputs = { a: 'out of a', b: 'out of b' }
    expect(plan).to.deep.include({ ...PLAN, status: 'done', step_outputs: outputs })
    // The model that proposed the plan is not asked again.
    expect(bench.product.model.requests.filter(({ prompt }) => prompt === PROMPT)).to.have.length(1)
    expect(bench.product.model.requests).to.have.length(3)
  })
})
