import { type MemoryBus, MemoryNetwork } from './bus/memory-bus.ts'
import { MemberRegistry, MemoryMembers } from './members/memory-members.ts'
import { createMemoryMovedRuns, createMovedRunTable } from './owners/memory-moved-runs.ts'
import { createClaimTable, createMemoryOwners } from './owners/memory-owners.ts'
import { createMemoryPermissionStore } from './permissions/memory-store.ts'
import type { ClusterPorts } from './relay/ports.ts'

/** A cluster whose gateways, workers and executors are all in this process: what they share. */
export class MemoryCluster {
  readonly #network = new MemoryNetwork()
  readonly #registry = new MemberRegistry()
  readonly #claims = createClaimTable()
  readonly #movedRuns = createMovedRunTable()
  /** For workers, too. */
  readonly #permissions = createMemoryPermissionStore()

  /** The ports of one more member. */
  connect(): ClusterPorts & { bus: MemoryBus } {
    const bus = this.#network.connect()
    return {
      bus,
      members: new MemoryMembers(bus, this.#registry),
      owners: createMemoryOwners(bus, this.#claims),
      movedRuns: createMemoryMovedRuns(bus, this.#movedRuns),
      permissions: this.#permissions,
    }
  }
}
