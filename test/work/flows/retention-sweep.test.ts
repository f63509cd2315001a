import { expect } from 'chai'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { createRetentionSweep, type RetentionSweepDeps } from '../../../shared/work/flows/retention-sweep.ts'
import { DAY_MS, INPUT, newDispatch } from '../../contract/dispatch-setup.ts'
import { tenantIds } from '../../support/tenant.ts'
import { useHistory } from './history-setup.ts'

const NAMES = tenantIds('a', 'b', 'c', 'd', 'e')

/** Tenants in pages of two. */
const tenantsOf = (names: readonly TenantId[]) => async (after: TenantId | undefined) =>
  names.filter((name) => after === undefined || name > after).slice(0, 2)

describe('the sweep for shortened retention', () => {
  const history = useHistory()

  it('deletes what is older than the retention of today, with its payloads, of every tenant', async () => {
    const [before, after] = ['older', 'newer'].map(() => [] as string[]) as [string[], string[]]
    for (const tenant of NAMES)
      for (const [ids, ageMs] of [
        [before, 2 * DAY_MS + 1],
        [after, 2 * DAY_MS - 60_000],
      ] as const) {
        const dispatch = newDispatch(history.clock.ms - ageMs)
        await history.dispatches.create(tenant, dispatch, INPUT)
        ids.push(dispatch.trace_id)
      }
    const retentionDays = async (tenant: TenantId) => (tenant === 'c' ? 30 : 2)
    const { dispatches, now } = history
    const sweep = createRetentionSweep({ dispatches, tenants: tenantsOf(NAMES), retentionDays, now })
    expect(await sweep.run()).to.equal(4)
    for (const [i, tenant] of NAMES.entries()) {
      const isKept = tenant === 'c'
      expect((await dispatches.get(tenant, before[i] ?? '')) !== undefined, tenant).to.equal(isKept)
      expect((await dispatches.input(tenant, before[i] ?? '')) !== undefined, tenant).to.equal(isKept)
      expect((await dispatches.get(tenant, after[i] ?? ''))?.trace_id).to.equal(after[i])
    }
    expect(await sweep.run()).to.equal(0)
  })
})

describe('one run of the sweep', () => {
  /** Tenants with this many old records each; what each run visits. */
  const setUp = (old: Record<string, number>, more: Partial<RetentionSweepDeps> = {}) => {
    const visited: string[] = []
    const sweep = createRetentionSweep({
      dispatches: {
        async removeStartedBefore(tenant, _before, limit) {
          visited.push(tenant)
          const removed = Math.min(limit, old[tenant] ?? 0)
          old[tenant] = (old[tenant] ?? 0) - removed
          return removed
        },
      },
      tenants: tenantsOf(NAMES),
      retentionDays: async () => 30,
      ...more,
    })
    const run = async () => {
      const removed = await sweep.run().catch(String)
      return [removed, visited.splice(0).join('')]
    }
    return { sweep, run }
  }

  it('visits a bounded number of tenants, and the next one goes on behind them', async () => {
    const { run } = setUp({}, { maxTenants: 3 })
    expect(await run()).to.deep.equal([0, 'abc'])
    expect(await run()).to.deep.equal([0, 'de'])
    expect(await run()).to.deep.equal([0, 'abc'])
  })

  it('deletes a bounded number of records, and the next one goes on with the same tenant', async () => {
    const { run } = setUp({ a: 1, b: 25, d: 3 }, { maxRemoved: 10 })
    expect(await run()).to.deep.equal([10, 'ab'])
    expect(await run()).to.deep.equal([10, 'b'])
    expect(await run()).to.deep.equal([9, 'bcde'])
    expect(await run()).to.deep.equal([0, 'abcde'])
  })

  it('fails with a tenant whose records cannot be deleted, and the next one goes on behind it', async () => {
    const retentionDays = async (tenant: TenantId) => {
      if (tenant === 'b') throw new Error('away')
      return 30
    }
    const { run } = setUp({}, { retentionDays })
    expect(await run()).to.deep.equal(['Error: away', 'a'])
    expect(await run()).to.deep.equal([0, 'cde'])
  })

  it('is joined by a call that comes meanwhile', async () => {
    const { sweep } = setUp({ a: 5 })
    const runs = [sweep.run(), sweep.run()]
    expect(runs[0]).to.equal(runs[1])
    expect(await Promise.all(runs)).to.deep.equal([5, 5])
    expect(await sweep.run()).to.equal(0)
  })
})
