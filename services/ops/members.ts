import type { RequestHandler } from 'express'
import type { Member } from '../../shared/cluster/members/members.ts'
import { withDeadline } from '../../shared/kernel/async/deadline.ts'
import { AppError } from '../../shared/kernel/errors.ts'

/** A process as `/members` shows it. In the standalone form one process has all roles. */
export type ShownMember = Omit<Member, 'role' | 'expiresInMs'> & {
  role: Member['role'] | 'standalone'
  /** `null` where there is no lease. */
  expiresInMs: number | null
}

export type ReadMembers = () => Promise<{ members: readonly ShownMember[] }>

const WITHIN_MS = 3_000
const ID_PREFIX = { gateway: 'gw', worker: 'wk', executor: 'ex', standalone: 'sa' } as const

/** Lists the processes of this deployment, those of a role side by side, the oldest first. `read` returns nothing while this process starts. */
export function answerMembers(read: () => ReadMembers | undefined): RequestHandler {
  return async (_req, res) => {
    const members = await listMembers(read()).catch(() => {
      throw away()
    })
    res.json({ members })
  }
}

/** Throws when the members cannot be read in time. */
export async function listMembers(read: ReadMembers | undefined): Promise<MemberView[]> {
  const { members } = await withDeadline(read?.() ?? Promise.reject(away()), WITHIN_MS, away)
  return members.toSorted((one, other) => compare(one.role, other.role) || one.epoch - other.epoch).map(describe)
}

const away = () =>
  new AppError('unavailable', 'the members cannot be read at the moment; try again', { retryAfterSecs: 1 })

const compare = (one: string, other: string) => (one < other ? -1 : Number(one > other))

/** A member as the ops listener shows it. */
export type MemberView = ReturnType<typeof describe>

const describe = ({ role, epoch, state, load, capacity, version, since, pid, expiresInMs }: ShownMember) => ({
  id: `${ID_PREFIX[role]}_${epoch}`,
  role,
  state,
  load,
  capacity: capacity ?? null,
  version: version ?? null,
  since: since ?? null,
  pid,
  lease_ms: expiresInMs,
})
