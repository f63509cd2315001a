/** What a process tells the others of itself, once a second (design §4.6). */
export type MemberFields = {
  role: 'gateway' | 'worker'
  /** `draining`: takes nothing new, and is not in the ring. */
  state: 'active' | 'draining'
  /** Live runs of a worker. */
  load: number
  pid: number
}

/** A process of the cluster. Its epoch is its name: a restart, or a return from the dead, has another one. */
export type Member = MemberFields & { epoch: number; expiresInMs: number }

/** What came of renewing one's lease. `dead`: another process has judged; `empty`: Redis has lost everything. */
export type Renewal = 'renewed' | 'dead' | 'empty'

/** The members of the cluster, by leases that Redis's own clock ends. */
export interface Members {
  /** Enters under a new epoch, higher than all before it. */
  join(fields: MemberFields): Promise<number>
  renew(epoch: number, fields: MemberFields): Promise<Renewal>
  leave(epoch: number): Promise<void>
  list(): Promise<Member[]>
  /** `false` from the moment on in which Redis has lost everything until this process has renewed. */
  isRemembered(): Promise<boolean>
  /** Removes a member whose lease is over; afterwards it cannot renew. Returns whether it is out. */
  expire(epoch: number): Promise<boolean>
}
