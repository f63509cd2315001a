import type { AttachedFile } from '../../../kernel/attachment.ts'
import { decodeCursor, encodeCursor, invalidCursor } from '../../../kernel/cursor.ts'
import { invalidRequest } from '../../../kernel/errors.ts'
import { jsonBytes } from '../../../kernel/json.ts'
import type { ApiType } from '../../../platform/api/api-type.ts'
import type { AssistantBlock, Message, MessageStamp, ToolResultBlock } from '../../providers/port.ts'
import { branchEnds, branchTo, findNamed } from './branches.ts'

type Shown = ApiType<'SessionMessage'>
type Block = Shown['blocks'][number]

/** A session's current branch, all of its messages if there are other branches, and its id, which the cursors of its pages contain. */
export type SessionHistory = { sessionId: string; messages: readonly Message[]; all?: readonly Message[] }
type PageFilter = { limit: number; cursor?: string; runId?: string; head?: string }

/** A page is larger only if its first message alone is. */
const MAX_PAGE_BYTES = 128 * 1024

/** The most branch ends that a page names; the newest are named. */
const MAX_BRANCHES = 100

/**
 * Returns a page of one branch of a session's history, or of one run's messages in it, oldest first (D23). Throws `invalid_request` for
 * a cursor of another list, and for a head that the session does not have.
 */
export function messagePage(
  { sessionId, messages: branch, all = branch }: SessionHistory,
  { limit, cursor, runId, head }: PageFilter,
): ApiType<'ListMessagesResponse'> {
  const after = cursor === undefined ? -1 : seqOf(cursor, sessionId)
  const isMeant = ({ stamp }: Stamped) => stamp.seq > after && (runId === undefined || stamp.runId === runId)
  const messages = head === undefined ? branch : branchOf(all, head)
  const rest = (runId === undefined ? messages : all).filter(hasStamp).filter(isMeant)
  const page: Shown[] = []
  let bytes = 0
  for (const message of rest.slice(0, limit)) {
    const shown = show(message)
    bytes += jsonBytes(shown)
    if (page.length > 0 && bytes > MAX_PAGE_BYTES) break
    page.push(shown)
  }
  const last = rest[page.length - 1]?.stamp
  const hasMore = last !== undefined && page.length < rest.length
  const branches = branchEnds(all).slice(-MAX_BRANCHES)
  return { messages: page, branches, next_cursor: hasMore ? encodeCursor([sessionId, last.seq]) : null }
}

function branchOf(all: readonly Message[], head: string): readonly Message[] {
  const found = findNamed(all, head)?.stamp
  if (!found) throw invalidRequest('head must be the id of a message of this session', { param: '/head' })
  return branchTo(all, found.id)
}

function seqOf(cursor: string, sessionId: string): number {
  const [id, seq] = decodeCursor(cursor, ['string', 'number'])
  if (id !== sessionId || !Number.isSafeInteger(seq) || seq < 0) throw invalidCursor()
  return seq
}

type Stamped = Message & { stamp: MessageStamp }

const hasStamp = (message: Message): message is Stamped => message.stamp !== undefined

const show = (message: Stamped): Shown => ({
  id: message.stamp.id,
  parent_id: message.stamp.parent,
  ...(message.client !== undefined && { client_id: message.client }),
  role: message.role,
  blocks: blocksOf(message),
  run_id: message.stamp.runId,
  at: message.stamp.at,
})

function blocksOf(message: Message): Block[] {
  if (message.role === 'user') return [{ type: 'text', text: message.text }, ...(message.files ?? []).map(showFile)]
  if (message.role === 'tool') return message.results.map(showResult)
  return message.blocks.map(showBlock)
}

const showFile = ({ file_id, name, media_type, bytes }: AttachedFile): Block => ({
  type: 'file',
  ...{ file_id, name, media_type, bytes },
})

/** Files are left out: the output names them. */
const showResult = ({ id, toolName, output, isError, artifacts }: ToolResultBlock): Block => ({
  type: 'tool_result',
  id,
  tool_name: toolName,
  output,
  is_error: isError,
  ...(artifacts && { artifacts: [...artifacts] }),
})

function showBlock(block: AssistantBlock): Block {
  if (block.type === 'tool_use')
    return { type: 'tool_use', id: block.id, tool_name: block.toolName, input: block.input }
  return { type: block.type, text: block.text }
}
