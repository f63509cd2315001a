import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { Bus } from '../bus/bus.ts'
import type { Lease } from '../members/lease.ts'
import type { MemberAbout, MemberFields, Members } from '../members/members.ts'
import type { MovedRuns, Owners } from '../owners/owners.ts'
import type { PermissionStore } from '../permissions/store.ts'
import { type MemberReadiness, Membership, type MembershipHandlers } from './membership.ts'
import { Transport, type TransportHandlers } from './wire/transport.ts'

export type MemberDeps = { pid: number; about?: MemberAbout | undefined; lease: Lease; log: Log; metrics: Metrics }

/**
 * What a process does in its role. By default it ignores lost receivers, because its membership reports them, too, and lost keys in Redis, because
 * its only keys are those of its membership, which are already restored.
 */
export type MemberRole = Pick<TransportHandlers, 'onRecord'> &
  Partial<Pick<TransportHandlers, 'onUndelivered'>> &
  Omit<MembershipHandlers, 'onKeysLost'> &
  Partial<Pick<MembershipHandlers, 'onKeysLost'>> & {
    name: MemberFields['role']
    isDraining(): boolean
    load(): number
  }

/** A process of the cluster in its role: its messages and its membership. */
export class ClusterMember {
  readonly transport: Transport
  readonly membership: Membership
  readonly #readiness: () => MemberReadiness

  constructor({ bus, members }: Pick<ClusterPorts, 'bus' | 'members'>, deps: MemberDeps, role: MemberRole) {
    const { pid, about, lease, log, metrics } = deps
    const { name, isDraining, load, onUndelivered = () => {}, onKeysLost = () => {}, ...handlers } = role
    const describe = (): MemberFields => ({
      role: name,
      state: isDraining() ? 'draining' : 'active',
      load: load(),
      pid,
      ...about,
    })
    this.transport = new Transport({ role: name, bus, lease, metrics }, { ...handlers, onUndelivered })
    const parts = { transport: this.transport, members, lease, log, describe }
    this.membership = new Membership(parts, { ...handlers, onKeysLost })
    this.#readiness = () => ({ isBusAway: bus.awayMs() > 0, isMember: lease.isHeld(), isDraining: isDraining() })
  }

  /** The epoch changes when this process was evicted and has joined again. */
  get epoch(): number {
    return this.membership.epoch
  }

  readiness(): MemberReadiness {
    return this.#readiness()
  }
}

/** The ports through which a process reaches the other processes of its cluster and the data that they share. */
export type ClusterPorts = {
  bus: Bus
  members: Members
  owners: Owners
  movedRuns: MovedRuns
  /** For a gateway, which lists and decides requests but opens none. */
  permissions: PermissionStore
}
