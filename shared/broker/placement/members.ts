/**
 * The versions of messages that this release reads. A release that adds one still sends this one to members that read no other.
 */
export const PROTOCOL = { min: 2, max: 2 } as const

export const ROLES = ['gateway', 'worker', 'executor'] as const
export const STATES = ['active', 'draining'] as const

/** The fields that a process publishes with every renewal of its lease, about once a second. */
export type MemberFields = {
  role: (typeof ROLES)[number]
  /** A `draining` worker or executor takes no new work; such a worker is not on the ring. */
  state: (typeof STATES)[number]
  /** Live runs of a worker or executor, open streams of a gateway. */
  load: number
  pid: number
}

/** A process of the cluster. The epoch identifies it: a process that restarts, or rejoins after an eviction, gets a new one. */
export type Member = MemberFields & { epoch: number; expiresInMs: number }

/**
 * The result of renewing a lease. `evicted`: another process has removed this one; `keys_lost`: Redis
 * has restarted empty, or a replica has become the primary, and this process is registered again under its old epoch; `unheard`: the lease was not renewed, because nobody subscribes
 * to the channel of the probe.
 */
export type Renewal = 'renewed' | 'evicted' | 'keys_lost' | 'unheard'

/** A message that a process sends to its own channel with each renewal: one that hears nothing must not stay a member. */
export type Probe = { channel: string; message: Buffer }

/** The members of the cluster, with leases that expire by Redis's clock. */
export interface Members {
  /** Registers this process. Returns its epoch, which is higher than all earlier ones. */
  join(fields: MemberFields): Promise<number>
  renew(epoch: number, fields: MemberFields, probe: Probe): Promise<Renewal>
  leave(epoch: number): Promise<void>
  /** Without the members that this release cannot understand, or that do not understand it. */
  list(): Promise<Member[]>
  /** An epoch that has been a member and is none any more never becomes one again, unless Redis loses its keys. */
  isMember(epoch: number): Promise<boolean>
  /** Returns `false` from the moment Redis may have lost keys until this process has renewed its lease. */
  isBootMarkerCurrent(): Promise<boolean>
  /** Removes a member whose lease has run out; it cannot renew afterwards. Returns whether it is no longer a member. */
  expire(epoch: number): Promise<boolean>
}
