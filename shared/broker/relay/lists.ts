import type { TenantId } from '../../tenant.ts'
import { mergeRemembered } from '../permissions/remembered-page.ts'
import { isUnanswered } from '../placement/session-router.ts'
import type { PageRequest, RememberedPage, RunFilter, RunPage } from '../port.ts'
import { mergePages } from '../run-page.ts'
import type { WorkerCalls } from './worker-calls.ts'

type Listing = { tenant: TenantId; filter: RunFilter; epochs: Iterable<number> }

const MISSING: RunPage = { runs: [], next_cursor: null, incomplete: true }

/**
 * Merges the pages of the workers and executors of these epochs that answer. Throws `unavailable` when none does. The runs of one that
 * is lost meanwhile are lost with it.
 */
export async function listRuns(
  calls: Pick<WorkerCalls, 'call' | 'isWorkerLost'>,
  { tenant, filter, epochs }: Listing,
): Promise<RunPage> {
  let silence: unknown
  const readPage = async (epoch: number): Promise<RunPage[]> => {
    try {
      return [await calls.call({ epoch }, 'listRuns', [tenant, filter])]
    } catch (cause) {
      if (!isUnanswered(cause)) throw cause
      if (!calls.isWorkerLost(epoch, cause)) silence = cause
      return []
    }
  }
  const pages = (await Promise.all(Array.from(epochs, readPage))).flat()
  if (silence && pages.length === 0) throw silence
  return mergePages(silence ? [...pages, MISSING] : pages, filter.limit)
}

type RememberedListing = { tenant: TenantId; page: PageRequest; epochs: Iterable<number> }

/** Merges the pages of all workers. The sessions of one that is lost meanwhile are lost with it. */
export async function listRemembered(
  calls: Pick<WorkerCalls, 'call' | 'callEach'>,
  { tenant, page, epochs }: RememberedListing,
): Promise<RememberedPage> {
  const ask = (epoch: number) => calls.call({ epoch }, 'listRemembered', [tenant, page])
  return mergeRemembered(await calls.callEach(epochs, ask), page.limit)
}
