import { expect } from 'chai'
import fc from 'fast-check'
import { eventsBetween, eventsOf } from '../../../shared/work/plans/events-of.ts'
import type { PlanEvent, PlanRecord, Spent } from '../../../shared/work/plans/port.ts'
import { runOfStep } from '../../../shared/work/plans/states.ts'
import { beginNextSteps, endStep, finish, requestCancel, takeOver } from '../../../shared/work/plans/transitions.ts'
import { planSummary, planView } from '../../../shared/work/plans/view.ts'
import { after, anyPlan, at, begin, by, claim, DIAMOND, record, START, step } from './plan-setup.ts'

const noOutputs = new Map<string, string>()
const end = (id: string, secs: number, error?: string, spent?: Spent) => endStep(id, { ...by(7, secs), error, spent })
const NOTHING = { input_tokens: 0, output_tokens: 0, cost_usd: 0 }
const SPENT = { input_tokens: 80, output_tokens: 12, cost_usd: 0.5 }
const WAITING = { run_id: null, started_at: null, ended_at: null, ...NOTHING }
const next = (secs: number) => beginNextSteps(by(7, secs))

/** A diamond of which b fails while c goes on. */
const diamond = () =>
  after(
    record(DIAMOND, { parallel: true, title: 'Diamond', timeout_secs: 60 }),
    begin(by(7, 1)),
    next(1),
    end('a', 2),
    next(2),
    end('b', 3, 'b broke', SPENT),
    end('c', 4, undefined, SPENT),
    finish(by(7, 4)),
  )

const short = (event: PlanEvent) =>
  `${event.type}${'step_id' in event ? ` ${event.step_id}` : ''}${'status' in event ? ` ${event.status}` : ''}`

describe('a plan as the API shows it', () => {
  it('api.md Plan: a new plan has no errors, outputs, title or timeout', () => {
    const plan = record([step('a')])
    expect(planView(plan, noOutputs)).to.deep.equal({
      id: plan.plan_id,
      status: 'queued',
      steps: [step('a')],
      step_statuses: { a: 'pending' },
      step_runs: { a: { wave: 1, ...WAITING } },
      usage: NOTHING,
      created_at: START,
      started_at: null,
      ended_at: null,
    })
  })

  it('api.md Plan, D27.1: an ended plan shows the states, the runs with what they used, the errors of failed steps, the outputs of done ones, the first failure', () => {
    const plan = diamond()
    const run = (i: number) => runOfStep(plan.plan_id, plan.states[i] ?? expect.fail('no such step'))
    expect(planView(plan, new Map([['a', 'of a']]))).to.deep.equal({
      id: plan.plan_id,
      title: 'Diamond',
      status: 'failed',
      steps: DIAMOND,
      step_statuses: { a: 'done', b: 'failed', c: 'done', d: 'skipped' },
      step_errors: { b: 'b broke' },
      step_outputs: { a: 'of a', c: '' },
      step_runs: {
        a: { wave: 1, run_id: run(0), started_at: at(1), ended_at: at(2), ...NOTHING },
        b: { wave: 2, run_id: run(1), started_at: at(2), ended_at: at(3), ...SPENT },
        c: { wave: 2, run_id: run(2), started_at: at(2), ended_at: at(4), ...SPENT },
        d: { wave: 3, ...WAITING, ended_at: at(3) },
      },
      usage: { input_tokens: 160, output_tokens: 24, cost_usd: 1 },
      error: 'b broke',
      parallel: true,
      timeout_secs: 60,
      created_at: START,
      started_at: at(1),
      ended_at: at(4),
    })
  })

  it('D27.3: a plan that repeats another shows what it has taken from it, and counts only what it has used itself', () => {
    const made = record([step('a'), step('b', 'a')])
    const [a, b] = made.states
    const plan = {
      ...made,
      retry_of: 'plan_0',
      states: [
        { ...(a ?? expect.fail()), status: 'done', started_at: at(1), spent: SPENT, taken_from: 'plan_0' } as const,
        { ...(b ?? expect.fail()), status: 'done', started_at: at(2), spent: SPENT } as const,
      ],
    }
    const { usage, retry_of, step_runs: runs } = planView(plan, noOutputs)
    expect([usage, retry_of]).to.deep.equal([SPENT, 'plan_0'])
    expect(runs['a']?.taken_from).to.equal('plan_0')
    expect(runs['b']).to.not.have.property('taken_from')
    expect(runs['a']?.run_id).to.equal(runOfStep('plan_0', made.states[0] ?? expect.fail()))
    expect(planView(made, noOutputs)).to.not.have.property('retry_of')
  })

  it('a step may have any id', () => {
    const ids = ['__proto__', 'constructor', 'a.b', ' ', '1']
    const steps = ids.map((id) => step(id))
    let plan = after(record(steps), begin(by(7)))
    for (const id of ids) plan = after(plan, next(2), end(id, 3, id === ' ' ? 'broke' : undefined))
    const shown = JSON.parse(JSON.stringify(planView(plan, new Map(ids.map((id) => [id, `of ${id}`])))))
    expect(Object.keys(shown.step_statuses)).to.have.members(ids)
    expect(Object.getOwnPropertyDescriptor(shown.step_statuses, '__proto__')?.value).to.equal('done')
    expect(Object.getOwnPropertyDescriptor(shown.step_outputs, '__proto__')?.value).to.equal('of __proto__')
    expect(shown.step_errors).to.deep.equal({ ' ': 'broke' })
    expect(Object.keys(shown.step_runs)).to.have.members(ids)
  })

  it('a list shows how many steps are in each state', () => {
    const plan = diamond()
    expect(planSummary(plan)).to.deep.equal({
      id: plan.plan_id,
      title: 'Diamond',
      status: 'failed',
      error: 'b broke',
      step_counts: { pending: 0, running: 0, done: 2, failed: 1, skipped: 1 },
      usage: { input_tokens: 160, output_tokens: 24, cost_usd: 1 },
      created_at: START,
      started_at: at(1),
      ended_at: at(4),
    })
  })
})

