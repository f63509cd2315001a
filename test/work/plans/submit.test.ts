import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { planRunId } from '../../../shared/kernel/ids.ts'
import { createIdempotency } from '../../../shared/platform/store/idempotency.ts'
import { NO_EVENTS } from '../../../shared/tenancy/events/port.ts'
import type { Plans } from '../../../shared/work/plans/port.ts'
import { NOTHING_SPENT } from '../../../shared/work/plans/states.ts'
import { StoredPlans } from '../../../shared/work/plans/store/plans.ts'
import { queueNothing, queuePlanWith } from '../../../shared/work/plans/submit.ts'
import { watchStore } from '../../contract/watched-store.ts'
import { tenantId } from '../../support/tenant.ts'
import { useTestStore } from '../../support/test-store.ts'
import { until } from '../../support/until.ts'
import { OTHER, refusalOf, TENANT } from '../flows/setup.ts'
import { AT, executorOf, openProcess, stepOf } from './calls-setup.ts'

const CHAIN = { steps: [stepOf('a'), stepOf('b', 'a')] }
const CALL = { subject: 'ada' }
const WAITING = { run_id: null, started_at: null, ended_at: null, ...NOTHING_SPENT }

describe('the submission of plans', () => {
  const opened = useTestStore()
  const open = (wrap?: (plans: Plans) => Plans) => openProcess(opened.store, wrap)
  /** A process whose store carries creations out, and does not say so. `taken` are the plans that were taken back. */
  const silent = (answers = Promise.resolve()) => {
    const [stored, taken]: [string[], string[]] = [[], []]
    const { calls, plans } = open((own) => ({
      ...methodsOf(own),
      async create(...given) {
        await own.create(...given)
        stored.push(given[1].plan_id)
        await answers
        throw new AppError('unavailable', 'the store did not answer')
      },
      async takeBack(...given) {
        await own.takeBack(...given)
        taken.push(given[1])
      },
    }))
    return { calls, plans, stored, taken }
  }
  let keys = 0
  const newKey = () => ({ ...CALL, idempotencyKey: `key-${++keys}` })

  describe('without a key', () => {
    it('stores the plan before it is queued, and the job holds ids only', async () => {
      const { calls, plans, jobs } = open()
      const { plan, isReplayed } = await calls.submit(TENANT, { ...CHAIN, title: 'Two', timeout_secs: 60 }, CALL)
      expect(isReplayed).to.equal(false)
      expect(plan).to.deep.equal({
        id: plan.id,
        title: 'Two',
        status: 'queued',
        steps: CHAIN.steps,
        step_statuses: { a: 'pending', b: 'pending' },
        step_runs: { a: { wave: 1, ...WAITING }, b: { wave: 2, ...WAITING } },
        usage: NOTHING_SPENT,
        timeout_secs: 60,
        created_at: AT,
        started_at: null,
        ended_at: null,
      })
      expect(plan.id).to.match(/^plan_00000000[0-9a-f]{24}$/)
      expect(jobs).to.deep.equal([{ kind: 'plan', tenant: TENANT, id: plan.id }])
      expect(await plans.get(TENANT, plan.id)).to.include({ subject: 'ada', idempotency_key: null })
    })

    it('D2.4: drops the fields of a step that are not known', async () => {
      const { calls } = open()
      const { plan } = await calls.submit(TENANT, { steps: [{ ...stepOf('a'), model: 'm' } as never] }, CALL)
      expect(plan.steps).to.deep.equal([stepOf('a')])
    })

    it('D2.4: keeps the known fields of a plan and its steps, and adds none', async () => {
      const { calls, plans } = open()
      const full = { ...stepOf('b', 'a'), title: 'Second', writes: ['b.txt'], idempotent: true }
      const steps = [stepOf('a'), full]
      const { plan } = await calls.submit(TENANT, { steps, parallel: true }, CALL)
      const stored = await plans.get(TENANT, plan.id)
      expect(stored?.steps).to.deep.equal(steps)
      expect(stored).to.include({ parallel: true, title: null, timeout_secs: null })
    })

    it('D54.7: a plan that has not begun in time has failed for whoever looks at it', async () => {
      const { calls, plans } = open()
      const { plan } = await calls.submit(TENANT, { ...CHAIN, wait_secs: 5 }, CALL)
      expect(await calls.get(TENANT, plan.id)).to.include({ status: 'queued', wait_secs: 5 })
      const created_at = new Date(Date.parse(AT) - 5_000).toISOString()
      await plans.change(TENANT, plan.id, (stored) => ({ ...stored, created_at }))
      expect(await calls.get(TENANT, plan.id)).to.include({ status: 'failed', error_code: 'no_room', ended_at: AT })
      expect(await plans.get(TENANT, plan.id)).to.include({ status: 'failed' })
    })

    it('D54.7: a list has a plan that has not begun in time as failed, in the pages of either status, too', async () => {
      const { calls, plans } = open()
      const { plan } = await calls.submit(TENANT, { ...CHAIN, wait_secs: 5 }, CALL)
      const created_at = new Date(Date.parse(AT) - 5_000).toISOString()
      await plans.change(TENANT, plan.id, (stored) => ({ ...stored, created_at }))
      const listed = async (status?: 'queued' | 'failed') => {
        const { plans: page } = await calls.list(TENANT, { status, limit: 20 })
        return page.find(({ id }) => id === plan.id)?.status
      }
      expect([await listed('queued'), await listed('failed')]).to.deep.equal([undefined, 'failed'])
    })

    it('accepts a plan that the queue cannot take at the moment: it is stored', async () => {
      const process = open()
      process.isQueueAway = true
      const { plan } = await process.calls.submit(TENANT, CHAIN, CALL)
      expect(plan.status).to.equal('queued')
      const active = await process.plans.active(undefined)
      expect(active.map(({ planId }) => planId)).to.include(plan.id)
    })

    it('D36.1: a plan that was refused because the store did not answer is not there when it carries that out', async () => {
      const { calls, plans, taken } = silent()
      expect(await refusalOf(calls.submit(TENANT, CHAIN, CALL))).to.include({ status: 503 })
      const [planId = ''] = await until(() => taken.length > 0 && taken, { what: 'the plan to be taken back' })
      expect(await plans.get(TENANT, planId)).to.equal(undefined)
      expect((await plans.active(undefined)).map((each) => each.planId)).to.not.include(planId)
    })

    it('D7.2: refuses a plan that cannot be carried out, names the field and stores nothing', async () => {
      const { calls, jobs } = open()
      const before = await calls.list(TENANT, { limit: 200 })
      const call = newKey()
      const refusal = await refusalOf(calls.submit(TENANT, { steps: [stepOf('a', 'a')] }, call))
      expect(refusal).to.include({ status: 400 })
      expect(refusal.param).to.match(/^\/steps\/0/)
      expect(await calls.list(TENANT, { limit: 200 })).to.deep.equal(before)
      expect(jobs).to.deep.equal([])
      expect((await calls.submit(TENANT, CHAIN, call)).isReplayed).to.equal(false)
    })
  })

  describe('D6.6: with an Idempotency-Key', () => {
    it('the job names the gateway that has stored its plan, for the client that comes back; that of a repetition does not', async () => {
      const expected: string[] = []
      const { calls, jobs } = openProcess(opened.store, undefined, (_tenant, runId) => {
        expected.push(runId)
        return { gateway: 5, stream: 2 }
      })
      const call = newKey()
      const { plan } = await calls.submit(TENANT, CHAIN, call)
      expect(jobs.splice(0).map(({ reader }) => reader)).to.deep.equal([{ gateway: 5, stream: 2, comesBack: true }])
      await calls.submit(TENANT, CHAIN, call)
      expect(jobs).to.deep.equal([{ kind: 'plan', tenant: TENANT, id: plan.id }])
      expect(expected).to.deep.equal([planRunId(plan.id)])
    })

    it('two processes submit one plan for one key', async () => {
      const [one, other] = [open(), open()]
      const call = newKey()
      const submitting = [one, other, one, other, one].map(({ calls }) => calls.submit(TENANT, CHAIN, call))
      const submitted = await Promise.all(submitting)
      expect(new Set(submitted.map(({ plan }) => plan.id)).size).to.equal(1)
      expect(submitted.filter(({ isReplayed }) => !isReplayed)).to.have.length(1)
      expect(new Set([...one.jobs, ...other.jobs].map(({ id }) => id)).size).to.equal(1)
    })

    it('a new key costs one write more, its first repetition one, and a repetition reads its plan', async () => {
      const { watched, operations } = watchStore(opened.store)
      const { calls } = openProcess(watched)
      const call = newKey()
      await calls.submit(TENANT, CHAIN, call)
      const first = operations.splice(0).filter((each) => each !== 'total active_plans') // It is counted once a second.
      expect(first).to.deep.equal(['insert idempotency', 'insert active_plans', 'insert plans'])
      await calls.submit(TENANT, CHAIN, call)
      const join = ['insert idempotency', 'get idempotency', 'get idempotency', 'replace idempotency', 'get plans']
      expect(operations.splice(0), 'the first repetition says that it knows of it').to.deep.equal(join)
      await calls.submit(TENANT, CHAIN, call)
      expect(operations).to.deep.equal(join.toSpliced(3, 1))
    })

    it('a repetition gets the plan as it is now', async () => {
      const { calls, plans } = open()
      const call = newKey()
      const { plan } = await calls.submit(TENANT, CHAIN, call)
      await executorOf(plans, TENANT, plan.id).begin()
      const again = await open().calls.submit(TENANT, CHAIN, call)
      expect(again).to.deep.include({ isReplayed: true })
      expect(again.plan).to.include({ id: plan.id, status: 'running' })
    })

    it('a repetition gets its plan also when the tenant has no room for another one', async () => {
      const tenant = tenantId('t_full')
      const full = (plans: Plans): Plans => ({
        ...methodsOf(plans),
        create: (...given) =>
          new StoredPlans(opened.store, { limits: { maxPlans: 1, maxBytes: Infinity } }).create(...given),
      })
      const { calls } = open(full)
      const call = newKey()
      const { plan } = await calls.submit(tenant, CHAIN, call)
      const refused = newKey()
      expect(await refusalOf(calls.submit(tenant, CHAIN, refused))).to.include({ status: 429 })
      expect(await calls.submit(tenant, CHAIN, call)).to.deep.equal({ plan, isReplayed: true })
      await calls.cancel(tenant, plan.id)
      const later = await until(() => calls.submit(tenant, CHAIN, refused).catch(() => undefined), { what: 'room' })
      expect(later.isReplayed, 'the refused request with its key').to.equal(false)
    })

    it('a repetition after the end of the plan queues nothing', async () => {
      const { calls, jobs } = open()
      const call = newKey()
      const { plan } = await calls.submit(TENANT, CHAIN, call)
      await calls.cancel(TENANT, plan.id)
      jobs.length = 0
      const again = await calls.submit(TENANT, CHAIN, call)
      expect(again.plan).to.include({ id: plan.id, status: 'cancelled' })
      expect(jobs).to.deep.equal([])
    })

    it('D36.5: of a refused plan that the store has all the same the key is joined by who was faster, and free otherwise', async () => {
      const [call, other] = [newKey(), newKey()]
      const held = Promise.withResolvers<void>()
      const { calls, stored, taken } = silent(held.promise)
      const refused = [call, other].map((each) => refusalOf(calls.submit(TENANT, CHAIN, each)))
      await until(() => stored.length === 2, { what: 'both to be stored' })
      const joined = await open().calls.submit(TENANT, CHAIN, call)
      expect(joined.isReplayed).to.equal(true)
      held.resolve()
      for (const each of refused) expect(await each).to.include({ status: 503 })
      await until(() => taken.length > 0, { what: 'the other one to be taken back' })
      expect((await open().calls.submit(TENANT, CHAIN, call)).plan).to.include({ id: joined.plan.id, status: 'queued' })
      expect((await open().calls.submit(TENANT, { steps: [stepOf('z')] }, other)).isReplayed).to.equal(false)
      expect(taken).to.not.include(joined.plan.id)
    })

    it('D36.5: a plan that is refused for its limits leaves its key to another one', async () => {
      const limits = { maxPlans: 0, maxBytes: Infinity }
      const full = open((plans) => ({
        ...methodsOf(plans),
        create: (...given) => new StoredPlans(opened.store, { limits }).create(...given),
      }))
      const call = newKey()
      expect(await refusalOf(full.calls.submit(TENANT, CHAIN, call))).to.include({ status: 429 })
      expect((await open().calls.submit(TENANT, { steps: [stepOf('z')] }, call)).isReplayed).to.equal(false)
    })

    it('another plan is 409, and another tenant may use the key', async () => {
      const { calls } = open()
      const call = newKey()
      const { plan } = await calls.submit(TENANT, CHAIN, call)
      const refusal = await refusalOf(calls.submit(TENANT, { ...CHAIN, timeout_secs: 1 }, call))
      expect(refusal).to.include({ status: 409, code: 'idempotency_mismatch' })
      const theirs = await calls.submit(OTHER, CHAIN, call)
      expect(theirs.isReplayed).to.equal(false)
      expect(theirs.plan.id).to.not.equal(plan.id)
    })

    it('takes over from a process that died after it had reserved the key, without a second plan when it goes on', async () => {
      const held = Promise.withResolvers<void>()
      const reached = Promise.withResolvers<void>()
      const slow = open((plans) => ({
        ...methodsOf(plans),
        async create(...given) {
          reached.resolve()
          await held.promise
          return plans.create(...given)
        },
      }))
      const call = newKey()
      const late = slow.calls.submit(TENANT, CHAIN, call)
      await reached.promise
      const taken = await open().calls.submit(TENANT, CHAIN, call)
      expect(taken.isReplayed).to.equal(false)
      await executorOf(slow.plans, TENANT, taken.plan.id).begin()
      held.resolve()
      const { plan, isReplayed } = await late
      expect(plan).to.include({ id: taken.plan.id, status: 'running' })
      expect(isReplayed).to.equal(true)
    })
  })

  describe('auto_queue_plan', () => {
    it('queues the plan and tells its id, or why nothing was queued', async () => {
      const { plans, jobs } = open()
      const queue = { add: async (job: (typeof jobs)[number]) => void jobs.push(job) }
      const idempotency = createIdempotency(opened.store)
      const queuePlan = queuePlanWith({ plans, queue, idempotency, events: NO_EVENTS, now: () => new Date(AT) })(TENANT)
      const queued = await queuePlan({ ...CHAIN, title: 'Two' })
      const [job] = jobs
      expect(queued).to.deep.equal({ plan_id: job?.id })
      expect(await plans.get(TENANT, job?.id ?? '')).to.include({ title: 'Two', subject: 'anonymous' })
      expect(await queuePlan({ steps: [] })).to.have.property('note')
      expect(await queueNothing()(CHAIN)).to.have.property('note')
    })

    it('a plan that finds no room is not queued, and the note says what to do', async () => {
      const limits = { maxPlans: 0, maxBytes: Infinity }
      const deps = { queue: { add: async () => {} }, idempotency: createIdempotency(opened.store) }
      const queuePlan = queuePlanWith({
        ...deps,
        plans: new StoredPlans(opened.store, { limits }),
        events: NO_EVENTS,
        now: () => new Date(AT),
      })
      const { note } = (await queuePlan(TENANT)(CHAIN)) as { note: string }
      expect(note).to.include('0 plans that wait or run').and.include('POST /plans/{id}/cancel')
    })

    it('another failure is passed on: the model may try again', async () => {
      const { plans } = open()
      const away = { ...methodsOf(plans), create: () => Promise.reject(new AppError('unavailable', 'away')) }
      const deps = { queue: { add: async () => {} }, idempotency: createIdempotency(opened.store) }
      const queuePlan = queuePlanWith({ ...deps, plans: away, events: NO_EVENTS, now: () => new Date(AT) })
      expect(await refusalOf(queuePlan(TENANT)(CHAIN))).to.include({ status: 503 })
    })
  })
})

/** The methods of an object whose class has them. */
const methodsOf = (plans: Plans): Plans => ({
  create: (...given) => plans.create(...given),
  takeBack: (...given) => plans.takeBack(...given),
  get: (...given) => plans.get(...given),
  created: (...given) => plans.created(...given),
  takeCreated: (...given) => plans.takeCreated(...given),
  isRecordedWithEnd: (...given) => plans.isRecordedWithEnd(...given),
  heads: (...given) => plans.heads(...given),
  list: (...given) => plans.list(...given),
  begin: (...given) => plans.begin(...given),
  change: (...given) => plans.change(...given),
  saveOutput: (...given) => plans.saveOutput(...given),
  outputs: (...given) => plans.outputs(...given),
  active: (...given) => plans.active(...given),
  retire: (...given) => plans.retire(...given),
})
