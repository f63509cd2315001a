import { expect } from 'chai'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { newId, planRunId } from '../../../shared/kernel/ids.ts'
import { useTestStore } from '../../support/test-store.ts'
import { FedStream } from '../flows/calls/fed-stream.ts'
import { OTHER, refusalOf, TENANT } from '../flows/setup.ts'
import { AT, executorOf, headsOf, openProcess, readAll, stepOf } from './calls-setup.ts'

const CHAIN = { steps: [stepOf('a'), stepOf('b', 'a')] }
const CALL = { subject: 'ada' }

describe('the calls of the plan queue', () => {
  const opened = useTestStore()
  const open = () => openProcess(opened.store)

  describe('get and list', () => {
    it('api.md Plan: shows statuses, errors and outputs of the steps by id, __proto__ and dots among them', async () => {
      const { calls, plans } = open()
      const ids = ['__proto__', 'a.b', 'constructor']
      const { plan } = await calls.submit(TENANT, { steps: ids.map((id) => stepOf(id)) }, CALL)
      const executor = executorOf(plans, TENANT, plan.id)
      await executor.begin()
      await executor.beginStep('__proto__')
      await executor.endStep('__proto__', 'fine')
      await executor.beginStep('a.b')
      await executor.failStep('a.b', 'broken')
      const { step_statuses, step_errors, step_outputs, error } = JSON.parse(
        JSON.stringify(await calls.get(TENANT, plan.id)),
      )
      expect(Object.entries(step_statuses)).to.have.deep.members([
        ['__proto__', 'done'],
        ['a.b', 'failed'],
        ['constructor', 'pending'],
      ])
      expect(Object.entries(step_errors)).to.deep.equal([['a.b', 'broken']])
      expect(Object.entries(step_outputs)).to.deep.equal([['__proto__', 'fine']])
      expect(error).to.include('broken')
    })

    it('leaves out outputs that are too long for one answer together', async () => {
      const { calls, plans } = open()
      const ids = ['a', 'b', 'c']
      const { plan } = await calls.submit(TENANT, { steps: ids.map((id) => stepOf(id)) }, CALL)
      const executor = executorOf(plans, TENANT, plan.id)
      await executor.begin()
      for (const id of ids) {
        await executor.beginStep(id)
        await executor.endStep(id, id.repeat(3 * 1024 * 1024))
      }
      const { step_outputs = {} } = await calls.get(TENANT, plan.id)
      expect(Object.values(step_outputs).map(({ length }) => length < 100)).to.deep.equal([false, false, true])
      expect(step_outputs['c']).to.include('left out')
    })

    it('lists the tenant’s own plans, newest first, by status', async () => {
      const tenant = newId('sess') as typeof TENANT
      const { calls, plans } = open()
      const { plan: one } = await calls.submit(tenant, CHAIN, CALL)
      const { plan: two } = await calls.submit(tenant, CHAIN, CALL)
      await calls.submit(OTHER, CHAIN, CALL)
      await executorOf(plans, tenant, one.id).begin()
      const { plans: all } = await calls.list(tenant, { limit: 50 })
      expect(all.map(({ id }) => id)).to.have.members([one.id, two.id])
      const { plans: running } = await calls.list(tenant, { limit: 50, status: 'running' })
      expect(running).to.deep.equal([
        {
          id: one.id,
          status: 'running',
          step_counts: { pending: 2, running: 0, done: 0, failed: 0, skipped: 0 },
          usage: { input_tokens: 0, output_tokens: 0, cost_usd: 0 },
          created_at: AT,
          started_at: AT,
          ended_at: null,
        },
      ])
    })

    it('a foreign plan is 404 like an unknown one', async () => {
      const { calls } = open()
      const { plan } = await calls.submit(TENANT, CHAIN, CALL)
      for (const call of [calls.get(OTHER, plan.id), calls.cancel(OTHER, plan.id), calls.frames(OTHER, plan.id, 0)]) {
        const refusal = await refusalOf(call)
        expect(refusal.status).to.equal(404)
        const { message } = await refusalOf(open().calls.get(TENANT, `plan_${'0'.repeat(32)}`))
        expect(refusal.message.replace(plan.id, '')).to.equal(message.replace(/plan_0+/, ''))
      }
      expect((await calls.get(TENANT, plan.id)).status).to.equal('queued')
    })
  })

  describe('cancel', () => {
    it('ends a queued plan at once, also when the queue is away, and leaves its job to an executor, which tells of its end', async () => {
      for (const isQueueAway of [false, true]) {
        const process = open()
        const { plan } = await process.calls.submit(TENANT, CHAIN, CALL)
        process.isQueueAway = isQueueAway
        const cancelled = await process.calls.cancel(TENANT, plan.id)
        expect(cancelled).to.deep.include({ status: 'cancelled', step_statuses: { a: 'skipped', b: 'skipped' } })
        expect(process.jobs).to.have.length(1)
        expect(process.cancelled).to.deep.equal([])
      }
    })

    it('marks a running plan before it tells the executor, and again when it is repeated', async () => {
      for (const isQueueAway of [false, true]) {
        const process = open()
        const { plan } = await process.calls.submit(TENANT, CHAIN, CALL)
        await executorOf(process.plans, TENANT, plan.id).begin()
        process.isQueueAway = isQueueAway
        expect(await process.calls.cancel(TENANT, plan.id)).to.include({ status: 'running' })
        expect(await process.plans.get(TENANT, plan.id)).to.include({ is_cancel_requested: true })
        expect(await process.calls.cancel(TENANT, plan.id)).to.include({ status: 'running' })
        expect(process.cancelled).to.deep.equal(isQueueAway ? [] : [planRunId(plan.id), planRunId(plan.id)])
      }
    })

    it('D7.1: is 409 for a plan that has ended, and changes nothing', async () => {
      const { calls, plans, cancelled } = open()
      const { plan } = await calls.submit(TENANT, { steps: [stepOf('a')] }, CALL)
      const executor = executorOf(plans, TENANT, plan.id)
      await executor.begin()
      await executor.beginStep('a')
      await executor.endStep('a', 'fine')
      await executor.finish()
      const before = await calls.get(TENANT, plan.id)
      const refusal = await refusalOf(calls.cancel(TENANT, plan.id))
      expect(refusal).to.include({ status: 409 })
      expect(await calls.get(TENANT, plan.id)).to.deep.equal(before)
      expect(cancelled).to.deep.equal([])
    })
  })

  describe('frames', () => {
    /** A plan whose only step has failed. */
    async function ended() {
      const process = open()
      const { plan } = await process.calls.submit(TENANT, { steps: [stepOf('a')] }, CALL)
      const executor = executorOf(process.plans, TENANT, plan.id)
      await executor.begin()
      await executor.beginStep('a')
      await executor.failStep('a', 'broken')
      await executor.finish()
      const read = async (after: number) => {
        const frames = await process.calls.frames(TENANT, plan.id, after)
        return frames && headsOf(await readAll(frames))
      }
      return { ...process, id: plan.id, read }
    }
    const HEADS = ['1 plan_started', '2 step_started', '3 step_ended', '4 plan_ended']

    it('of a plan that has ended are made from its record, without its executor', async () => {
      const { read, followed } = await ended()
      expect(await read(0)).to.deep.equal(HEADS)
      expect(followed).to.deep.equal([])
    })

    it('for a reader who comes back after the end are those of the executor while it knows them', async () => {
      const { id, streams, read, followed } = await ended()
      const stream = new FedStream()
      stream.push({ text: renderFrame(3, { type: 'plan_ended', plan_id: id, status: 'failed', at: AT }), lastSeq: 3 })
      streams.push(stream)
      expect(await read(2)).to.deep.equal(['3 plan_ended'])
      expect(followed).to.deep.equal([[planRunId(id), 2]])
      expect(await read(2)).to.deep.equal(HEADS.slice(2))
    })

    it('D4.5c: a number above the last event counts as the last, before the start and after the end', async () => {
      const { read } = await ended()
      for (const after of [4, 5, 2 ** 40]) expect(await read(after)).to.equal(undefined)
      const { calls, streams, followed } = open()
      const { plan } = await calls.submit(TENANT, CHAIN, CALL)
      const stream = new FedStream()
      stream.push({ text: renderFrame(1, { type: 'plan_started', plan_id: plan.id, at: AT }), lastSeq: 1 })
      streams.push(stream)
      const frames = (await calls.frames(TENANT, plan.id, 7))?.[Symbol.asyncIterator]()
      expect(await frames?.next()).to.have.nested.property('value.lastSeq', 1)
      await frames?.return?.()
      expect(followed).to.deep.equal([[planRunId(plan.id), 0]])
    })
  })
})
