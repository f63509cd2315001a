import { invalidRequest } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { SESSION } from '../../params.ts'
import { type PermissionAnswer, sessionIdIn } from '../shared/conversation.ts'
import { Fields } from '../shared/fields.ts'
import { type NewMessage, readNewMessage } from '../shared/messages.ts'

/** A request of AG-UI: a message of the user, or answers to the interrupts of the run `engineRunId`. */
export type AgUiRequest = { threadId: string; runId: string; isCurrent: boolean } & (
  | ({ kind: 'prompt' } & NewMessage)
  | { kind: 'answers'; engineRunId: string; answers: PermissionAnswer[] }
)

/** Throws `invalid_request` for what this server cannot take. */
export function readAgUiRequest(body: JsonObject): AgUiRequest {
  const fields = new Fields(body)
  const [threadId, runId, resumed] = [sessionIdIn(fields, 'threadId'), runIdIn(fields), fields.objects('resume')]
  if (fields.objects('tools').length > 0)
    throw fields.wrong('tools', 'an empty list: the tools are those of this server, which calls them itself')
  const common = { threadId, runId, isCurrent: CURRENT.test(fields.optionalText('protocolVersion') ?? '') }
  if (resumed.length === 0) {
    const messages = fields.objects('messages').filter((message) => !message.has('subagentRunId'))
    return { ...common, kind: 'prompt', ...readNewMessage(messages, '/messages') }
  }
  const entries = resumed.map(resumeOf)
  const answers = entries.map(({ answer }) => answer)
  return { ...common, kind: 'answers', engineRunId: entries[0]?.engineRunId ?? '', answers }
}

/** Clients send the version from 1.0 on. */
const CURRENT = /^[1-9]\d*\.\d+$/

/** The client's own id of its run. */
function runIdIn(fields: Fields): string {
  const id = fields.text('runId')
  if (SESSION.pattern.test(id)) return id
  throw fields.wrong('runId', `an id that matches ${SESSION.pattern.source}`)
}

const INTERRUPT = /^(run_[0-9a-f]{32})\/(perm_[0-9a-f]{32})$/

/** The id of an interrupt names the run that waits, and its request. */
function resumeOf(entry: Fields): { engineRunId: string; answer: PermissionAnswer } {
  const [, engineRunId, id] = INTERRUPT.exec(entry.text('interruptId')) ?? []
  if (engineRunId === undefined || id === undefined)
    throw entry.wrong('interruptId', 'the id of an interrupt of this server')
  if (entry.get('status') === 'cancelled') return { engineRunId, answer: { id, allow: false, reason: 'cancelled' } }
  const payload = entry.object('payload')
  const [allow, reason] = [payload.optionalFlag('approved'), payload.optionalText('reason')]
  if (allow === undefined) throw invalidRequest('approved must be true or false', { param: `${payload.at}/approved` })
  const input = allow && payload.has('editedArgs') ? payload.object('editedArgs').value : undefined
  return { engineRunId, answer: { id, allow, ...(reason && { reason }), ...(input && { input }) } }
}
