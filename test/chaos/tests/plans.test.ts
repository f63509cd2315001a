import { expect } from 'chai'
import type { PlanView } from '../../../shared/work/plans/view.ts'
import { isKept } from '../../harness/guarantee.ts'
import { Random } from '../../harness/seed.ts'
import type { Fault } from '../scenarios/fault.ts'
import { randomPlan, readOrder, tokenOf } from '../scenarios/plans/form.ts'
import { cutSteps, planGuarantees, stallsBefore } from '../scenarios/plans/judge.ts'
import { changesBetween, type SeenPlan } from '../scenarios/plans/load.ts'

const SECS = (secs: number) => new Date(secs * 1_000).toISOString()
const LOST = 'executor lost, may have run'
const HIT: Fault = { from: 2_000, until: 2_000 }
/** The row that a load without cut plans has nothing to say about. */
const QUIET = 'from a fault to the end of the plans that it hit'

/** Two steps, the second behind the first and idempotent. */
const PLAN = {
  steps: [
    { id: 'a', prompt: '' },
    { id: 'b', prompt: '', depends_on: ['a'], idempotent: true },
  ],
}

const view = (fields: Partial<PlanView> = {}): PlanView => ({
  ...{ id: 'plan_1', status: 'done', steps: PLAN.steps, step_statuses: { a: 'done', b: 'done' } },
  ...{ step_runs: {}, usage: { input_tokens: 0, output_tokens: 0, cost_usd: 0 } },
  ...{ step_outputs: { a: 'p-a', b: 'p-b' }, created_at: SECS(1), started_at: SECS(1), ended_at: SECS(3) },
  ...fields,
})
const seen = (fields: Partial<PlanView> = {}): SeenPlan => {
  const { ended_at: endedAt, ...rest } = view(fields)
  const to = endedAt === null ? {} : { to: Date.parse(endedAt) }
  return { name: 'p', plan: PLAN, view: { ...rest, ended_at: endedAt }, problems: [], from: 1_000, ...to }
}

const FAILED = { status: 'failed', error: LOST, step_errors: { a: LOST } } as const
const CUT = { ...FAILED, step_statuses: { a: 'failed', b: 'skipped' } } as const

type Sent = { a?: number[]; b?: number[] }
type Seen = { plan?: SeenPlan; starts?: Sent; answers?: Sent; writes?: number[]; faults?: Fault[]; refusals?: string[] }

/** The titles of the broken rows. Without other numbers each step ran once, one after the other. */
function brokenBy({ plan = seen(), starts, answers, writes = [], faults = [], refusals = [] }: Seen): string[] {
  const of = (sent: Sent, token: string) => sent[token.slice(2) as keyof Sent] ?? []
  const model = {
    startsOf: (token: string) => of({ a: [1_100], b: [1_300], ...starts }, token),
    answersOf: (token: string) => of({ a: [1_200], b: [1_400], ...answers }, token),
    writesOf: (token: string) => (token === 'p-a' ? writes : []),
    refusedTools: [],
  }
  const guarantees = planGuarantees({ load: { plans: [plan], refusals }, model, faults }, 1)
  const broken = guarantees.filter((each) => !isKept(each) && each.title !== QUIET)
  const titles = broken.map(({ title }) => title.replace(/ of \d+/, ''))
  return titles.filter((title) => title !== 'steps cut off at random points')
}

