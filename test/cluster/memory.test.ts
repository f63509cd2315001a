import { createMemoryBroker } from '../../shared/cluster/memory.ts'
import { createMemoryPermissionStore } from '../../shared/cluster/permissions/memory-store.ts'
import { brokerContract } from '../contract/broker.ts'
import { createDemoWorker } from '../support/demo-worker.ts'

describe('broker within one process', () =>
  brokerContract(async () => {
    const permissions = createMemoryPermissionStore()
    const worker = createDemoWorker(permissions)
    return { brokers: [createMemoryBroker(worker.inbox, permissions)], close: () => worker.drain(0) }
  }))
