import { createMemoryBroker, createMemoryPermissionStore } from '../../shared/broker/memory.ts'
import { brokerContract } from '../contract/broker.ts'
import { createDemoWorker } from '../support/demo-worker.ts'

describe('the in-process broker', () =>
  brokerContract(async () => {
    const book = createMemoryPermissionStore()
    const worker = createDemoWorker(book)
    return { brokers: [createMemoryBroker(worker.inbox, book)], close: () => worker.drain(0) }
  }))
