import { expect } from 'chai'
import fc from 'fast-check'
import { graphOf } from '../../../shared/work/plans/graph.ts'
import type { PlanRecord, PlanTransition } from '../../../shared/work/plans/port.ts'
import {
  beginNextSteps,
  cancelled,
  endStep,
  finish,
  giveBack,
  interrupt,
  requestCancel,
  takeOver,
  timedOut,
} from '../../../shared/work/plans/transitions.ts'
import { anyPlan, at, by, claim, record } from './plan-setup.ts'

type Event = { kind: 'done' | 'failed' | 'death' | 'drain' | 'cut' | 'cancel' | 'see cancel' | 'timeout'; pick: number }

const anyEvent: fc.Arbitrary<Event> = fc.record({
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('done' as const) },
    { weight: 2, arbitrary: fc.constant('failed' as const) },
    { weight: 1, arbitrary: fc.constantFrom('death', 'drain', 'cut', 'cancel', 'see cancel', 'timeout') },
  ),
  pick: fc.nat(),
})

const runningIn = ({ states }: PlanRecord) => states.filter(({ status }) => status === 'running').map(({ id }) => id)

/** A plan, the executors that run it one after the other, and how often each step was started. */
class Life {
  plan: PlanRecord
  executor = 1
  readonly starts = new Map<string, number>()
  readonly #idempotent: ReadonlySet<string>

  constructor(plan: PlanRecord) {
    this.plan = plan
    this.#idempotent = new Set(plan.steps.filter(({ idempotent }) => idempotent).map(({ id }) => id))
  }

  get isOver(): boolean {
    return this.plan.ended_at !== null
  }

  happen({ kind, pick }: Event): void {
    const running = runningIn(this.plan)
    const id = running[pick % running.length]
    const { executor } = this
    if (kind === 'done' && id !== undefined) this.#apply(endStep(id, by(executor)))
    if (kind === 'failed' && id !== undefined) this.#apply(endStep(id, { ...by(executor), error: `${id} broke` }))
    if (kind === 'death') this.#apply(takeOver({ ...by(++this.executor), from: executor }))
    if (kind === 'drain') this.#apply(giveBack(by(executor)))
    if (kind === 'cut') this.#apply(interrupt(by(executor)))
    if (kind === 'cancel') this.#apply(requestCancel(at(1)))
    if (kind === 'see cancel' && this.plan.is_cancel_requested) this.#apply(cancelled(by(executor)))
    if (kind === 'timeout') this.#apply(timedOut(by(executor)))
    this.goOn()
  }

  /** Does what an executor does after each event. */
  goOn(): void {
    this.#apply(claim(by(this.executor)))
    this.#apply(beginNextSteps(by(this.executor)))
    this.#apply(finish(by(this.executor)))
  }

  #apply(transition: PlanTransition): void {
    const before = this.plan
    const next = transition(before)
    if (!next) return
    expect(before.ended_at, 'a plan that is over never changes').to.equal(null)
    this.plan = next
    for (const [i, state] of next.states.entries()) {
      const earlier = before.states[i]?.status
      if (earlier === state.status) continue
      expect(['pending', 'running'], `${state.id} was ${earlier}`).to.include(earlier)
      if (state.status === 'running') this.#started(state.id)
      if (state.status === 'pending') expect(this.#idempotent.has(state.id), 'only an idempotent step').to.equal(true)
    }
    this.#check()
  }

  #started(id: string): void {
    const count = (this.starts.get(id) ?? 0) + 1
    this.starts.set(id, count)
    if (!this.#idempotent.has(id)) expect(count, `starts of ${id}`).to.equal(1)
    const statusOf = new Map(this.plan.states.map((state) => [state.id, state.status]))
    for (const other of this.plan.steps.find((each) => each.id === id)?.depends_on ?? [])
      expect(statusOf.get(other), `${other} before ${id}`).to.equal('done')
  }

  #check(): void {
    const { plan } = this
    const { waveOf, dependents } = graphOf(plan.steps)
    const running = runningIn(plan)
    if (plan.status !== 'running') expect(running).to.deep.equal([])
    if (!plan.parallel) expect(running.length).to.be.at.most(1)
    expect(running.length).to.be.at.most(8)
    expect(new Set(running.map((id) => waveOf.get(id))).size, 'waves at a time').to.be.at.most(1)
    const statusOf = new Map(plan.states.map(({ id, status }) => [id, status]))
    for (const { id, status } of plan.states) {
      if (status === 'pending') expect(plan.ended_at).to.equal(null)
      if (status === 'failed' || status === 'skipped')
        for (const other of dependents.get(id) ?? [])
          expect(statusOf.get(other), `${other} after ${id}`).to.equal('skipped')
    }
    if (plan.status === 'done') expect(new Set(statusOf.values())).to.deep.equal(new Set(['done']))
    if (plan.status === 'failed') expect(plan.error).to.be.a('string')
  }
}

describe('the life of a plan', () => {
  it('D7.3: whatever happens, steps keep their order, no step runs twice unless it may, and every plan ends', () => {
    const ends = new Map<string, number>()
    fc.assert(
      fc.property(anyPlan(24), fc.array(anyEvent, { maxLength: 60 }), ({ steps, parallel }, events) => {
        const life = new Life(record(steps, { parallel }))
        life.goOn()
        for (const event of events) life.happen(event)
        life.happen({ kind: 'see cancel', pick: 0 })
        for (let i = 0; i < 2 * steps.length && !life.isOver; i++) life.happen({ kind: 'done', pick: 0 })
        expect(life.isOver).to.equal(true)
        ends.set(life.plan.status, (ends.get(life.plan.status) ?? 0) + 1)
      }),
      { numRuns: 400 },
    )
    expect([...ends.keys()].sort()).to.deep.equal(['cancelled', 'done', 'failed'])
  })

  it('without failures every step runs once, and the plan is done', () => {
    fc.assert(
      fc.property(anyPlan(24), fc.array(fc.nat(), { minLength: 24, maxLength: 24 }), ({ steps, parallel }, picks) => {
        const life = new Life(record(steps, { parallel }))
        life.goOn()
        for (const pick of picks.slice(0, steps.length)) life.happen({ kind: 'done', pick })
        expect(life.plan.status).to.equal('done')
        expect([...life.starts.values()]).to.deep.equal(steps.map(() => 1))
      }),
    )
  })
})
