import { expect } from 'chai'
import { sweepOrphans } from '../../../shared/flows/calls/orphan-sweep.ts'
import type { TenantId } from '../../../shared/tenant.ts'
import { INPUT, newDispatch } from '../../contract/dispatch-setup.ts'
import { useHistory } from '../history-setup.ts'

const ALIVE = 7
const DEAD = 8
const TENANTS = ['a', 'b', 'c'] as TenantId[]

describe('the sweep for lost executions', () => {
  const history = useHistory()

  const sweep = () =>
    sweepOrphans({
      dispatches: history.dispatches,
      executors: { isAlive: async (epoch) => epoch === ALIVE },
      tenants: async (after) => TENANTS.filter((name) => after === undefined || name > after).slice(0, 2),
      now: history.now,
    })

  /** Stores an execution that was queued this long ago and, with an executor, was begun. */
  async function store(tenant: TenantId, ageMs: number, executor?: number): Promise<string> {
    const dispatch = newDispatch(history.clock.ms - ageMs)
    await history.dispatches.create(tenant, dispatch, INPUT)
    if (executor !== undefined) await history.dispatches.begin(tenant, dispatch.trace_id, executor)
    return dispatch.trace_id
  }

  const statusesOf = (tenant: TenantId, ids: readonly string[]) =>
    Promise.all(ids.map(async (id) => (await history.dispatches.get(tenant, id))?.error?.status ?? 'open'))

  it('ends those of dead executors and those that nobody takes, of every tenant, and leaves the others alone', async () => {
    for (const tenant of TENANTS) {
      const ids = [
        await store(tenant, 3_600_000, DEAD),
        await store(tenant, 30_001),
        await store(tenant, 30_000),
        await store(tenant, 3_600_000, ALIVE),
      ]
      expect(await sweep(), tenant).to.equal(2)
      expect(await statusesOf(tenant, ids), tenant).to.deep.equal([502, 503, 'open', 'open'])
    }
    expect(await sweep()).to.equal(0)
  })

  it('ends more than one page of them', async () => {
    for (let n = 0; n < 120; n++) await store('a' as TenantId, 40_000 + n, n % 2 === 0 ? DEAD : undefined)
    expect(await sweep()).to.equal(120)
    expect(await sweep()).to.equal(0)
  })
})
