import type { Workers } from '../../members/workers.ts'
import type { SessionKey } from '../../owners/owners.ts'
import { hashKeyOf } from '../../owners/session-router.ts'
import type { WorkerCalls } from './worker-calls.ts'

/** How many sessions one call opens at a worker, and how many such calls run at a time: opened sessions continue while the next ones open. */
const TOGETHER = 32
const AT_A_TIME = 2
/** How long a worker may take to read them from the store. */
const OPEN_MS = 5_000

type Parts = { workers: Pick<Workers, 'ownerOf'>; calls: Pick<WorkerCalls, 'call'> }

/**
 * Asks the workers that a dead worker's sessions hash to, to claim and open them. Returns the sessions that are open; the state of the others is
 * unknown.
 */
export async function openInherited<S extends SessionKey>(
  lost: number,
  sessions: readonly S[],
  { workers, calls }: Parts,
): Promise<S[]> {
  const byWorker = Map.groupBy(sessions, (session) => workers.ownerOf(hashKeyOf(session)))
  const open = async (epoch: number, some: readonly S[]): Promise<S[]> => {
    const keys = some.map(({ tenant, id }) => ({ tenant, id }))
    const answer = calls.call({ epoch, deadlineMs: OPEN_MS }, 'inheritSessions', [lost, keys])
    const areOpen = await answer.catch(() => []) // A worker of an older release does not know the call.
    return some.filter((_, i) => areOpen[i] === true)
  }
  const openAt = async ([epoch, all]: [number | undefined, readonly S[]]): Promise<S[]> => {
    if (epoch === undefined) return []
    const [opened, parts]: [S[], Iterator<readonly S[]>] = [[], partsOf(all)]
    const work = async () => {
      for (let next = parts.next(); !next.done; next = parts.next()) opened.push(...(await open(epoch, next.value)))
    }
    await Promise.all(Array.from({ length: AT_A_TIME }, work))
    return opened
  }
  return (await Promise.all(Array.from(byWorker, openAt))).flat()
}

function* partsOf<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += TOGETHER) yield all.slice(at, at + TOGETHER)
}
