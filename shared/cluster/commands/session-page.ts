import { type ListPosition, pageOf, writeCursor } from '../list-page.ts'
import type { SessionPage, SessionSummary } from './sessions.ts'

/** Where a session stands in the list: those created last come first, which no message changes. */
export const sessionPosition = ({ session_id, created_at }: SessionPlace): ListPosition => ({
  startedMs: Date.parse(created_at),
  id: session_id,
})

type SessionPlace = Pick<SessionSummary, 'session_id' | 'created_at'>

/**
 * Merges the pages of several workers, all read with the same cursor and limit, into one page. A session that is being handed over may be
 * in two of them.
 */
export function mergeSessions(pages: readonly SessionPage[], limit: number): SessionPage {
  const byId = new Map(pages.flatMap(({ sessions }) => sessions).map((session) => [session.session_id, session]))
  const { page: sessions, next } = pageOf([...byId.values()], sessionPosition, { limit })
  const last = sessions.at(-1)
  const hasMore = last && pages.some(({ next_cursor }) => next_cursor !== null)
  const isIncomplete = pages.some(({ incomplete }) => incomplete)
  return {
    sessions,
    next_cursor: hasMore ? writeCursor(sessionPosition(last)) : next,
    ...(isIncomplete && { incomplete: true }),
  }
}

/** The form of the ids that cursors of the list hold. */
export const SESSION_ID = /^[A-Za-z0-9._:-]{1,128}$/
