import { expect } from 'chai'
import { PlanJobs, type PlanJobsDeps } from '../../services/executor/plan-jobs.ts'
import type { RunReader } from '../../shared/cluster/commands/runs.ts'
import { planRunId } from '../../shared/kernel/ids.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { storeUnavailable } from '../../shared/platform/store/unavailable.ts'
import { NO_EVENTS } from '../../shared/tenancy/events/port.ts'
import type { PlanRecord, Plans } from '../../shared/work/plans/port.ts'
import { reconcilePlans } from '../../shared/work/plans/reconcile.ts'
import type { StepResult } from '../../shared/work/plans/step-runs.ts'
import { StoredPlans } from '../../shared/work/plans/store/plans.ts'
import { noteAction, requestCancel } from '../../shared/work/plans/transitions.ts'
import type { Job } from '../../shared/work/queue/port.ts'
import { Runs } from '../../shared/work/runs/runs.ts'
import { watchStore } from '../contract/watched-store.ts'
import { aroundStore } from '../support/around-store.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { useTestStore } from '../support/test-store.ts'
import { until } from '../support/until.ts'
import { TENANT } from '../work/plans/execute-setup.ts'
import { after, claim, DIAMOND, record, statusesOf, step } from '../work/plans/plan-setup.ts'
import { losingFirstClaim } from './lost-claim.ts'

const EPOCH = 7
const READER = { gateway: 3, stream: 8, comesBack: true }

