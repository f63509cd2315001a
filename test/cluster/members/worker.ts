import type { Member } from '../../../shared/cluster/members/members.ts'

/** An active worker without load. */
export const worker = (epoch: number, fields: Partial<Member> = {}): Member => ({
  role: 'worker',
  state: 'active',
  load: 0,
  pid: epoch,
  epoch,
  expiresInMs: 4_000,
  ...fields,
})
