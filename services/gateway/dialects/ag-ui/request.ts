import type { ClientTool } from '../../../../shared/agent/tools/client-tools.ts'
import { invalidRequest } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { SESSION } from '../../params.ts'
import { type CallAnswer, type PermissionAnswer, sessionIdIn } from '../shared/conversation.ts'
import { Fields } from '../shared/fields.ts'
import { type NewMessage, readNewMessage, textOf } from '../shared/messages.ts'

/**
 * A request of AG-UI: answers to the interrupts of the run `resumed`, or a message of the user, or both: a user may abandon an interrupt
 * and write something else. `said` throws `invalid_request` where no message of the user ends the list.
 */
export type AgUiRequest = {
  threadId: string
  runId: string
  isCurrent: boolean
  resumed: { engineRunId: string; answers: PermissionAnswer[] } | undefined
  hasMessage: boolean
  /** Whether the client has no messages and sends none: it asks for those of the thread. */
  isOpening: boolean
  said(): NewMessage
  /** The client's own tools. */
  clientTools: ClientTool[]
  /** The results of calls that the client has executed, listed after the last message of the assistant. */
  results: Omit<CallAnswer, 'runId'>[]
  /** The context entries with which the page describes itself to the model. */
  context: readonly Fields[]
  /** The pointers of the fields that are not used. */
  ignored: string[]
}

/** Throws `invalid_request` for what this server cannot take. */
export function readAgUiRequest(body: JsonObject): AgUiRequest {
  const fields = new Fields(body)
  const [threadId, runId, resumed] = [sessionIdIn(fields, 'threadId'), runIdIn(fields), fields.objects('resume')]
  const clientTools = fields.objects('tools').map(toolOf)
  const context = fields.objects('context')
  const messages = fields.objects('messages').filter((message) => !message.has('subagentRunId'))
  const entries = resumed.map(resumeOf)
  const isAbandoned = entries.every(({ isCancelled }) => isCancelled)
  const isAnswered = messages.some((message) => message.get('role') === 'assistant')
  const hasMessage = messages.at(-1)?.get('role') === 'user' && (isAnswered || isAbandoned)
  const answers = entries.map(({ answer, isCancelled }) =>
    hasMessage && isCancelled ? { ...answer, reason: NEW_MESSAGE } : answer,
  )
  const [first] = entries
  return {
    ...{ threadId, runId, isCurrent: CURRENT.test(fields.optionalText('protocolVersion') ?? ''), hasMessage },
    resumed: first && { engineRunId: first.engineRunId, answers },
    isOpening: messages.length === 0 && entries.length === 0,
    clientTools,
    results: resultsIn(messages),
    said: () => readNewMessage(messages, '/messages'),
    context,
    ignored: fields.unread,
  }
}

function toolOf(tool: Fields): ClientTool {
  const description = tool.optionalText('description')
  return {
    name: tool.text('name'),
    ...(description !== undefined && { description }),
    ...(tool.has('parameters') && { input_schema: tool.object('parameters').value }),
  }
}

function resultsIn(messages: readonly Fields[]): AgUiRequest['results'] {
  const last = messages.findLastIndex((message) => message.get('role') === 'assistant')
  const results = messages.slice(last + 1).filter((message) => message.get('role') === 'tool')
  return results.map((message) => {
    const error = message.optionalText('error')
    const text = textOf(message)
    return { toolUseId: message.text('toolCallId'), output: text || (error ?? ''), isError: error !== undefined }
  })
}

/** The reason for denying a permission request that is open when a new message comes (D39.1). */
const NEW_MESSAGE = 'a new message came'

/** Clients send the version from 1.0 on. */
const CURRENT = /^[1-9]\d*\.\d+$/

/** The client's own id of its run. */
function runIdIn(fields: Fields): string {
  const id = fields.text('runId')
  if (SESSION.pattern.test(id)) return id
  throw fields.wrong('runId', `an id that matches ${SESSION.pattern.source}`)
}

const INTERRUPT = /^(run_[0-9a-f]{32})\/(perm_[0-9a-f]{32})$/

/** The id of an interrupt contains the ids of the waiting run and of its request. */
function resumeOf(entry: Fields): { engineRunId: string; answer: PermissionAnswer; isCancelled: boolean } {
  const [, engineRunId, id] = INTERRUPT.exec(entry.text('interruptId')) ?? []
  if (engineRunId === undefined || id === undefined)
    throw entry.wrong('interruptId', 'the id of an interrupt of this server')
  const isCancelled = entry.get('status') === 'cancelled'
  if (isCancelled) return { engineRunId, isCancelled, answer: { id, allow: false, reason: 'cancelled' } }
  const value = entry.get('payload')
  if (typeof value === 'boolean') return { engineRunId, isCancelled, answer: { id, allow: value } }
  const payload = entry.object('payload')
  const [allow, reason] = [payload.optionalFlag('approved'), payload.optionalText('reason')]
  if (allow === undefined) throw invalidRequest('approved must be true or false', { param: `${payload.at}/approved` })
  const input = allow && payload.has('editedArgs') ? payload.object('editedArgs').value : undefined
  return { engineRunId, isCancelled, answer: { id, allow, ...(reason && { reason }), ...(input && { input }) } }
}
