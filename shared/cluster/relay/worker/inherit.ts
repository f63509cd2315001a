import type { HeldClaims } from '../../owners/held-claims.ts'
import type { SessionKey } from '../../owners/owners.ts'
import type { Membership } from '../membership.ts'
import type { ClusterWorker, OwnedSession } from './cluster-worker.ts'

type Inheriting = {
  membership: Pick<Membership, 'isMember' | 'isRebuilt'>
  claims: Pick<HeldClaims<OwnedSession>, 'inherit'>
  worker: Pick<ClusterWorker<OwnedSession>, 'find' | 'inbox'>
}

/**
 * Opens the sessions of a worker that is no longer a member, or of the draining worker `from` that makes this call. Returns for each whether it is
 * open here. Sessions that cannot be opened now, or have another owner, are left to the calls that open one session.
 */
export async function inherit(
  { lost, from }: { lost: number; from: number },
  sessions: readonly SessionKey[],
  { membership, claims, worker }: Inheriting,
): Promise<boolean[]> {
  const [isMember, isRebuilt] = await Promise.all([membership.isMember(lost), membership.isRebuilt()])
  if ((isMember && from !== lost) || !isRebuilt) return sessions.map(() => false)
  const open = async (session: SessionKey) => {
    if (!worker.find(session)) await claims.inherit(session, lost)
    await worker.inbox.getSession(session.tenant, session.id)
  }
  const opened = await Promise.allSettled(sessions.map(open))
  return opened.map(({ status }) => status === 'fulfilled')
}
