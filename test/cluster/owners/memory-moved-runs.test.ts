import { MemoryNetwork } from '../../../shared/cluster/bus/memory-bus.ts'
import { createMemoryMovedRuns, createMovedRunTable } from '../../../shared/cluster/owners/memory-owners.ts'
import { movedRunsContract, RUN } from '../../contract/moved-runs.ts'

describe('moved runs within one process', () => {
  movedRunsContract(() => {
    const table = createMovedRunTable(100)
    const secsLeft = async () => table.getRemainingTTL(`${RUN.tenant} ${RUN.id}`) / 1000
    return { movedRuns: createMemoryMovedRuns(new MemoryNetwork().connect(), table), secsLeft }
  })
})
