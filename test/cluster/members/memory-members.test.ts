import { MemoryNetwork } from '../../../shared/cluster/bus/memory-bus.ts'
import { LEASE_MS } from '../../../shared/cluster/members/members.ts'
import { MemberRegistry, MemoryMembers } from '../../../shared/cluster/members/memory-members.ts'
import { membersContract } from '../../contract/members.ts'

describe('members within one process', () => {
  let network: MemoryNetwork
  let registry: MemberRegistry
  let nowMs = 0
  beforeEach(() => {
    network = new MemoryNetwork()
    registry = new MemberRegistry(() => nowMs)
  })

  membersContract({
    async connect() {
      const bus = network.connect()
      return { bus, members: new MemoryMembers(bus, registry) }
    },
    async lapse() {
      nowMs += LEASE_MS
    },
    loseKeys: async () => registry.loseKeys(),
  })
})