describe('the judgement of plans under faults', () => {
  it('accepts plans that are done, and plans that a fault has cut off', () => {
    expect(brokenBy({})).to.deep.equal([])
    expect(brokenBy({ plan: seen(CUT), starts: { b: [] }, answers: { a: [], b: [] }, faults: [HIT] })).to.deep.equal([])
    expect(brokenBy({ starts: { b: [1_300, 2_500] }, faults: [HIT] })).to.deep.equal([])
  })

  it('finds a step that was executed twice', () => {
    const rows = ['steps that were executed too often']
    expect(brokenBy({ starts: { a: [1_100, 1_150] } })).to.deep.equal(rows)
    expect(brokenBy({ starts: { a: [1_100, 1_150] }, faults: [HIT] }), 'it had changed nothing').to.deep.equal([])
    expect(brokenBy({ starts: { a: [1_100, 1_150] }, writes: [1_120], faults: [HIT] })).to.deep.equal(rows)
    expect(brokenBy({ starts: { a: [1_100, 1_150] }, writes: [1_170], faults: [HIT] })).to.deep.equal([])
    const freeze = { from: 1_050, until: 9_000 }
    expect(brokenBy({ starts: { a: [1_100, 9_100] }, writes: [1_120], faults: [freeze] }), 'belated').to.deep.equal([])
    expect(brokenBy({ starts: { a: [1_100, 7_900] }, writes: [1_120], faults: [freeze] })).to.deep.equal(rows)
    expect(brokenBy({ starts: { b: [1_300, 1_350] } })).to.deep.equal(rows)
    expect(brokenBy({ starts: { b: [1_300, 1_350, 1_360] }, faults: [HIT, HIT, HIT] })).to.deep.equal(rows)
    const before = { from: 100, until: 100 }
    expect(brokenBy({ starts: { b: [1_300, 1_350] }, faults: [before] })).to.deep.equal([])
    expect(brokenBy({ starts: { b: [1_300, 1_350] }, faults: [{ from: -500, until: -400 }] })).to.deep.equal(rows)
  })

  it('finds a tool call that was made twice', () => {
    expect(brokenBy({ writes: [1_150] })).to.deep.equal([])
    expect(brokenBy({ writes: [1_150, 1_160], faults: [HIT] })).to.deep.equal(['tool calls that were made twice'])
  })

  it('finds a plan that has not ended, and one that took too long', () => {
    const rows = ['plans that did not end']
    expect(brokenBy({ plan: seen({ status: 'running', ended_at: null }) })).to.deep.equal(rows)
    expect(brokenBy({ plan: { ...seen(), view: undefined } })).to.deep.equal(rows)
    const load = { plans: [seen({ ...CUT, ended_at: SECS(33) })], refusals: [] }
    const model = { startsOf: () => [], answersOf: () => [], writesOf: () => [], refusedTools: [] }
    const slow = planGuarantees({ load, model, faults: [HIT] }, 1).find(({ title }) => title === QUIET)
    expect(slow).to.include({ value: 31_000 })
    expect(slow && isKept(slow)).to.equal(false)
  })

  it('finds an end that does not explain itself', () => {
    const rows = ['plans whose end is not consistent']
    const ended = (fields: Partial<PlanView>) => brokenBy({ plan: seen(fields), faults: [HIT] })
    expect(ended({ ...CUT, step_statuses: { a: 'failed', b: 'pending' } })).to.deep.equal(rows)
    expect(ended({ ...CUT, step_statuses: { a: 'done', b: 'skipped' } })).to.deep.equal(rows)
    expect(ended({ ...CUT, step_statuses: { a: 'failed', b: 'done' } })).to.deep.equal(rows)
    expect(ended({ ...CUT, step_errors: { a: 'broke' } })).to.deep.equal(rows)
    expect(ended({ ...CUT, error: 'broke' })).to.deep.equal(rows)
    expect(ended({ error: LOST })).to.deep.equal(rows)
    expect(ended({ status: 'cancelled' })).to.deep.equal(rows)
    expect(ended({ step_outputs: { a: 'p-a', b: 'p-a' } })).to.deep.equal(rows)
    expect(brokenBy({ answers: { b: [] } })).to.deep.equal(rows)
  })

  it('accepts a plan that was given up only after two faults', () => {
    const plan = seen({ ...FAILED, step_errors: {}, error: 'its executors died twice: …', step_statuses: SKIPPED })
    const starts = { a: [], b: [] }
    expect(brokenBy({ plan, starts, faults: [HIT, HIT] })).to.deep.equal([])
    expect(brokenBy({ plan, starts, faults: [HIT] })).to.deep.equal(['plans whose end is not consistent'])
  })

  it('finds a failure without a fault, a step that came too early, and a refused submit', () => {
    expect(brokenBy({ plan: seen(CUT), starts: { b: [] } })).to.deep.equal([
      'plans that failed although nothing had happened to them',
    ])
    expect(brokenBy({ starts: { b: [1_150] } })).to.deep.equal([
      'steps that began before a step that they depend on was done',
    ])
    expect(brokenBy({ refusals: ['p: 500'] })).to.deep.equal(['submits that a running gateway refused'])
  })

  it('takes an eviction for a stall of the machine, unless a freeze explains it', () => {
    const [kill, freeze] = [
      { from: 10_000, until: 10_000 },
      { from: 40_000, until: 46_000 },
    ]
    expect(stallsBefore(12_000, [kill])).to.deep.equal([{ from: -3_000, until: 12_000 }])
    expect(stallsBefore(47_000, [kill, freeze])).to.deep.equal([])
    expect(stallsBefore(47_000, [kill, { ...freeze, until: Infinity }])).to.deep.equal([])
    expect(stallsBefore(39_000, [freeze]), 'before it').to.have.length(1)
    expect(stallsBefore(62_000, [freeze]), 'long after it').to.have.length(1)
  })

  it('counts the steps that were cut off: failed as lost, or executed again', () => {
    const model = { startsOf: (token: string) => (token === 'p-b' ? [1, 2] : [1]) } as never
    expect(cutSteps({ load: { plans: [seen()], refusals: [] }, model })).to.equal(1)
    expect(cutSteps({ load: { plans: [seen(CUT)], refusals: [] }, model })).to.equal(2)
  })
})

const SKIPPED = { a: 'skipped', b: 'skipped' } as const

describe('a client that watches a plan', () => {
  const from = (a: PlanView['step_statuses'][string], b = a) => seen({ step_statuses: { a, b } })
  const to = (a: PlanView['step_statuses'][string], b = a) => view({ step_statuses: { a, b } })

  it('accepts steps that go on, and one that was cut off and begins again', () => {
    expect(changesBetween(from('pending'), to('running', 'skipped'))).to.deep.equal([])
    expect(changesBetween(from('running'), to('failed', 'pending'))).to.deep.equal([])
  })

  it('finds a step that changes after its end, and another plan', () => {
    expect(changesBetween(from('done'), to('running', 'done'))).to.deep.equal(['p a: done became running'])
    expect(changesBetween(seen(), view({ id: 'plan_2' }))).to.deep.equal(['p: plan_1 became plan_2'])
  })
})

describe('the plans of the attack', () => {
  it('are the same for the same seed, and each step carries its order', () => {
    const plan = randomPlan('p', new Random(7))
    expect(randomPlan('p', new Random(7))).to.deep.equal(plan)
    for (const { id, prompt } of plan.steps)
      expect(readOrder(`${prompt}\n\n<step_output>`)).to.include({ token: tokenOf('p', id) })
  })
})
