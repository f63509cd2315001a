import { createLocalQueue, createMemoryBroker } from '../../../shared/cluster/memory.ts'
import { createMemoryPermissionStore } from '../../../shared/cluster/permissions/memory-store.ts'
import { queuedRunsContract } from '../../contract/queued-runs.ts'
import { createDemoExecutor, createRunTable } from '../../support/demo-executor.ts'
import { createDemoWorker } from '../../support/demo-worker.ts'

const EPOCH = 7

describe('queued runs within one process', () =>
  queuedRunsContract(async () => {
    const permissions = createMemoryPermissionStore()
    const worker = createDemoWorker(permissions)
    const executor = await createDemoExecutor()
    const table = createRunTable()
    const queue = createLocalQueue(executor.inbox, EPOCH, [table.source])
    return {
      brokers: [createMemoryBroker(worker.inbox, permissions, queue)],
      table,
      executor: { epoch: EPOCH, executor, announce: (runId) => queue.runs.waiting.onStarted(runId, EPOCH) },
      async close() {
        await executor.drain(0)
        await worker.drain(0)
      },
    }
  }))
