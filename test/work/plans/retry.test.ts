import { expect } from 'chai'
import type { PlanStep } from '../../../shared/kernel/plan-step.ts'
import { eventsOf } from '../../../shared/work/plans/events-of.ts'
import type { PlanRecord } from '../../../shared/work/plans/port.ts'
import { assertRepeatable, retryOf } from '../../../shared/work/plans/retry.ts'
import { beginNextSteps, endStep, finish, requestCancel } from '../../../shared/work/plans/transitions.ts'
import { after, at, by, claim, record, START, statusesOf, step } from './plan-setup.ts'

const ID = `plan_${'a'.repeat(32)}`
const retried = (plan: PlanRecord, secs = 100) => retryOf(plan, { id: ID, subject: 'ben', at: at(secs) })

/** Ends the steps in their order; those that are named fail. */
function ended(steps: PlanStep[], ...failing: string[]): PlanRecord {
  let plan = after(record(steps, { title: 'T', timeout_secs: 60 }), claim(by(7)))
  for (let secs = 2; ; secs += 2) {
    const running = plan.states.find(({ status }) => status === 'running')
    if (!running) return after(plan, finish(by(7, secs)))
    const error = failing.includes(running.id) ? 'broke' : undefined
    plan = after(plan, endStep(running.id, { ...by(7, secs), error }))
    plan = beginNextSteps(by(7, secs + 1))(plan) ?? plan
  }
}

describe('the retry of a plan (D27.2)', () => {
  it('takes over the done steps and leaves the failed and skipped ones to do', () => {
    const plan = ended([step('a'), step('b', 'a'), step('c', 'b')], 'b')
    const retry = retried(plan)
    expect(retry).to.deep.include({
      plan_id: ID,
      subject: 'ben',
      status: 'queued',
      retry_of: plan.plan_id,
      error: null,
    })
    expect(retry).to.deep.include({ title: 'T', timeout_secs: 60, steps: plan.steps, starts: 0, created_at: at(100) })
    expect(statusesOf(retry)).to.deep.equal({ a: 'done', b: 'pending', c: 'pending' })
    expect(retry.states[0]).to.deep.equal({ ...plan.states[0], taken_from: plan.plan_id })
  })

  it('of a retry names the plan that has carried a step out', () => {
    const first = ended([step('a'), step('b', 'a')], 'b')
    const second = after(
      retried(first),
      claim(by(8, 101)),
      endStep('b', { ...by(8, 102), error: 'broke' }),
      finish(by(8, 103)),
    )
    expect(retried(second, 200)).to.include({ retry_of: ID })
    expect(retried(second, 200).states[0]).to.include({ status: 'done', taken_from: first.plan_id })
  })

  it('repeats a done step with files when a repeated one depends on it, directly or over others', () => {
    const writing = (id: string, ...before: string[]) => ({ ...step(id, ...before), writes: [id] })
    const plan = ended([writing('a'), step('b', 'a'), step('c', 'b'), writing('other')], 'c')
    expect(statusesOf(plan)).to.deep.equal({ a: 'done', b: 'done', c: 'failed', other: 'done' })
    expect(statusesOf(retried(plan))).to.deep.equal({ a: 'pending', b: 'done', c: 'pending', other: 'done' })
  })

  it('repeats a step that was done more than 30 days ago', () => {
    const plan = ended([step('a'), step('b', 'a')], 'b')
    expect(statusesOf(retried(plan, 30 * 86_400))).to.deep.equal({ a: 'done', b: 'pending' })
    expect(statusesOf(retried(plan, 31 * 86_400))).to.deep.equal({ a: 'pending', b: 'pending' })
  })

  it('tells the events of its own steps only', () => {
    const retry = after(retried(ended([step('a'), step('b', 'a')], 'b')), claim(by(8, 101)))
    const events = eventsOf(retry)
    expect(events.map((event) => ('step_id' in event ? event.step_id : event.type))).to.deep.equal([
      'plan_started',
      'b',
    ])
  })

  it('is refused for a plan that has not ended, and for one that is done', () => {
    const plan = record([step('a')])
    expect(() => assertRepeatable(plan)).to.throw('is queued')
    expect(() => assertRepeatable(after(plan, claim(by(7))))).to.throw('is running')
    expect(() => assertRepeatable(ended([step('a')]))).to.throw('all steps')
    expect(() => assertRepeatable(after(plan, requestCancel(START)))).not.to.throw()
  })
})
