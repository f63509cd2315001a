import type { Member } from '../../../shared/cluster/members/members.ts'

/** An active member without load. */
export const member = (role: Member['role'], epoch: number, fields: Partial<Member> = {}): Member => ({
  role,
  state: 'active',
  load: 0,
  pid: epoch,
  epoch,
  expiresInMs: 4_000,
  ...fields,
})

export const worker = (epoch: number, fields?: Partial<Member>): Member => member('worker', epoch, fields)
