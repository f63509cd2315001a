/**
 * The versions of messages that this release reads. A release that adds a version still sends the old one to members that read no other.
 */
export const PROTOCOL = { min: 2, max: 2 } as const

/** A lease ends this long after its last renewal. The member itself stops acting earlier, see `Lease`. */
export const LEASE_MS = 4_000
/** Lapsed members that one look returns at most. */
export const MAX_LAPSED = 100

export const ROLES = ['gateway', 'worker', 'executor'] as const
export const STATES = ['active', 'draining'] as const

/** The facts of a process for operators. A member of an older release has none of them. `since` is in ISO 8601. */
export type MemberAbout = {
  version?: string
  since?: string
  /** The load at which a worker or executor takes no further work. */
  capacity?: number
}

/** The fields that a process publishes with every renewal of its lease, about once a second. A new load is no change of the members. */
export type MemberFields = MemberAbout & {
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
 * The result of renewing a lease. `evicted`: another process has removed this one. `keys_lost`: Redis has restarted empty, or a replica
 * has become the primary, and this process is registered again under its old epoch. `unheard`: the lease was not renewed, because no
 * process subscribes to the probe's channel.
 */
export type Renewal = 'renewed' | 'evicted' | 'keys_lost' | 'unheard'

/**
 * The process's own channel, which must have a subscriber when its lease is renewed, and from time to time a message that the process
 * sends itself: a process that receives no messages must not stay a member.
 */
export type ChannelProbe = { channel: string; message?: Buffer }

/**
 * The version rises with each change of the members, by one unless Redis may have lost keys. A list is read in pieces: it contains all
 * changes up to its version, and may contain some later ones.
 */
export type MemberList = { version: number; members: Member[] }

/** A member has joined, changed or gone. Without `member` and not gone, this release cannot understand it. */
export type MemberChange = { version: number; epoch: number; isGone: boolean; member: Member | undefined }

/** `lapsed`: members whose lease has run out, at most `MAX_LAPSED`. `loads`: in the order in which they were asked for. */
export type MemberLook = { version: number; lapsed: number[]; loads: number[] }

/** The members of the cluster, with leases that expire by one clock for all: that of Redis. */
export interface Members {
  /** Registers this process. Returns its epoch, which is higher than all earlier ones. */
  join(fields: MemberFields): Promise<number>
  /** `version` is that of the members after the renewal. */
  renew(epoch: number, fields: MemberFields, probe: ChannelProbe): Promise<{ outcome: Renewal; version: number }>
  /** Removes a member at once: this process, or one that is registered again under a removed epoch. It cannot renew afterwards. */
  leave(epoch: number): Promise<void>
  /** Without the members that this release cannot understand, or that do not understand it. */
  list(): Promise<MemberList>
  /** Reads the version, the lapsed members and these members' loads, without the whole list. */
  look(loadsOf: readonly number[]): Promise<MemberLook>
  /** Calls `onChange` with each change from now on. A change may be lost: then a later one, a renewal or a look has a higher version. */
  watch(onChange: (change: MemberChange) => void): Promise<void>
  /** An epoch that is no longer a member never becomes one again, unless Redis loses its keys. */
  isMember(epoch: number): Promise<boolean>
  /** Returns `false` from the moment Redis may have lost keys until this process has renewed its lease. */
  isBootMarkerCurrent(): Promise<boolean>
  /** Removes a member whose lease has run out; it cannot renew afterwards. Returns whether it is no longer a member. */
  expire(epoch: number): Promise<boolean>
}
