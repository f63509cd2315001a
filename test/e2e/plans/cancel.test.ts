import { expect } from 'chai'
import { heads, planOf, step, stepIdOf, usePlans } from '../../support/plans.ts'
import { inBothForms } from '../../support/product.ts'
import { TenantEvents } from '../../support/tenant-events.ts'

inBothForms('the end of plans', (startProduct, form) => {
  // An executor with 8 runs executes one plan at a time.
  const bench = usePlans(startProduct, form, { RUNS_PER_WORKER: '8' })
  const { submit, read, ended, begun, events, requestOf } = bench

  beforeEach(() => bench.product.model.otherwise((request) => `out of ${stepIdOf(request)}`))

  const cancel = (id: string) => bench.call('POST', `/plans/${id}/cancel`)

  /** Submits a plan whose step `held` gets half an answer of the model, and waits until it runs. */
  async function holding(held: string, plan: object) {
    bench.product.model.otherwise((request) =>
      stepIdOf(request) === held ? [{ text: 'begun' }, { hang: true }] : `out of ${stepIdOf(request)}`,
    )
    const { id } = await submit(plan)
    await begun(held)
    return id
  }

  it('D7.1: a queued plan is cancelled at once and never runs, and the one behind it does', async () => {
    const told = await TenantEvents.open(bench.product.url, '?types=plan.ended')
    const running = await holding('a', { steps: [step('a')] })
    const queued = await submit({ steps: [step('b'), step('c', 'b')] })
    const behind = await submit({ steps: [step('d')] })
    const plan = planOf(await cancel(queued.id))
    expect(plan).to.deep.include({ status: 'cancelled', started_at: null })
    expect(plan.step_statuses).to.deep.equal({ b: 'skipped', c: 'skipped' })
    expect(plan).not.to.have.property('step_errors')
    expect(await read(queued.id)).to.deep.equal(plan)
    const ends = [...['b', 'c'].map((id) => `step_ended ${id} skipped`), 'plan_ended cancelled']
    expect(heads(await events(queued.id))).to.deep.equal(ends)
    await cancel(running)
    expect(await ended(behind.id)).to.include({ status: 'done' })
    expect(bench.product.model.requests.map(stepIdOf)).to.deep.equal(['a', 'd'])
    expect((await told.until('plan.ended', { plan_id: queued.id })).data).to.include({ status: 'cancelled' })
    told.leave()
  })

  it('D7.1, D27.1: a running plan is cancelled through any gateway, with the run of its step, which is followed meanwhile', async () => {
    const steps = [step('a'), step('b', 'a'), step('c', 'b'), step('d', 'c')]
    for (const gateway of [0, 1]) {
      bench.product.model.requests.length = 0
      const id = await holding('b', { steps })
      const stream = await bench.product.stream(`/plans/${id}/events`)
      const { run_id: runId = '' } = (await read(id)).step_runs['b'] ?? {}
      const run = await bench.product.stream(`/runs/${runId}/events`)
      expect((await run.until('text_delta')).data).to.deep.include({ text: 'begun' })
      if (gateway === 1) await read(id) // The other gateway gets the next request.
      expect(['running', 'cancelled']).to.include(planOf(await cancel(id)).status)
      const frames = await stream.all()
      expect((await run.all()).at(-1)?.data).to.include({ code: 'cancelled' })
      await requestOf('b').closedByClient
      expect(heads(frames).slice(-4)).to.have.members([
        'step_ended b failed',
        'step_ended c skipped',
        'step_ended d skipped',
        'plan_ended cancelled',
      ])
      const plan = await read(id)
      expect(plan).to.include({ status: 'cancelled' })
      expect(plan.step_statuses).to.deep.equal({ a: 'done', b: 'failed', c: 'skipped', d: 'skipped' })
      expect(plan.step_errors?.['b']).to.include('cancelled')
      expect(plan.step_outputs).to.deep.equal({ a: 'out of a' })
      expect(bench.product.model.requests.map(stepIdOf)).to.deep.equal(['a', 'b'])
    }
  })
})
