import { expect } from 'chai'
import type { Frame } from '../../support/event-stream.ts'
import type { Received } from '../../support/model-server/model-server.ts'
import { step, stepIdOf, usePlans } from '../../support/plans.ts'
import { inBothForms, inStandaloneForm, type Product } from '../../support/product.ts'

const PROMPT = 'Make a plan.'
const PLAN = { title: 'Two', parallel: true, steps: [step('a'), step('b', 'a')] }

const idsOf = async (product: Product) =>
  ((await product.call('GET', '/plans?limit=200')).body as { plans: { id: string }[] }).plans.map(({ id }) => id)

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

  it('D5.4: a denied plan, and one of a run without auto_queue_plan, is not queued', async () => {
    const before = await idsOf(bench.product)
    expect((await propose(bench.product, PLAN, { allow: false })).event).to.equal('done')
    expect((await propose(bench.product, PLAN, { isQueued: false })).event).to.equal('done')
    expect(await idsOf(bench.product)).to.deep.equal(before)
  })
})

inStandaloneForm('PLAN_QUEUE=false', (startProduct, form) => {
  const bench = usePlans(startProduct, form, { PLAN_QUEUE: 'false' })

  it('api.md Plan queue: every plan endpoint answers 503, not 404', async () => {
    const id = `plan_${'0'.repeat(32)}`
    for (const [method, path, body] of [
      ['GET', '/plans'],
      ['POST', '/plans/submit', PLAN],
      ['POST', '/plans/submit', { steps: [] }],
      ['GET', `/plans/${id}`],
      ['GET', '/plans/x'],
      ['POST', `/plans/${id}/cancel`],
      ['GET', `/plans/${id}/events`],
      ['GET', '/plans/schedules'],
      ['GET', '/plans/schedules/nightly'],
      ['PUT', '/plans/schedules/nightly', { every_secs: 1, plan: PLAN }],
      ['DELETE', '/plans/schedules/nightly'],
    ] as const) {
      const reply = await bench.call(method, path, body)
      expect(reply.status, `${method} ${path}`).to.equal(503)
      expect(reply.body).to.nested.include({ 'error.type': 'unavailable_error' })
    }
  })

  it('api.md "plan_queued": an approved plan ends the run with a note', async () => {
    const { event, data } = await propose(bench.product, PLAN)
    expect(event).to.equal('plan_queued')
    expect(data).not.to.have.property('plan_id')
    expect(data['note']).to.match(/switched off/)
    expect(bench.product.model.requests).to.have.length(1)
  })
})
