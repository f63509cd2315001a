import { expect } from 'chai'
import type { Executor } from '../../services/executor/executor.ts'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { newTraceId, runIdOf } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { eventsOf, idsOf, textOf } from '../support/broker-answers.ts'
import { beginRun, type createRunTable } from '../support/demo-executor.ts'
import { elapsedMs } from '../support/elapsed.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'

/** The brokers of several gateways, and an executor whose runs the table knows. */
export type QueuedRunsSetup = {
  brokers: readonly [Broker, ...Broker[]]
  table: ReturnType<typeof createRunTable>
  executor: { epoch: number; executor: Executor; announce(runId: string): void }
  close(): Promise<void>
}

const TENANT = DEFAULT_TENANT
const OTHER = tenantId('other')
/** Well below the 500 ms after which a run is looked up. */
const NOTICE_MS = 300

export async function refusalOf(act: Promise<unknown>): Promise<AppError> {
  const cause = await act.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (cause instanceof AppError) return cause
  throw cause ?? new Error('the call was not refused')
}

/** Puts a queued run to work on the executor, with or without a start notice. */
export function begin({ table, executor }: QueuedRunsSetup, runId: string, { isAnnounced = true } = {}) {
  table.set(TENANT, runId, { state: 'at', epoch: executor.epoch })
  const run = beginRun(executor.executor, TENANT, runId)
  if (isAnnounced) executor.announce(runId)
  return {
    finish() {
      table.set(TENANT, runId, { state: 'ended', epoch: executor.epoch })
      run.finish()
    },
  }
}

