import { expect } from 'chai'
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

  it('what is sent to a process while it alone is cut off is lost, and its publisher learns that', async () => {
    const [sender, receiver] = [network.connect(), network.connect()]
    const heard: string[] = []
    await receiver.subscribe('a', (message) => heard.push(message.toString()))
    receiver.cut()
    expect(await sender.publish('a', Buffer.from('lost'))).to.equal(0)
    receiver.mend()
    expect(await sender.publish('a', Buffer.from('back'))).to.equal(1)
    await new Promise(setImmediate)
    expect(heard).to.deep.equal(['back'])
  })

  it('a process that was closed is not connected again', async () => {
    const bus = network.connect()
    await bus.close()
    bus.mend()
    expect(await bus.publish('a', Buffer.from('x')).catch((cause: unknown) => cause)).to.include({
      kind: 'unavailable',
    })
  })
})