describe('the events of a stored plan', () => {
  it('tell all that the record knows, in order', () => {
    const plan = diamond()
    const events = eventsOf(plan)
    expect(events.map(short)).to.deep.equal([
      'plan_started',
      'step_started a',
      'step_ended a done',
      'step_started b',
      'step_started c',
      'step_ended b failed',
      'step_ended d skipped',
      'step_ended c done',
      'plan_ended failed',
    ])
    expect(events[5]).to.deep.equal({
      type: 'step_ended',
      plan_id: plan.plan_id,
      step_id: 'b',
      status: 'failed',
      error: 'b broke',
      at: at(3),
    })
    expect(events.at(-1)).to.include({ error: 'b broke', at: at(4) })
  })

  it('of a plan that is queued there are none, and of one that was cancelled in the queue there is no start', () => {
    const plan = record([step('a')])
    expect(eventsOf(plan)).to.deep.equal([])
    expect(eventsOf(after(plan, requestCancel(at(1)))).map(short)).to.deep.equal([
      'step_ended a skipped',
      'plan_ended cancelled',
    ])
  })

  it('keep the order of the graph also when the clock went back, and all happened in one millisecond', () => {
    for (const secs of [(n: number) => -n, () => 1]) {
      let plan = after(record([step('c', 'b'), step('b', 'a'), step('a')]), begin(by(7, secs(0))))
      for (const [i, id] of ['a', 'b', 'c'].entries()) plan = after(plan, next(secs(2 * i)), end(id, secs(2 * i + 1)))
      const events = eventsOf(after(plan, finish(by(7, secs(9))))).map(short)
      const steps = ['a', 'b', 'c'].flatMap((id) => [`step_started ${id}`, `step_ended ${id} done`])
      expect(events).to.deep.equal(['plan_started', ...steps, 'plan_ended done'])
    }
  })

  it('begin with those of the executor before, when another has taken the plan over and repeats a step', () => {
    const steps = [step('first'), step('once', 'first'), { ...step('again', 'first'), idempotent: true }]
    const cut = after(
      record(steps, { parallel: true }),
      claim(by(7)),
      endStep('first', by(7, 2)),
      beginNextSteps(by(7, 3)),
    )
    const before = eventsOf(cut)
    expect(before.map(({ type }) => type).filter((type) => type === 'step_started')).to.have.length(3)
    const taken = after(cut, takeOver({ ...by(8, 9), from: 7 }), beginNextSteps(by(8, 10)))
    const now = eventsOf(taken)
    expect(now.slice(0, before.length)).to.deep.equal(before)
    expect(now.slice(before.length).map(({ type }) => type)).to.deep.equal(['step_ended', 'step_started'])
  })

  it('are those that its changes had', () => {
    const failing = fc.array(fc.boolean(), { minLength: 20, maxLength: 20 })
    const rule = fc.property(anyPlan(20), failing, ({ steps, parallel }, fails) => {
      let time = 1
      let plan = after(record(steps, { parallel }), begin(by(7, time)))
      const live: PlanEvent[] = eventsOf(plan)
      const change = (changed: PlanRecord) => {
        live.push(...eventsBetween(plan, changed))
        plan = changed
        time++
      }
      while (plan.ended_at === null) {
        change(after(plan, next(time)))
        const running = plan.states.find(({ status }) => status === 'running')
        const error = fails[plan.steps.findIndex(({ id }) => id === running?.id)] ? 'broke' : undefined
        change(running ? after(plan, end(running.id, time, error)) : after(plan, finish(by(7, time))))
      }
      const key = (event: PlanEvent) => `${event.at} ${short(event)}`
      expect(eventsOf(plan).map(key).sort()).to.deep.equal(live.map(key).sort())
      expect(live.map(({ at: time_ }) => time_)).to.deep.equal(live.map(({ at: time_ }) => time_).sort())
    })
    fc.assert(rule)
  })
})
