import type { LRUCache } from 'lru-cache'
import { type MemoryBus, MemoryNetwork, type Wire } from './bus/memory-bus.ts'
import { MemberRegistry, MemoryMembers } from './members/memory-members.ts'
import {
  type ClaimTable,
  createClaimTable,
  createMemoryMovedRuns,
  createMemoryOwners,
  createMovedRunTable,
  type MovedRunTable,
} from './owners/memory-owners.ts'
import { createMemoryPermissionStore } from './permissions/memory-store.ts'
import type { ClusterPorts } from './relay/member.ts'

const MAX_KEYS = 100_000

/** The shared state of a cluster whose gateways, workers and executors are all in this process. */
export class MemoryCluster {
  readonly #network: MemoryNetwork
  readonly #registry = new MemberRegistry()
  readonly #claims: ClaimTable
  readonly #movedRuns: MovedRunTable
  /** For workers, too. */
  readonly #permissions = createMemoryPermissionStore()

  /**
   * By default each step of a message between the processes takes one turn of the event loop. There are at most `maxKeys` sessions, and as
   * many runs that have moved.
   */
  constructor({ wire, maxKeys = MAX_KEYS }: { wire?: Wire; maxKeys?: number } = {}) {
    this.#network = new MemoryNetwork(wire)
    this.#claims = createClaimTable(maxKeys)
    this.#movedRuns = createMovedRunTable(maxKeys)
  }

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

  /** Whether the process of this epoch is a member, whose lease may have run out. */
  isMember(epoch: number): boolean {
    return this.#registry.entries.has(epoch)
  }

  /** Behaves like a Redis that has restarted empty, except that permission requests stay. */
  loseKeys(): void {
    this.#registry.loseKeys()
    this.#claims.clear()
    this.#movedRuns.clear()
  }

  /** Returns a function that makes a replica with the present state the primary: changes since then are lost, except those of permission requests. */
  replicate(): () => void {
    const restores = [this.#registry.replicate(), copyOf(this.#claims), copyOf(this.#movedRuns)]
    return () => {
      for (const restore of restores) restore()
    }
  }
}

/** Returns the function that restores the present entries. */
function copyOf<V extends object | number>(table: LRUCache<string, V>): () => void {
  const entries = Array.from(table.entries(), ([key, value]) => ({ key, value, ttl: table.getRemainingTTL(key) }))
  const copiedAt = performance.now()
  return () => {
    table.clear()
    const passedMs = performance.now() - copiedAt
    for (const { key, value, ttl } of entries) if (ttl > passedMs) table.set(key, value, { ttl: ttl - passedMs })
  }
}
