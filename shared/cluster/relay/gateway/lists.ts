import type { PageRequest } from '../../../kernel/cursor.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { mergeRuns, mergeSessions } from '../../commands/pages.ts'
import type { RunFilter, RunPage } from '../../commands/runs.ts'
import type { SessionPage } from '../../commands/sessions.ts'
import { mergeLoads, type TenantLoad, type TenantRange } from '../../commands/tenant-loads.ts'
import { isUnanswered } from '../../owners/session-router.ts'
import { mergeRemembered, type RememberedPage } from '../../permissions/remembered-page.ts'
import type { WorkerCalls } from './worker-calls.ts'

type Asking = Pick<WorkerCalls, 'call' | 'isWorkerLost'>
type Listing<Q> = { tenant: TenantId; page: Q; epochs: Iterable<number> }

/**
 * Merges the pages of those workers and executors that answer. Throws `unavailable` when none does. The runs of a process that is lost
 * meanwhile are lost with it.
 */
export async function listRuns(calls: Asking, { tenant, page, epochs }: Listing<RunFilter>): Promise<RunPage> {
  const ask = (epoch: number) => calls.call({ epoch }, 'listRuns', [tenant, page])
  const missing: RunPage = { runs: [], next_cursor: null, incomplete: true }
  return mergeRuns(await answersOf(calls, epochs, { ask, missing }), page.limit)
}

/** The same for the sessions of workers. */
export async function listSessions(
  calls: Asking,
  { tenant, page, epochs }: Listing<PageRequest>,
): Promise<SessionPage> {
  const ask = (epoch: number) => calls.call({ epoch }, 'listSessions', [tenant, page])
  const missing: SessionPage = { sessions: [], next_cursor: null, incomplete: true }
  return mergeSessions(await answersOf(calls, epochs, { ask, missing }), page.limit)
}

/** Merges the pages of all workers. Throws `unavailable` when one does not answer. The sessions of a lost worker are lost with it. */
export async function listRemembered(
  calls: Asking,
  { tenant, page, epochs }: Listing<PageRequest>,
): Promise<RememberedPage> {
  const ask = (epoch: number) => calls.call({ epoch }, 'listRemembered', [tenant, page])
  return mergeRemembered(await answersOf(calls, epochs, { ask }), page.limit)
}

/** Adds up each tenant's load on the processes of these epochs. It is incomplete when one does not answer, or is of an older release. */
export async function listTenants(
  calls: Pick<Asking, 'call'>,
  range: TenantRange,
  epochs: readonly number[],
): Promise<{ tenants: TenantLoad[]; isIncomplete: boolean }> {
  const asked = await Promise.allSettled(epochs.map((epoch) => calls.call({ epoch }, 'listTenants', [range])))
  const answers = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  return { tenants: mergeLoads(answers, range), isIncomplete: answers.length < asked.length }
}

/** The answers of the processes. `missing` stands in for a process that does not answer, unless none does or the process was lost meanwhile. */
async function answersOf<T>(
  calls: Asking,
  epochs: Iterable<number>,
  { ask, missing }: { ask(epoch: number): Promise<T>; missing?: T },
): Promise<T[]> {
  let silence: unknown
  const answerOf = async (epoch: number): Promise<T[]> => {
    try {
      return [await ask(epoch)]
    } catch (cause) {
      if (!isUnanswered(cause)) throw cause
      if (!calls.isWorkerLost(epoch, cause)) silence = cause
      return []
    }
  }
  const answers = (await Promise.all(Array.from(epochs, answerOf))).flat()
  if (!silence) return answers
  if (!missing || answers.length === 0) throw silence
  return [...answers, missing]
}
