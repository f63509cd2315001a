import { expect } from 'chai'
import { AdoptedRuns } from '../../../shared/cluster/owners/adopted-runs.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'

describe('adopted runs', () => {
  it('are recorded again when Redis has lost its keys, as long as the worker knows them', async () => {
    const recorded: string[] = []
    const known = new Set(['run_1', 'run_2'])
    const runs = new AdoptedRuns({
      movedRuns: { record: async (tenant, ids, epoch) => void recorded.push(`${tenant} ${ids.join()} ${epoch}`) },
      epoch: () => 7,
      isKnown: (_tenant, runId) => known.has(runId),
    })
    await runs.add(DEFAULT_TENANT, ['run_1', 'run_2'])
    known.delete('run_1')
    await runs.recordAll()
    expect(recorded).to.deep.equal([`${DEFAULT_TENANT} run_1,run_2 7`, `${DEFAULT_TENANT} run_2 7`])
  })
})
