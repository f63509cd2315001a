import { once } from 'node:events'
import { expect } from 'chai'
import { Executor, type ExecutorDeps } from '../../services/executor/executor.ts'
import { errorEvent } from '../../shared/kernel/events.ts'
import { newTraceId, runIdOf } from '../../shared/kernel/ids.ts'
import { createLog } from '../../shared/kernel/log.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { NO_EVENTS } from '../../shared/tenancy/events/port.ts'
import type { ConsumeOptions, Job, JobHandler } from '../../shared/work/queue/port.ts'
import type { CancelCode } from '../../shared/work/runs/run-identity.ts'
import { createWorkspaces } from '../../shared/work/runs/workspaces.ts'
import { until } from '../support/until.ts'

const TENANT = DEFAULT_TENANT
const job: Job = { kind: 'flow', tenant: TENANT, id: 'trace_1' }

/** An executor whose queue hands out what the test passes to `handle` and `onGivenUp`. */
async function setUp(changes: Partial<ExecutorDeps> = {}) {
  const lines: string[] = []
  const removed: string[] = []
  const executor = new Executor({
    events: NO_EVENTS,
    usage: { add: () => {} },
    limits: { maxRuns: 5, runResumeMs: 60_000 },
    isHeapHigh: () => false,
    workspaces: { ...createWorkspaces('/nowhere'), remove: async (_tenant, id) => void removed.push(id) },
    metrics: NO_METRICS,
    log: createLog({ level: 'warn', write: (line) => lines.push(line) }),
    ...changes,
  })
  const handling: Promise<unknown>[] = []
  const handled: string[] = []
  let taken: { kind: string; handle: JobHandler; options: ConsumeOptions } | undefined
  const reclaimed: string[] = []
  let isDrained = false
  await executor.start(
    async (kind, handler, options) => {
      taken = { kind, handle: handler, options }
      const drain = async () => {
        isDrained = true
        await Promise.all(handling)
      }
      const owners = async () => ['7', '12']
      return { drain, close: async () => {}, owners, reclaim: async (owner) => void reclaimed.push(owner) }
    },
    [
      {
        kind: 'flow',
        slots: { max: 3, maxPerTenant: 2 },
        async handle({ id }) {
          handled.push(`handled ${id}`)
          const run = executor.runs.open({ id: runIdOf(newTraceId()), tenant: TENANT, sessionId: undefined })
          await run.execute(async function* (_run, signal) {
            if (!signal.aborted) await once(signal, 'abort')
            yield errorEvent(signal.reason as CancelCode, 'ended')
          })
        },
        givenUp: async ({ id }) => void handled.push(`given up ${id}`),
      },
    ],
    { epoch: () => 12, executors: { isAlive: async (epoch) => epoch === 12 } },
  )
  if (!taken) throw new Error('nothing was consumed')
  const { handle, options, kind } = taken
  const take = () => {
    const work = handle(job)
    handling.push(work)
    return work
  }
  const eventsOf = () =>
    executor.runs
      .list(TENANT, { limit: 10 })
      .runs.map(({ run_id }) => String(executor.inbox.followRun(TENANT, run_id, 0).take()?.text))
  const seen = { handled, handling, lines, removed, reclaimed }
  return { executor, take, options, kind, ...seen, eventsOf, isDrained: () => isDrained }
}

describe('executor', () => {
  it('takes as many jobs as it has slots, with more for tenants below their shares while it has memory, and hands each to its work', async () => {
    let isHeapHigh = false
    const { kind, options, handled, take, executor } = await setUp({ isHeapHigh: () => isHeapHigh })
    expect([kind, options.concurrency, options.perTenant]).to.deep.equal(['flow', 3, 2])
    expect(options.mayGrow?.()).to.equal(true)
    isHeapHigh = true
    expect(options.mayGrow?.()).to.equal(false)
    void take()
    await options.onGivenUp({ ...job, id: 'trace_2' })
    expect(handled).to.deep.equal(['handled trace_1', 'given up trace_2'])
    expect(executor.liveRuns()).to.equal(1)
    await executor.drain(0)
  })

  it('a drain takes no further job at once, and lets runs end for the grace time; the others end with worker_draining', async () => {
    const { executor, take, isDrained, eventsOf } = await setUp()
    void take()
    const since = performance.now()
    const drained = executor.drain(100)
    expect([executor.isDraining(), isDrained(), executor.liveRuns()]).to.deep.equal([true, true, 1])
    await drained
    expect(performance.now() - since).to.be.at.least(90)
    expect(executor.liveRuns()).to.equal(0)
    expect(eventsOf().join()).to.include('"code":"worker_draining"')
  })

  it('a drain leaves a job behind that has not ended two seconds after the grace time', async () => {
    const { executor, handling, lines } = await setUp()
    handling.push(new Promise(() => {}))
    const since = performance.now()
    await executor.drain(0)
    expect(performance.now() - since).to.be.at.least(1_900)
    expect(lines.join()).to.include('leaves jobs behind')
  })

  it('takes jobs under its epoch, and hands those of executors that have died out again, before its start or later', async () => {
    const { executor, options, reclaimed } = await setUp()
    expect(options.owner?.()).to.equal('12')
    expect(reclaimed).to.deep.equal(['7'])
    executor.onMemberLost(8)
    expect(reclaimed).to.deep.equal(['7', '8'])
  })

  it('D4.8: an evicted executor ends its runs with worker_lost and goes on', async () => {
    const { executor, take, eventsOf } = await setUp()
    const work = take()
    executor.abortAll()
    await work
    expect(eventsOf().join()).to.include('"code":"worker_lost"')
    expect(executor.isDraining()).to.equal(false)
  })

  it('removes the folder of a run when the run is forgotten', async () => {
    const { executor, take, removed } = await setUp({
      limits: { maxRuns: 5, runResumeMs: 1 },
    })
    await take() // Nobody reads it, so it is forgotten, which ends it.
    await until(() => removed.length > 0, { what: 'the folder to be removed' })
    expect(removed[0]).to.match(/^run_00000000/)
    expect(executor.runs.list(TENANT, { limit: 10 }).runs).to.deep.equal([])
  })
})
