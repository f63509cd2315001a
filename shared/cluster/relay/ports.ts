import type { Bus } from '../bus/bus.ts'
import type { Members } from '../members/members.ts'
import type { MovedRuns, Owners } from '../owners/owners.ts'
import type { PermissionStore } from '../permissions/store.ts'

/** All that a process shares with the others of its cluster, and reaches them by. */
export type ClusterPorts = {
  bus: Bus
  members: Members
  owners: Owners
  movedRuns: MovedRuns
  /** For a gateway: it lists and decides requests, and opens none. */
  permissions: PermissionStore
}