/** The contract of every broker for the runs that were queued for an executor. */
export function queuedRunsContract(open: () => Promise<QueuedRunsSetup>): void {
  let first: Broker
  let other: Broker
  const setup = useOpened(open)
  before(async () => {
    first = setup.brokers[0]
    other = setup.brokers.at(-1) ?? first
  })

  it('a run that is followed while it is queued is waiting, and its stream begins with the start notice', async () => {
    const runId = setup.table.queue(TENANT)
    const streams = [await first.followRun(TENANT, runId, 0), await other.followRun(TENANT, runId, 0)]
    const reading = Promise.all(streams.map(textOf))
    expect(await other.getRun(TENANT, runId)).to.include({ run_id: runId, status: 'waiting', event_count: 0 })
    const since = elapsedMs()
    begin(setup, runId).finish()
    const [text = '', second] = await reading
    expect(elapsedMs() - since).to.be.lessThan(NOTICE_MS)
    expect(eventsOf(text)).to.deep.equal(['started', 'result'])
    expect(idsOf(text)).to.deep.equal([1, 2])
    expect(second).to.equal(text)
    expect(await first.getRun(TENANT, runId)).to.include({ run_id: runId, status: 'done', event_count: 2 })
  })

  it('a start notice that comes while the run is being looked up counts', async () => {
    const [runId, next] = [setup.table.queue(TENANT), setup.table.queue(TENANT)]
    const readingNext = textOf(await first.followRun(TENANT, next, 0))
    const { find } = setup.table.source
    setup.table.source.find = async (...args) => {
      const found = await find(...args)
      setup.table.source.find = find
      begin(setup, runId).finish()
      begin(setup, next).finish()
      await readingNext // Its notice came after that of the other run.
      return found
    }
    const reading = textOf(await first.followRun(TENANT, runId, 0))
    const since = elapsedMs()
    expect(eventsOf(await reading)).to.deep.equal(['started', 'result'])
    expect(elapsedMs() - since).to.be.lessThan(NOTICE_MS)
  })

  it('a stream begins without the start notice, too, because the run is looked up', async () => {
    const runId = setup.table.queue(TENANT)
    const reading = textOf(await first.followRun(TENANT, runId, 0))
    begin(setup, runId, { isAnnounced: false }).finish()
    expect(eventsOf(await reading)).to.deep.equal(['started', 'result'])
  })

  it('D4.5a: a run that has begun is followed from any frame, live and after its end, through any gateway', async () => {
    const runId = setup.table.queue(TENANT)
    const { finish } = begin(setup, runId)
    const whole = textOf(await first.followRun(TENANT, runId, 0))
    const rest = textOf(await other.followRun(TENANT, runId, 1))
    await until(async () => (await other.getRun(TENANT, runId)).event_count === 1, { what: 'the first event' })
    finish()
    expect(eventsOf(await whole)).to.deep.equal(['started', 'result'])
    expect(idsOf(await rest)).to.deep.equal([2])
    expect(idsOf(await textOf(await other.followRun(TENANT, runId, 1)))).to.deep.equal([2])
    expect(await textOf(await other.followRun(TENANT, runId, 0))).to.equal(await whole)
  })

  it('a run that the store names before its executor knows it is found', async () => {
    const runId = setup.table.queue(TENANT)
    setup.table.set(TENANT, runId, { state: 'at', epoch: setup.executor.epoch })
    const { lookUps } = setup.table
    const summary = first.getRun(TENANT, runId)
    const frames = other.followRun(TENANT, runId, 0)
    await until(() => setup.table.lookUps >= lookUps + 2, { what: 'both look-ups', everyMs: 1 })
    begin(setup, runId).finish()
    expect((await summary).run_id).to.equal(runId)
    expect(eventsOf(await textOf(await frames))).to.deep.equal(['started', 'result'])
  })

  it('D4.5g: the list of runs has those of the executors that have begun, for their own tenant', async () => {
    const [queued, running] = [setup.table.queue(TENANT), setup.table.queue(TENANT)]
    const { finish } = begin(setup, running)
    for (const broker of setup.brokers) {
      const { runs } = await broker.listRuns(TENANT, { limit: 100 })
      expect(runs.map(({ run_id }) => run_id))
        .to.include(running)
        .and.not.include(queued)
      expect((await broker.listRuns(OTHER, { limit: 100 })).runs).to.deep.equal([])
    }
    finish()
  })

  it('D4.5f: a cancelled run that has begun ends with cancelled', async () => {
    const runId = setup.table.queue(TENANT)
    const frames = await first.followRun(TENANT, runId, 0)
    begin(setup, runId)
    const reading = textOf(frames)
    await until(async () => (await first.getRun(TENANT, runId)).event_count === 1, { what: 'the run to have begun' })
    await other.cancelRun(TENANT, runId)
    expect(await reading).to.include('"code":"cancelled"')
    expect(await first.getRun(TENANT, runId)).to.include({ status: 'cancelled' })
  })

  it('a run that is cancelled while it is queued ends its streams in all gateways', async () => {
    const runId = setup.table.queue(TENANT)
    const streams = await Promise.all(setup.brokers.map((broker) => broker.followRun(TENANT, runId, 0)))
    const reading = streams.map(textOf)
    await other.cancelRun(TENANT, runId)
    for (const text of await Promise.all(reading)) expect(text).to.include('"code":"cancelled"').and.include('id: 0\n')
    expect((await refusalOf(first.followRun(TENANT, runId, 0))).status).to.equal(404)
  })

  it('a run that nobody takes out of the queue cannot be cancelled while it is queued', async () => {
    const runId = setup.table.queue(TENANT)
    const { cancelWaiting } = setup.table.source
    setup.table.source.cancelWaiting = async () => false
    expect((await refusalOf(first.cancelRun(TENANT, runId))).status).to.equal(409)
    delete setup.table.source.cancelWaiting
    expect((await refusalOf(first.cancelRun(TENANT, runId))).status).to.equal(409)
    if (cancelWaiting) setup.table.source.cancelWaiting = cancelWaiting
  })

  it('a run that ends without having begun ends its streams with worker_lost, and the failure is marked', async () => {
    const runId = setup.table.queue(TENANT)
    const frames = await first.followRun(TENANT, runId, 7)
    setup.table.set(TENANT, runId, { state: 'ended', epoch: null })
    const seen = []
    for await (const { failure, lastSeq } of frames) seen.push({ failure, lastSeq })
    expect(seen).to.deep.equal([{ failure: 'worker_lost', lastSeq: 0 }])
  })

  it('a reader that leaves ends the wait, and the run is not looked up any more', async () => {
    const runId = setup.table.queue(TENANT)
    const frames = (await first.followRun(TENANT, runId, 0))[Symbol.asyncIterator]()
    const next = frames.next()
    await frames.return?.()
    expect(await next).to.deep.equal({ done: true, value: undefined })
    expect(await frames.next()).to.deep.equal({ done: true, value: undefined })
    const looked: string[] = []
    const { find } = setup.table.source
    setup.table.source.find = async (tenant, id) => (looked.push(id), find(tenant, id))
    const another = setup.table.queue(TENANT)
    const stayed = (await first.followRun(TENANT, another, 0))[Symbol.asyncIterator]()
    const waiting = stayed.next()
    await until(() => looked.length >= 3, { what: 'two rounds of look-ups', lastSeen: () => looked })
    expect(looked).to.deep.equal([another, another, another])
    setup.table.source.find = find
    await stayed.return?.()
    await waiting
  })

  it('the run of an executor that is not alive is 404', async () => {
    const runId = setup.table.queue(TENANT)
    setup.table.set(TENANT, runId, { state: 'at', epoch: 1 })
    for (const act of [
      () => first.getRun(TENANT, runId),
      () => first.followRun(TENANT, runId, 0),
      () => first.cancelRun(TENANT, runId),
    ]) {
      expect((await refusalOf(act())).status).to.equal(404)
    }
  })

  it('api.md "Authentication" 8: unknown runs and another tenant’s are 404 with the same text', async () => {
    const [queued, running, unknown] = [setup.table.queue(TENANT), setup.table.queue(TENANT), runIdOf(newTraceId())]
    const { finish } = begin(setup, running)
    const calls = (runId: string) => [
      other.getRun(OTHER, runId),
      other.followRun(OTHER, runId, 0),
      other.cancelRun(OTHER, runId),
    ]
    for (const runId of [queued, running, unknown]) {
      for (const call of calls(runId)) {
        const { status, message } = await refusalOf(call)
        expect([status, message.replace(runId, 'ID')]).to.deep.equal([
          404,
          'no run ID: it never existed, or it ended too long ago',
        ])
      }
    }
    finish()
  })
}
