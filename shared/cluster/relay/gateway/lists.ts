import type { PageRequest } from '../../../kernel/cursor.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { mergePages } from '../../commands/run-page.ts'
import type { RunFilter, RunPage } from '../../commands/runs.ts'
import { mergeSessions } from '../../commands/session-page.ts'
import type { SessionPage } from '../../commands/sessions.ts'
import { mergeLoads, type TenantLoad, type TenantRange } from '../../commands/tenant-loads.ts'
import { isUnanswered } from '../../owners/session-router.ts'
import { mergeRemembered, type RememberedPage } from '../../permissions/remembered-page.ts'
import type { WorkerCalls } from './worker-calls.ts'

type Asking = Pick<WorkerCalls, 'call' | 'isWorkerLost'>
type Listing = { tenant: TenantId; filter: RunFilter; epochs: Iterable<number> }

const MISSING: RunPage = { runs: [], next_cursor: null, incomplete: true }

/**
 * Merges the pages of the workers and executors of these epochs that answer. Throws `unavailable` when none does. The runs of one that
 * is lost meanwhile are lost with it.
 */
export async function listRuns(calls: Asking, { tenant, filter, epochs }: Listing): Promise<RunPage> {
  const ask = (epoch: number) => calls.call({ epoch }, 'listRuns', [tenant, filter])
  const { answers: pages, silence } = await askEach(calls, epochs, ask)
  if (silence && pages.length === 0) throw silence
  return mergePages(silence ? [...pages, MISSING] : pages, filter.limit)
}

type PageListing = { tenant: TenantId; page: PageRequest; epochs: Iterable<number> }

const MISSING_SESSIONS: SessionPage = { sessions: [], next_cursor: null, incomplete: true }

/** Merges the pages of the workers that answer. Throws `unavailable` when none does. The sessions of one that is lost are lost with it. */
export async function listSessions(calls: Asking, { tenant, page, epochs }: PageListing): Promise<SessionPage> {
  const ask = (epoch: number) => calls.call({ epoch }, 'listSessions', [tenant, page])
  const { answers: pages, silence } = await askEach(calls, epochs, ask)
  if (silence && pages.length === 0) throw silence
  return mergeSessions(silence ? [...pages, MISSING_SESSIONS] : pages, page.limit)
}

/** Merges the pages of all workers. Throws `unavailable` when one does not answer. The sessions of one that is lost are lost with it. */
export async function listRemembered(calls: Asking, { tenant, page, epochs }: PageListing): Promise<RememberedPage> {
  const ask = (epoch: number) => calls.call({ epoch }, 'listRemembered', [tenant, page])
  const { answers, silence } = await askEach(calls, epochs, ask)
  if (silence) throw silence
  return mergeRemembered(answers, page.limit)
}

/** Adds up what the processes of these epochs hold of each tenant. It is incomplete when one does not answer, or is of an older release. */
export async function listTenants(
  calls: Pick<Asking, 'call'>,
  range: TenantRange,
  epochs: readonly number[],
): Promise<{ tenants: TenantLoad[]; isIncomplete: boolean }> {
  const asked = await Promise.allSettled(epochs.map((epoch) => calls.call({ epoch }, 'listTenants', [range])))
  const answers = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  return { tenants: mergeLoads(answers, range), isIncomplete: answers.length < asked.length }
}

/** The answers of the processes that answer. `silence` is the failure of one that does not, unless it is lost meanwhile. */
async function askEach<T>(
  calls: Asking,
  epochs: Iterable<number>,
  ask: (epoch: number) => Promise<T>,
): Promise<{ answers: T[]; silence: unknown }> {
  let silence: unknown
  const answersOf = async (epoch: number): Promise<T[]> => {
    try {
      return [await ask(epoch)]
    } catch (cause) {
      if (!isUnanswered(cause)) throw cause
      if (!calls.isWorkerLost(epoch, cause)) silence = cause
      return []
    }
  }
  const answers = (await Promise.all(Array.from(epochs, answersOf))).flat()
  return { answers, silence }
}
