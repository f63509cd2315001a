import type { PageRequest, RememberedPage, RememberedPermission } from '../port.ts'
import { type Position, pageOf, writeCursor } from '../run-page.ts'

/** Returns a page of the tools that are remembered in sessions, newest first. Throws `invalid_request` for a foreign cursor. */
export function rememberedPage(all: readonly RememberedPermission[], request: PageRequest): RememberedPage {
  const { page, next } = pageOf(all, positionOf, { ...request, idPattern: PLACE })
  return { permissions: page, next_cursor: next }
}

/** Merges the pages of several workers, all read with the same cursor and limit, into one page. */
export function mergeRemembered(pages: readonly RememberedPage[], limit: number): RememberedPage {
  const all = pages.flatMap(({ permissions }) => permissions)
  const merged = rememberedPage(all, { limit })
  const last = merged.permissions.at(-1)
  const hasMore = last && pages.some(({ next_cursor }) => next_cursor !== null)
  return hasMore ? { ...merged, next_cursor: writeCursor(positionOf(last)) } : merged
}

const positionOf = ({ remembered_at, session_id, tool_name }: RememberedPermission): Position => ({
  startedMs: Date.parse(remembered_at),
  id: `${session_id} ${tool_name}`,
})

const PLACE = /^[A-Za-z0-9._:-]{1,128} .{1,256}$/
