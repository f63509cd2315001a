import { expect } from 'chai'
import type { MovedRuns } from '../../shared/cluster/owners/owners.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { tenantId } from '../support/tenant.ts'

export const RUN = { tenant: DEFAULT_TENANT, id: 'run_1' }

/** `secsLeft`: for how long the record of `RUN` still lasts. */
export type MovedRunsSetup = { movedRuns: MovedRuns; secsLeft(): Promise<number> }

/** The tests that every `MovedRuns` passes. */
export function movedRunsContract(open: () => MovedRunsSetup): void {
  it('the newest record of a run counts, for its tenant alone, and lasts a day', async () => {
    const { movedRuns, secsLeft } = open()
    expect(await movedRuns.find(RUN.tenant, RUN.id)).to.equal(undefined)
    await movedRuns.record(RUN.tenant, [RUN.id, 'run_2'], 7)
    await movedRuns.record(RUN.tenant, [RUN.id], 8)
    const found = await Promise.all([RUN.id, 'run_2', 'run_3'].map((id) => movedRuns.find(RUN.tenant, id)))
    expect(found).to.deep.equal([8, 7, undefined])
    expect(await movedRuns.find(tenantId('other'), RUN.id)).to.equal(undefined)
    expect(await secsLeft()).to.be.within(86_000, 86_400)
  })
}