describe('the jobs that execute plans', () => {
  const opened = useTestStore()
  let plans: Plans
  before(() => {
    plans = new StoredPlans(opened.store)
  })

  /** An executor whose steps end as `result` says; `ran` holds the ids of those that it has started. */
  function createExecutor(
    changes: Partial<PlanJobsDeps> = {},
    result: (id: string) => StepResult = (id) => ({ output: `output of ${id}` }),
  ) {
    const ran: string[] = []
    const announced: [id: string, reader: RunReader | undefined][] = []
    const removed: string[] = []
    const left: string[] = []
    const drain = new AbortController()
    const runs = new Runs(
      { maxLive: 10, resumeMs: 60_000, maxJournalBytes: 1_000_000 },
      { onBug: () => {}, onEvent: () => {}, onForgotten: () => {} },
    )
    const jobs = new PlanJobs({
      runs,
      plans,
      events: NO_EVENTS,
      stepsOf: () => async (each) => {
        ran.push(each.id)
        return result(each.id)
      },
      removeFolder: async (_tenant, planId) => void removed.push(planId),
      leaveFolder: (_tenant, planId) => void left.push(planId),
      executors: { isAlive: async (epoch) => epoch === EPOCH },
      epoch: () => EPOCH,
      isHeld: () => true,
      announce: ({ id }, reader) => announced.push([id, reader]),
      draining: drain.signal,
      metrics: NO_METRICS,
      log: SILENT_LOG,
      ...changes,
    })
    const handle = ({ plan_id: id }: PlanRecord, giveWay?: AbortSignal) =>
      jobs.handle({ kind: 'plan', tenant: TENANT, id, reader: READER }, giveWay)
    const eventsOf = ({ plan_id: id }: PlanRecord) => {
      const text = runs.get(TENANT, planRunId(id)).follow(0).take()?.text.toString() ?? ''
      return Array.from(text.matchAll(/^event: (\w+)$/gm), ([, type]) => type)
    }
    return { jobs, handle, eventsOf, ran, announced, removed, left, drain, runs }
  }

  async function submit(steps = DIAMOND): Promise<PlanRecord> {
    const plan = record(steps)
    await plans.create(TENANT, plan)
    return plan
  }
  const read = async ({ plan_id: id }: PlanRecord) => {
    const plan = await plans.get(TENANT, id)
    if (!plan) throw new Error('the plan is gone')
    return plan
  }

  it('D7.1: end a plan whose cancel came before its executor was replaced by itself under another epoch', async () => {
    let own = EPOCH
    let isHeld = true
    const ended = Promise.withResolvers<StepResult>()
    const { handle, ran, runs } = createExecutor({
      stepsOf: () => async (each, _outputs, signal) => {
        ran.push(each.id)
        signal.addEventListener('abort', () => ended.resolve({ error: 'aborted' }))
        return ended.promise
      },
      epoch: () => own,
      isHeld: () => isHeld,
      executors: { isAlive: async (epoch) => epoch === own },
    })
    const plan = await submit()
    const handled = handle(plan)
    await until(() => ran.length > 0, { what: 'the first step to begin' })
    isHeld = false
    await plans.change(TENANT, plan.plan_id, requestCancel(new Date().toISOString()))
    runs.get(TENANT, planRunId(plan.plan_id)).cancel('cancelled')
    await ended.promise
    own = EPOCH + 1
    runs.get(TENANT, planRunId(plan.plan_id)).cancel('worker_lost')
    isHeld = true
    await handled
    expect(await read(plan)).to.include({ status: 'cancelled' })
  })

  it('begin a plan once more whose claim the database has lost with a member, and let no step act before', async () => {
    const acted: string[] = []
    const { losing } = losingFirstClaim(plans, async (id) => {
      const queued = await plans.get(TENANT, id)
      return queued && after(queued, claim({ executor: EPOCH, at: queued.created_at, recordsActions: true }))
    })
    const { handle, ran } = createExecutor({
      plans: losing,
      stepsOf: () => async (each) => {
        ran.push(each.id)
        await each.beforeAction()
        acted.push(each.id)
        return { output: '' }
      },
    })
    const plan = await submit([step('a')])
    await handle(plan)
    expect([ran, acted]).to.deep.equal([['a', 'a'], ['a']])
    expect(await read(plan)).to.include({ status: 'done', executor: EPOCH, starts: 1 })
  })

  it('D7.3: record nothing under an epoch that the executor has lost: under its new one a step that has acted has failed', async () => {
    let own = EPOCH
    const ended = Promise.withResolvers<StepResult>()
    const { handle, ran } = createExecutor({
      stepsOf: () => async (each) => {
        await each.beforeAction()
        ran.push(each.id)
        return ended.promise
      },
      epoch: () => own,
      executors: { isAlive: async (epoch) => epoch === own },
    })
    const plan = await submit()
    const handled = handle(plan)
    await until(() => ran.length > 0, { what: 'the first step to begin' })
    own = EPOCH + 1
    ended.resolve({ output: '' })
    await handled
    const { status, executor, states } = await read(plan)
    expect({ status, executor }).to.deep.equal({ status: 'failed', executor: own })
    expect(states[0]).to.include({ status: 'failed', error: 'executor lost, may have run' })
    expect(ran).to.deep.equal(['a'])
  })

  it('claim the plan, run its steps in their order, and end with it', async () => {
    const { handle, ran, announced, removed, eventsOf } = createExecutor()
    const plan = await submit()
    expect(await handle(plan)).to.equal(undefined)
    expect(ran).to.deep.equal(['a', 'b', 'c', 'd'])
    expect(await read(plan)).to.include({ status: 'done', executor: EPOCH, starts: 1 })
    expect(announced).to.deep.equal([[planRunId(plan.plan_id), READER]])
    expect(removed).to.deep.equal([plan.plan_id])
    expect(eventsOf(plan).at(0)).to.equal('plan_started')
    expect(eventsOf(plan).at(-1)).to.equal('plan_ended')
  })

  it('carry out a plan of n short steps with n + 1 commands of the store, and read nothing', async () => {
    const { watched, operations } = watchStore(opened.store)
    const { jobs, ran } = createExecutor({ plans: new StoredPlans(watched) })
    const { plan_id: id } = await submit()
    await jobs.handle({ kind: 'plan', tenant: TENANT, id })
    expect(ran).to.deep.equal(['a', 'b', 'c', 'd'])
    const ofPlan = operations.filter((each) => each !== 'deleteMany active_plans') // It comes behind, for several plans.
    expect(ofPlan).to.deep.equal(['update plans', ...Array.from({ length: 4 }, () => 'replace plans')])
  })

  it('go on with a plan that this process has begun without getting the answer of the store', async () => {
    let isLost = false
    const losing = aroundStore(opened.store, async (method, act) => {
      const done = await act()
      if (method !== 'update' || isLost) return done
      isLost = true
      throw storeUnavailable('the answer is lost')
    })
    const { jobs, ran } = createExecutor({ plans: new StoredPlans(losing) })
    const plan = await submit()
    await jobs.handle({ kind: 'plan', tenant: TENANT, id: plan.plan_id })
    expect(ran).to.deep.equal(['a', 'b', 'c', 'd'])
    expect(await read(plan)).to.include({ status: 'done', executor: EPOCH, starts: 2 })
  })

  it('list a failed plan as failed, without any text of the tenant', async () => {
    const { handle } = createExecutor({}, (id) => (id === 'c' ? { error: 'the text of a tenant' } : { output: '' }))
    const plan = await submit()
    expect(await handle(plan)).to.deep.equal({ failed: `${plan.plan_id} failed: step 3` })
    expect(statusesOf(await read(plan))).to.deep.equal({ a: 'done', b: 'done', c: 'failed', d: 'skipped' })
  })

  it('go on with the plan of a dead executor: done steps stay done, and a step that was running has failed', async () => {
    const { handle, ran } = createExecutor()
    const plan = await submit([step('a'), step('b')])
    await plans.change(TENANT, plan.plan_id, claim({ executor: 3, at: plan.created_at }))
    await handle(plan)
    expect(ran).to.deep.equal(['b'])
    const ended = await read(plan)
    expect(statusesOf(ended)).to.deep.equal({ a: 'failed', b: 'done' })
    expect(ended.states[0]?.error).to.equal('executor lost, may have run')
  })

  it('run again a step of a dead executor that has changed nothing, and none that was about to', async () => {
    const { handle, ran } = createExecutor()
    const plan = await submit([step('a'), step('b')])
    const { plan_id: id } = plan
    const dead = { executor: 3, at: plan.created_at, recordsActions: true }
    await plans.change(TENANT, id, claim(dead))
    await handle(plan)
    expect(ran).to.deep.equal(['a', 'b'])
    expect(statusesOf(await read(plan))).to.deep.equal({ a: 'done', b: 'done' })
    const acting = await submit([step('c'), step('d')])
    await plans.change(TENANT, acting.plan_id, claim(dead))
    await plans.change(TENANT, acting.plan_id, noteAction('c', 3))
    await handle(acting)
    expect(ran).to.deep.equal(['a', 'b', 'd'])
    expect(statusesOf(await read(acting))).to.deep.equal({ c: 'failed', d: 'done' })
  })

  it('leave the plan of a living executor to it, and wait for its end', async () => {
    const gate = Promise.withResolvers<StepResult>()
    const slow = createExecutor({ stepsOf: () => () => gate.promise })
    const asked: number[] = []
    const isAlive = async (epoch: number) => asked.push(epoch) > 0
    const other = createExecutor({ epoch: () => 8, executors: { isAlive } })
    const plan = await submit([step('a')])
    const first = slow.handle(plan)
    await until(async () => (await read(plan)).executor === EPOCH, { what: 'the plan to be claimed' })
    const second = other.handle(plan).then(() => 'over')
    await until(() => asked.length > 0, { what: 'the other executor to look at the plan' })
    gate.resolve({ output: 'x' })
    await first
    expect(await second).to.equal('over')
    expect(asked).to.include(EPOCH)
    expect(other.ran).to.deep.equal([])
    expect(await read(plan)).to.include({ status: 'done', executor: EPOCH, starts: 1 })
  })

  it('cancel the plan when its run is cancelled', async () => {
    const { handle, runs } = createExecutor({
      stepsOf: () => (_step, _outputs, signal) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve({ error: 'aborted' }))),
    })
    const plan = await submit([step('a'), step('b', 'a')])
    const handled = handle(plan)
    await until(() => runs.live.size === 1, { what: 'the run to begin' })
    for (const run of runs.live) run.cancel('cancelled')
    expect(await handled).to.equal(undefined)
    expect(await read(plan)).to.include({ status: 'cancelled' })
  })

  it('give the plan back when the process drains, after the step that runs', async () => {
    const gate = Promise.withResolvers<StepResult>()
    const { handle, drain, eventsOf, left } = createExecutor({ stepsOf: () => () => gate.promise })
    const plan = await submit([step('a'), step('b', 'a')])
    const handled = handle(plan)
    await until(async () => (await read(plan)).executor === EPOCH, { what: 'the plan to be claimed' })
    drain.abort()
    gate.resolve({ output: 'x' })
    expect(await handled).to.deep.equal({ again: true })
    const given = await read(plan)
    expect(given).to.include({ status: 'queued', executor: null, starts: 0 })
    expect(statusesOf(given)).to.deep.equal({ a: 'done', b: 'pending' })
    expect(eventsOf(plan).at(-1)).to.equal('error')
    expect(left, 'the folder, too').to.deep.equal([plan.plan_id])
  })

  it('give the plan back that is asked to give way, after the step that runs, and go on with it later', async () => {
    const gates = { a: Promise.withResolvers<StepResult>(), b: Promise.withResolvers<StepResult>() }
    const { handle, ran, runs, eventsOf, announced } = createExecutor({
      stepsOf: () => (each) => {
        ran.push(each.id)
        return gates[each.id as 'a' | 'b'].promise
      },
    })
    const giveWay = new AbortController()
    const plan = await submit([step('a'), step('b', 'a')])
    const first = handle(plan, giveWay.signal)
    await until(() => ran.length > 0, { what: 'the first step to run' })
    giveWay.abort()
    gates.a.resolve({ output: 'x' })
    expect(await first).to.deep.equal({ again: true })
    expect(await read(plan)).to.include({ status: 'queued', executor: null })
    expect(await handle(plan, giveWay.signal)).to.deep.equal({ again: true }) // It is not begun only to be given back.
    const second = handle(plan)
    await until(() => ran.length > 1, { what: 'the second step to run' })
    expect(ran).to.deep.equal(['a', 'b'])
    expect(runs.live.size).to.equal(1)
    gates.b.resolve({ output: 'y' })
    expect(await second).to.equal(undefined)
    expect(await read(plan)).to.include({ status: 'done', starts: 1 })
    expect(eventsOf(plan).at(-1)).to.equal('plan_ended')
    expect(announced.map(([, reader]) => reader)).to.deep.equal([READER, undefined]) // Its stream has broken: its client looks for it.
  })

  it('fail a plan whose executors have died each time', async () => {
    const { jobs } = createExecutor()
    const plan = await submit([step('a')])
    await plans.change(TENANT, plan.plan_id, claim({ executor: 3, at: plan.created_at }))
    const end = await jobs.givenUp({ kind: 'plan', tenant: TENANT, id: plan.plan_id })
    expect(end).to.deep.equal({ failed: `${plan.plan_id} failed: step 1` })
    expect((await read(plan)).error).to.contain('died twice')
  })

  it('are added again for plans that have lost their job and that no living executor has', async () => {
    const waiting = await submit([step('a')])
    const queued = await submit([step('a')])
    const lost = await submit([step('a')])
    const running = await submit([step('a')])
    await plans.change(TENANT, lost.plan_id, claim({ executor: 3, at: lost.created_at }))
    await plans.change(TENANT, running.plan_id, claim({ executor: EPOCH, at: running.created_at }))
    const added: Job[] = []
    const looked: string[] = []
    await reconcilePlans({
      plans: {
        active: (position) => plans.active(position),
        get: (tenant, id) => (looked.push(id), plans.get(tenant, id)),
        retire: (tenant, id) => plans.retire(tenant, id),
      },
      queue: {
        add: async (job) => void added.push(job),
        missing: async (_kind, ids) => ids.filter((id) => id !== waiting.plan_id),
      },
      isAlive: async (epoch) => epoch === EPOCH,
    })
    expect(added.map(({ id }) => id)).to.include.members([queued.plan_id, lost.plan_id])
    for (const { plan_id: id } of [running, waiting]) expect(added.map((job) => job.id)).to.not.include(id)
    expect(looked).to.include(queued.plan_id).and.not.include(waiting.plan_id)
  })
})
