import { expect } from 'chai'
import { graphOf } from '../../../shared/work/plans/graph.ts'
import type { PlanRecord, PlanTransition } from '../../../shared/work/plans/port.ts'
import { retryOf } from '../../../shared/work/plans/retry.ts'
import { limitOf, nextSteps, runOfStep } from '../../../shared/work/plans/states.ts'
import {
  asBegun,
  beginNextSteps,
  beginStep,
  begunBy,
  cancelled,
  endStep,
  expire,
  finish,
  firstSteps,
  giveBack,
  giveUp,
  interrupt,
  type NewPlan,
  newPlan,
  noteAction,
  noteSpent,
  requestCancel,
  takeOver,
  timedOut,
} from '../../../shared/work/plans/transitions.ts'
import { after, at, begin, by, claim, DIAMOND, errorsOf, record, START, statusesOf, step } from './plan-setup.ts'

const idsOf = (steps: readonly { id: string }[]) => steps.map(({ id }) => id)
const done = (id: string, secs = 2) => endStep(id, by(7, secs))
const failed = (id: string, error = `${id} broke`) => endStep(id, { ...by(7, 2), error })
const running = (steps = DIAMOND, more = {}) => after(record(steps, more), begin(by(7)))
const LOST = 'executor lost, may have run'

describe('the transitions of a plan', () => {
  it('D7.1: a new plan is queued, and all its steps are pending', () => {
    const plan = newPlan({ id: 'plan_1', subject: 'anna', title: 'T', steps: [step('a')], timeout_secs: 9, at: START })
    expect(plan).to.deep.equal({
      plan_id: 'plan_1',
      subject: 'anna',
      title: 'T',
      steps: [step('a')],
      parallel: false,
      timeout_secs: 9,
      status: 'queued',
      states: [{ id: 'a', status: 'pending', error: null, started_at: null, ended_at: null }],
      error: null,
      executor: null,
      starts: 0,
      is_cancel_requested: false,
      idempotency_key: null,
      created_at: START,
      started_at: null,
      ended_at: null,
    })
  })

  it('a plan without `parallel` runs its steps one by one, the first ready one first', () => {
    const steps = [step('c', 'b'), step('a'), step('b'), step('d')]
    let plan = after(record(steps), claim(by(7)))
    const order: string[] = []
    for (let i = 0; i < steps.length; i++) {
      const started = plan.states.filter(({ status }) => status === 'running')
      expect(started).to.have.length(1)
      order.push(started[0]?.id ?? '')
      expect(nextSteps(plan)).to.deep.equal([])
      plan = after(plan, done(order[i] ?? '', i), beginNextSteps(by(7, i)))
    }
    expect(order).to.deep.equal(['a', 'b', 'c', 'd'])
    expect(nextSteps(plan)).to.deep.equal([])
    expect(after(plan, finish(by(7, 9)))).to.include({ status: 'done', error: null, ended_at: at(9), executor: 7 })
  })

  it('api.md Plan step: a wave of a parallel plan begins when the one before it is over', () => {
    const steps = [step('a'), step('b'), step('c', 'a'), step('d', 'c', 'b')]
    const plan = after(record(steps, { parallel: true }), claim(by(7)))
    expect(statusesOf(plan)).to.deep.equal({ a: 'running', b: 'running', c: 'pending', d: 'pending' })
    const half = after(plan, done('a'), beginNextSteps(by(7)))
    expect(statusesOf(half)).to.deep.equal({ a: 'done', b: 'running', c: 'pending', d: 'pending' })
    expect(beginStep('c', by(7))(half)).to.equal(undefined)
    const ready = after(record(steps, { parallel: true }), begin(by(7)))
    expect(beginStep('c', by(7))(ready), 'though others are ready').to.equal(undefined)
    const next = after(half, done('b'), beginNextSteps(by(7)))
    expect(statusesOf(next)).to.deep.equal({ a: 'done', b: 'done', c: 'running', d: 'pending' })
  })

  it('at most 8 steps of a wave run at the same time', () => {
    const steps = Array.from({ length: 20 }, (_, i) => step(`s${i}`))
    const plan = after(record(steps, { parallel: true }), claim(by(7)))
    const count = (now: PlanRecord) => now.states.filter(({ status }) => status === 'running').length
    expect(count(plan)).to.equal(8)
    expect(beginNextSteps(by(7))(plan)).to.equal(plan)
    expect(count(after(plan, done('s0'), done('s1'), beginNextSteps(by(7))))).to.equal(8)
  })

  it('api.md Plan step: a failed step skips what depends on it, directly or not, and the other branch goes on', () => {
    const steps = [step('a'), step('b', 'a'), step('c', 'a'), step('d', 'b', 'c'), step('e', 'd')]
    let plan = after(running(steps, { parallel: true }), beginNextSteps(by(7)), done('a'), beginNextSteps(by(7)))
    plan = after(plan, failed('b'))
    expect(statusesOf(plan)).to.deep.equal({ a: 'done', b: 'failed', c: 'running', d: 'skipped', e: 'skipped' })
    const skipped = 'it depends on b, which failed'
    expect(errorsOf(plan)).to.deep.equal({ b: 'b broke', d: skipped, e: skipped })
    expect(finish(by(7))(plan)).to.equal(undefined)
    plan = after(plan, failed('c', 'c broke later'), finish(by(7, 5)))
    expect(plan).to.include({ status: 'failed', error: 'b broke', ended_at: at(5) })
  })

  it('a failure skips all steps of a plan with the most dependencies in a moment', () => {
    const ids = Array.from({ length: 200 }, (_, i) => `s${i}`)
    const steps = ids.map((id, i) => step(id, ...ids.slice(0, i)))
    const plan = after(running(steps), beginNextSteps(by(7)), failed('s0'))
    expect(Object.values(statusesOf(plan)).filter((status) => status === 'skipped')).to.have.length(199)
  })

  it('an error of any length is cut', () => {
    const plan = after(running([step('a')]), beginNextSteps(by(7)), failed('a', 'x'.repeat(1e6)))
    expect(plan.error).to.have.length.below(5_000)
    expect(errorsOf(plan)['a']).to.equal(plan.error)
  })

  it('ids may be names that every object has', () => {
    const steps = [step('__proto__'), step('constructor', '__proto__'), step('a.b', 'constructor'), step('free')]
    const plan = after(running(steps), beginStep('__proto__', by(7)), failed('__proto__'))
    expect(plan.states.map(({ status }) => status)).to.deep.equal(['failed', 'skipped', 'skipped', 'pending'])
    expect(idsOf(nextSteps(plan))).to.deep.equal(['free'])
  })

  it('D7.3: another executor goes on; a step that was running has failed, and an idempotent one is run again', () => {
    const steps = [step('a'), { ...step('b', 'a'), idempotent: true }, step('c', 'a'), step('d', 'b', 'c')]
    const plan = after(
      running(steps, { parallel: true }),
      beginNextSteps(by(7)),
      done('a'),
      beginNextSteps(by(7)),
      takeOver({ ...by(8, 9), from: 7 }),
    )
    expect(plan).to.include({ status: 'running', executor: 8, starts: 2, error: LOST, started_at: at(1) })
    expect(statusesOf(plan)).to.deep.equal({ a: 'done', b: 'pending', c: 'failed', d: 'skipped' })
    expect(errorsOf(plan)).to.deep.equal({ c: LOST, d: 'it depends on c, which failed' })
    expect(idsOf(nextSteps(plan))).to.deep.equal(['b'])
    expect(plan.states[1]?.started_at).to.equal(null)
    expect(endStep('b', by(7))(plan)).to.equal(undefined)
  })

  it('D34: where actions are recorded, a cut step that has changed nothing is run again, and its next attempt begins anew', () => {
    const recording = { ...by(7), recordsActions: true }
    const begun = after(running([step('a'), step('b')], { parallel: true }), beginNextSteps(recording))
    const acted = after(begun, noteAction('a', 7))
    expect(noteAction('a', 7)(acted), 'it is recorded once').to.equal(acted)
    expect(after(acted, noteAction('b', 7)).states.map((state) => state.has_acted)).to.deep.equal([true, true])
    for (const cut of [after(acted, takeOver({ ...by(8), from: 7 })), after(acted, interrupt(by(7)))]) {
      expect(statusesOf(cut)).to.deep.equal({ a: 'failed', b: 'pending' })
      expect(cut.states[1]).to.include({ started_at: null }).and.not.have.property('has_acted')
      expect(cut.states[1]?.earlier_starts).to.have.length(1)
    }
    const again = after(acted, takeOver({ ...by(8), from: 7 }), beginNextSteps(by(8)))
    const unknown = after(again, takeOver({ ...by(9), from: 8 }))
    expect(statusesOf(unknown), 'by an executor that does not record actions').to.include({ b: 'failed' })
    for (const late of [noteAction('a', 8), noteAction('b', 7), noteAction('none', 8)])
      expect(late(again)).to.equal(undefined)
  })

  it('a plan that begins by the fields that are written alone is as if its first steps had begun one by one', () => {
    const steps = [...Array.from({ length: 9 }, (_, i) => step(`s${i}`)), step('last', 's0')]
    const plan = record(steps, { parallel: true })
    const first = firstSteps(plan)
    expect(first).to.deep.equal(Array.from({ length: 8 }, (_, i) => `s${i}`))
    const written = { ...plan, ...begunBy(by(7)) }
    const { begun_at, ...begun } = after(plan, claim({ ...by(7), recordsActions: true })) && {
      ...(asBegun(written, { at: at(1), first }) as typeof written),
    }
    expect(begun).to.deep.equal(after(plan, claim({ ...by(7), recordsActions: true })))
    expect([begun_at, asBegun({ ...written, started_at: at(0) }, { at: at(1), first }).started_at]).to.deep.equal([
      ...[at(1), at(0)],
    ])
  })

  it('D7.1: a plan whose cancel was requested is cancelled by the executor that takes it over', () => {
    const steps = [{ ...step('a'), idempotent: true }, step('b', 'a')]
    const plan = after(
      ...([running(steps), beginNextSteps(by(7)), requestCancel(at(4)), takeOver({ ...by(8, 5), from: 7 })] as const),
    )
    expect(plan).to.include({ status: 'cancelled', executor: 8, ended_at: at(5) })
    expect(statusesOf(plan)).to.deep.equal({ a: 'skipped', b: 'skipped' })
    const unsafe = after(running([step('a')]), beginNextSteps(by(7)), requestCancel(at(4)))
    const taken = after(unsafe, takeOver({ ...by(8, 5), from: 7 }))
    expect([taken.status, errorsOf(taken), taken.states[0]?.ended_at]).to.deep.equal(['cancelled', { a: LOST }, at(5)])
  })

  it('D27.1: what the attempts of a step have used is added up, for each step by itself', () => {
    const spent = { input_tokens: 10, output_tokens: 2, cost_usd: 0.5 }
    const steps = [step('a'), { ...step('b'), idempotent: true }]
    const open = after(running(steps, { parallel: true }), beginNextSteps(by(7)))
    const cut = after(open, noteSpent('b', { executor: 7, spent }), interrupt(by(7)), claim(by(8)))
    const ended = after(cut, endStep('b', { ...by(8), spent }))
    expect(ended.states.map((state) => state.spent)).to.deep.equal([
      undefined,
      { input_tokens: 20, output_tokens: 4, cost_usd: 1 },
    ])
    const unpaid = after(cut, endStep('b', by(8)))
    expect(unpaid.states.map((state) => state.spent)).to.deep.equal([undefined, spent])
  })

  it('each attempt of each step has a run of its own', () => {
    const steps = [step('a'), { ...step('b'), idempotent: true }]
    const first = after(running(steps, { parallel: true }), beginNextSteps(by(7)))
    const second = after(first, interrupt(by(7)), claim(by(8)))
    const runs = [...first.states, ...second.states.slice(1)].map((state) => runOfStep(first.plan_id, state))
    expect(new Set(runs).size).to.equal(3)
  })

  it('a plan whose executors died twice has failed', () => {
    const plan = after(
      running([{ ...step('a'), idempotent: true }, step('b', 'a')]),
      beginNextSteps(by(7)),
      takeOver({ ...by(8), from: 7 }),
      beginNextSteps(by(8)),
      takeOver({ ...by(9, 6), from: 8 }),
    )
    expect(plan).to.include({ status: 'failed', executor: 8, ended_at: at(6) })
    expect(plan.error).to.include('its executors died twice')
    expect(statusesOf(plan)).to.deep.equal({ a: 'failed', b: 'skipped' })
  })

  it('only one process takes a plan over', () => {
    const plan = after(running(), takeOver({ ...by(8), from: 7 }))
    expect(takeOver({ ...by(9), from: 7 })(plan)).to.equal(undefined)
    expect(takeOver({ ...by(9), from: 7 })(record(DIAMOND))).to.equal(undefined)
  })

  it('a plan that nobody can begin is given up', () => {
    const plan = after(record([step('a')]), giveUp({ from: null, at: at(3) }))
    expect(plan).to.include({ status: 'failed', ended_at: at(3) })
    expect(plan.error).to.include('died twice')
    expect(giveUp({ from: 7, at: at(3) })(record([step('a')]))).to.equal(undefined)
    expect(giveUp({ from: null, at: at(3) })(plan)).to.equal(undefined)
  })

  it('D7.1: a cancel ends a queued plan at once, and a running one when its executor has seen it', () => {
    const queued = after(record(DIAMOND), requestCancel(at(4)))
    expect(queued).to.include({ status: 'cancelled', error: null, ended_at: at(4), executor: null })
    expect(new Set(Object.values(statusesOf(queued)))).to.deep.equal(new Set(['skipped']))
    const asked = after(running(), beginNextSteps(by(7)), requestCancel(at(4)))
    expect(asked).to.include({ status: 'running', is_cancel_requested: true, ended_at: null })
    expect(requestCancel(at(5))(asked)).to.equal(asked)
    expect(statusesOf(after(asked, done('a'), beginNextSteps(by(7))))).to.include({ a: 'done', b: 'pending' })
    const ended = after(asked, cancelled(by(7, 5)))
    expect(ended).to.include({ status: 'cancelled', ended_at: at(5), is_cancel_requested: true })
    expect(statusesOf(ended)).to.deep.equal({ a: 'failed', b: 'skipped', c: 'skipped', d: 'skipped' })
    expect(requestCancel(at(6))(ended)).to.equal(undefined)
  })

  it('D7.1: past its timeout a plan is failed, its running steps too, the rest is skipped', () => {
    const plan = after(running(DIAMOND, { timeout_secs: 30 }), beginNextSteps(by(7)), timedOut(by(7, 31)))
    expect(plan).to.include({ status: 'failed', error: 'the plan did not end within its 30 s', ended_at: at(31) })
    expect(statusesOf(plan)).to.deep.equal({ a: 'failed', b: 'skipped', c: 'skipped', d: 'skipped' })
    const earlier = after(running([step('a'), step('b')]), beginNextSteps(by(7)), failed('a'), timedOut(by(7)))
    expect(earlier.error).to.equal('a broke')
    const half = after(running([step('a'), step('b')]), beginNextSteps(by(7)), done('a'), timedOut(by(7)))
    expect(statusesOf(half)).to.deep.equal({ a: 'done', b: 'skipped' })
  })

  it('D54.7: a plan that has not begun in time, or is past its deadline, has failed: while it is queued, and as it begins', () => {
    const queued = (more: Partial<NewPlan>) =>
      newPlan({ id: 'plan_1', subject: 'anna', steps: [step('a'), step('b')], at: at(0), ...more })
    const [waits, dated] = [queued({ wait_secs: 5, timeout_secs: 1 }), queued({ deadline_hours: 10 / 3_600 })]
    expect(dated.deadline_at).to.equal(at(10))
    expect([expire(at(4))(waits), expire(at(9))(dated), expire(at(99))(queued({ timeout_secs: 1 }))]).to.deep.equal([
      ...[undefined, undefined, undefined],
    ])
    const noRoom = after(waits, expire(at(5)))
    expect(noRoom).to.include({ status: 'failed', error_code: 'no_room', ended_at: at(5), executor: null })
    expect(statusesOf(noRoom)).to.deep.equal({ a: 'skipped', b: 'skipped' })
    expect(after(dated, expire(at(10)))).to.include({ status: 'failed', error_code: 'timeout' })
    const late = after(waits, claim(by(7, 6)), timedOut(by(7, 6)))
    expect(late).to.include({ status: 'failed', error_code: 'no_room' })
    expect(limitOf(after(waits, claim(by(7, 5)))), 'it has begun in time').to.include({
      code: 'timeout',
      atMs: Date.parse(at(6)),
    })
    const again = retryOf(after(queued({ wait_secs: 5, priority: 'normal', deadline_hours: 1 }), expire(at(5))), {
      ...{ id: 'plan_2', subject: 'anna', at: at(60) },
    })
    expect(again).to.include({ wait_secs: 5, priority: 'normal' }).and.not.have.property('deadline_at')
  })

  it('a plan is given back only without a running step, and that is no start', () => {
    const plan = after(running(), beginNextSteps(by(7)))
    expect(giveBack(by(7))(plan)).to.equal(undefined)
    const back = after(plan, done('a'), giveBack(by(7)))
    expect(back).to.include({ status: 'queued', executor: null, starts: 0, started_at: at(1) })
    const again = after(back, claim(by(8, 20)))
    expect(again).to.include({ executor: 8, starts: 1, started_at: at(1) })
    expect(statusesOf(again)).to.include({ a: 'done', b: 'running' })
    const asked = after(plan, done('a'), requestCancel(at(3)), giveBack(by(7, 4)))
    expect(asked).to.include({ status: 'cancelled', ended_at: at(4) })
  })

  it('a plan whose executor cannot wait is given back without its running steps, or ended when they were the last', () => {
    const steps = [step('a'), { ...step('b'), idempotent: true }, step('c')]
    const cut = after(running(steps, { parallel: true }), beginNextSteps(by(7)), done('c'), interrupt(by(7, 3)))
    expect(cut).to.include({ status: 'queued', executor: null })
    expect(statusesOf(cut)).to.deep.equal({ a: 'failed', b: 'pending', c: 'done' })
    expect(cut.error).to.include('shut down, may have run')
    const last = after(running([step('a')]), beginNextSteps(by(7)), interrupt(by(7, 3)))
    expect(last).to.include({ status: 'failed', ended_at: at(3) })
  })

  it('a step that is done has the output that is recorded with it, if there is one', () => {
    const open = after(running([step('a')]), beginNextSteps(by(7)))
    expect(after(open, endStep('a', { ...by(7), output: 'gold' })).states[0]).to.include({ output: 'gold' })
    expect(after(open, done('a')).states[0]).to.not.have.property('output')
  })

  it('the end of a step counts once, and only while the step runs', () => {
    const open = after(running([step('a'), step('b', 'a')]), beginNextSteps(by(7)))
    const ended = after(open, done('a'))
    for (const late of [done('a', 3), failed('a')]) expect(late(ended)).to.equal(undefined)
    for (const early of [done('b'), failed('b')]) expect(early(ended)).to.equal(undefined)
    expect(done('unknown')(open)).to.equal(undefined)
  })

  it('no transition of an executor applies to a plan that another one runs, or that is queued or over', () => {
    const open = after(running([step('a')]), beginNextSteps(by(7)))
    const over = after(open, done('a'), finish(by(7)))
    const rest = [
      done('a'),
      beginNextSteps(by(7)),
      cancelled(by(7)),
      timedOut(by(7)),
      interrupt(by(7)),
      giveBack(by(7)),
    ]
    const all: PlanTransition[] = [...rest, finish(by(7)), beginStep('a', by(7)), takeOver({ ...by(7), from: 7 })]
    for (const plan of [record([step('a')]), after(open, takeOver({ ...by(8), from: 7 })), over])
      for (const transition of all) expect(transition(plan)).to.equal(undefined)
    for (const plan of [open, over])
      for (const start of [begin(by(8)), claim(by(8))]) expect(start(plan)).to.equal(undefined)
  })

  it('the waves of a plan are computed once', () => {
    const plan = running()
    expect(graphOf(after(plan, beginNextSteps(by(7))).steps)).to.equal(graphOf(plan.steps))
  })
})
