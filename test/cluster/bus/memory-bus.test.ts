import { type MemoryBus, MemoryNetwork } from '../../../shared/cluster/bus/memory-bus.ts'
import { busContract } from '../../contract/bus.ts'

describe('bus within one process', () => {
  let network: MemoryNetwork
  let buses: MemoryBus[] = []
  beforeEach(() => {
    network = new MemoryNetwork()
    buses = []
  })

  busContract({
    async connect() {
      const bus = network.connect()
      buses.push(bus)
      return bus
    },
    async cut() {
      for (const bus of buses) bus.cut()
    },
    async mend() {
      for (const bus of buses) bus.mend()
    },
  })
})
