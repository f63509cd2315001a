import { expect } from 'chai'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import { createAges } from '../../../../shared/work/flows/calls/end-lost-execution.ts'
import { sweepOrphans } from '../../../../shared/work/flows/calls/orphan-sweep.ts'
import type { Job } from '../../../../shared/work/queue/port.ts'
import { FAILED, INPUT, newDispatch } from '../../../contract/dispatch-setup.ts'
import { tenantId, tenantIds } from '../../../support/tenant.ts'
import { useHistory } from '../history-setup.ts'

const ALIVE = 7
const DEAD = 8
const TENANTS = tenantIds('a', 'b', 'c')
const HAS_JOB = { id: '' }

describe('the sweep for lost executions', () => {
  const history = useHistory()

  /** A process that sweeps, with its monotonic clock. */
  let clockMs = 0
  let knownMs = createAges(() => clockMs)
  const queued: string[] = []
  const queue = {
    add: async ({ kind, id }: Job) => void queued.push(`${kind} ${id}`),
    missing: async (_kind: string, ids: readonly string[]) => ids.filter((id) => id !== HAS_JOB.id),
  }
  beforeEach(() => {
    knownMs = createAges(() => clockMs)
  })

  const sweep = () =>
    sweepOrphans({
      dispatches: history.dispatches,
      executors: { isAlive: async (epoch) => epoch === ALIVE },
      queue,
      tenants: async (after) => TENANTS.filter((name) => after === undefined || name > after).slice(0, 2),
      knownMs,
      now: () => new Date(history.clock.ms),
    })

  /** Stores an execution that was queued this long ago, by the clock of its gateway, and, with an executor, was begun. */
  async function store(tenant: TenantId, ageMs: number, executor?: number): Promise<string> {
    const dispatch = newDispatch(history.clock.ms - ageMs)
    await history.dispatches.create(tenant, dispatch, INPUT)
    if (executor !== undefined) await history.dispatches.begin(tenant, dispatch.trace_id, executor)
    return dispatch.trace_id
  }

  const statusesOf = (tenant: TenantId, ids: readonly string[]) =>
    Promise.all(ids.map(async (id) => (await history.dispatches.get(tenant, id))?.error?.status ?? 'open'))

  it('ends those of dead executors, and those that it has seen wait for 30 s, of every tenant, and leaves the others alone', async () => {
    const stored = new Map<TenantId, string[]>()
    for (const tenant of TENANTS) {
      const ids = [await store(tenant, 3_600_000, DEAD), await store(tenant, 0), await store(tenant, 3_600_000, ALIVE)]
      stored.set(tenant, ids)
    }
    expect(await sweep()).to.equal(3)
    for (const [tenant, ids] of stored)
      expect(await statusesOf(tenant, ids), tenant).to.deep.equal([502, 'open', 'open'])
    clockMs += 30_000
    for (const [tenant, ids] of stored) ids.push(await store(tenant, 0))
    expect(await sweep()).to.equal(0)
    clockMs += 1
    expect(await sweep()).to.equal(3)
    for (const [tenant, ids] of stored)
      expect(await statusesOf(tenant, ids), tenant).to.deep.equal([502, 503, 'open', 'open'])
    clockMs += 30_001
    expect(await sweep()).to.equal(3)
  })

  it('does not believe the clock of the gateway that has queued an execution', async () => {
    const [tenant] = TENANTS
    const ids = [await store(tenant, 3_600_000), await store(tenant, -3_600_000)]
    expect(await sweep()).to.equal(0)
    clockMs += 30_001
    expect(await sweep()).to.equal(2)
    expect(await statusesOf(tenant, ids)).to.deep.equal([503, 503])
  })

  it('D54.8: those that have time until a deadline are queued again where their jobs are lost, and do not end', async () => {
    const tenant = tenantId('a')
    const unhurried = async (executor?: number) => {
      const more = { deadline_at: new Date(history.clock.ms + 3_600_000).toISOString() }
      const dispatch = newDispatch(history.clock.ms, more)
      await history.dispatches.create(tenant, dispatch, INPUT)
      if (executor !== undefined) await history.dispatches.begin(tenant, dispatch.trace_id, executor)
      return dispatch.trace_id
    }
    const ids = [await unhurried(), await unhurried(DEAD), (HAS_JOB.id = await unhurried()), await unhurried()]
    await history.dispatches.park(tenant, ids[3] ?? '', history.clock.ms + 1) // It waits for a vendor.
    expect([await sweep(), queued]).to.deep.equal([0, []])
    clockMs += 3_600_000
    expect(await sweep()).to.equal(0)
    expect(await statusesOf(tenant, ids)).to.deep.equal(Array(4).fill('open'))
    expect(queued.toSorted()).to.deep.equal(
      ids
        .slice(0, 2)
        .map((id) => `batch ${id}`)
        .toSorted(),
    )
    history.clock.ms++
    await sweep()
    expect(queued).to.include(`batch ${ids[3]}`)
    for (const id of ids) await history.dispatches.end(tenant, id, { executor: null, result: FAILED })
    await history.dispatches.end(tenant, ids[1] ?? '', { executor: DEAD, result: FAILED })
  })

  it('ends more than one page of them', async () => {
    for (let n = 0; n < 120; n++) await store(tenantId('a'), n, n % 2 === 0 ? DEAD : undefined)
    expect(await sweep()).to.equal(60)
    clockMs += 30_001
    expect(await sweep()).to.equal(60)
    expect(await sweep()).to.equal(0)
  })
})
