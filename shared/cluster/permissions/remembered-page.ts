import type { PageRequest } from '../../kernel/cursor.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import { type ListPosition, mergePages, pageOf } from '../list-page.ts'

/** One item of `GET /permissions?state=remembered`: a tool that is allowed for the rest of a session. */
export type RememberedPermission = ApiType<'RememberedPermission'>

export type RememberedPage = { permissions: RememberedPermission[]; next_cursor: string | null }

/** Returns a page of the tools that are remembered in sessions, newest first. Throws `invalid_request` for a foreign cursor. */
export function rememberedPage(all: readonly RememberedPermission[], request: PageRequest): RememberedPage {
  const { page, next } = pageOf(all, positionOf, { ...request, idPattern: PLACE })
  return { permissions: page, next_cursor: next }
}

/** One page of the tools that several workers list. */
export function mergeRemembered(pages: readonly RememberedPage[], limit: number): RememberedPage {
  const { page, rest } = mergePages(pages, { limit, itemsOf: ({ permissions }) => permissions, positionOf })
  return { permissions: page, next_cursor: rest.next_cursor }
}

const positionOf = ({ remembered_at, session_id, tool_name }: RememberedPermission): ListPosition => ({
  startedMs: Date.parse(remembered_at),
  id: `${session_id} ${tool_name}`,
})

const PLACE = /^[A-Za-z0-9._:-]{1,128} .{1,256}$/
