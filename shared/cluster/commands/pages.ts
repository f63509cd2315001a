import { mergePages } from '../list-page.ts'
import type { RunPage } from './runs.ts'
import type { SessionPage, SessionSummary } from './sessions.ts'

/** One page of the runs that several workers list. */
export function mergeRuns(pages: readonly RunPage[], limit: number): RunPage {
  const { page: runs, rest } = mergePages(pages, { limit, itemsOf: (each) => each.runs, positionOf: runPosition })
  return { runs, ...rest }
}

const runPosition = ({ run_id: id, started_at }: RunPage['runs'][number]) => ({ startedMs: Date.parse(started_at), id })

/** One page of the sessions that several workers list. */
export function mergeSessions(pages: readonly SessionPage[], limit: number): SessionPage {
  const merging = { limit, itemsOf: (each: SessionPage) => each.sessions, positionOf: sessionPosition }
  const { page: sessions, rest } = mergePages<SessionSummary, SessionPage>(pages, merging)
  return { sessions, ...rest }
}

/** The position of a session in the list: the latest created comes first, so a message does not change it. */
export const sessionPosition = ({ session_id: id, created_at }: Pick<SessionSummary, 'session_id' | 'created_at'>) => ({
  startedMs: Date.parse(created_at),
  id,
})

/** The form of the ids that cursors of the list hold. */
export const SESSION_ID = /^[A-Za-z0-9._:-]{1,128}$/
