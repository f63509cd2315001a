import { MemoryNetwork } from '../../../shared/cluster/bus/memory-bus.ts'
import { createClaimTable, createMemoryOwners } from '../../../shared/cluster/owners/memory-owners.ts'
import { ownersContract, S1 } from '../../contract/owners.ts'

describe('owners within one process', () => {
  ownersContract(() => {
    const claims = createClaimTable(100)
    const secsLeft = async () => claims.getRemainingTTL(`${S1.tenant} ${S1.id}`) / 1000
    return { owners: createMemoryOwners(new MemoryNetwork().connect(), claims), secsLeft }
  })
})
