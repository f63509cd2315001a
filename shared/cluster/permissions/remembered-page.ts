import type { PageRequest } from '../../kernel/cursor.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import { type ListPosition, pageOf, writeCursor } from '../list-page.ts'

/** One item of `GET /permissions?state=remembered`: a tool that is allowed for the rest of a session. */
export type RememberedPermission = ApiType<'RememberedPermission'>

export type RememberedPage = { permissions: RememberedPermission[]; next_cursor: string | null }

/** Returns a page of the tools that are remembered in sessions, newest first. Throws `invalid_request` for a foreign cursor. */
export function rememberedPage(all: readonly RememberedPermission[], request: PageRequest): RememberedPage {
  const { page, next } = pageOf(all, positionOf, { ...request, idPattern: PLACE })
  return { permissions: page, next_cursor: next }
}

/**
 * Merges the pages of several workers, all read with the same cursor and limit, into one page. A session that is being handed over may be in two
 * of them.
 */
export function mergeRemembered(pages: readonly RememberedPage[], limit: number): RememberedPage {
  const all = new Map(pages.flatMap(({ permissions }) => permissions).map((each) => [positionOf(each).id, each]))
  const merged = rememberedPage([...all.values()], { limit })
  const last = merged.permissions.at(-1)
  const hasMore = last && pages.some(({ next_cursor }) => next_cursor !== null)
  return hasMore ? { ...merged, next_cursor: writeCursor(positionOf(last)) } : merged
}

const positionOf = ({ remembered_at, session_id, tool_name }: RememberedPermission): ListPosition => ({
  startedMs: Date.parse(remembered_at),
  id: `${session_id} ${tool_name}`,
})

const PLACE = /^[A-Za-z0-9._:-]{1,128} .{1,256}$/
