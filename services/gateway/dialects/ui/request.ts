import type { ClientTool } from '../../../../shared/agent/tools/client-tools.ts'
import type { SeedMessage } from '../../../../shared/cluster/commands/sessions.ts'
import { invalidRequest } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { isJsonObject } from '../../../../shared/kernel/json.ts'
import { PERMISSION, RUN } from '../../params.ts'
import type { Attachment } from '../../starting/attach.ts'
import { type CallAnswer, type PermissionAnswer, sessionIdIn } from '../shared/conversation.ts'
import { Fields } from '../shared/fields.ts'
import { fileOf, filesIn, pastFilesIn } from '../shared/file-parts.ts'
import { type Listed, placeInList, refuseUnsupported } from '../shared/messages.ts'
import { type Past, seedOf } from '../shared/seed.ts'

/**
 * A request of `useChat`: a message of the user, or answers to the approvals of the last message, whose id is that of its run. `answers` are
 * those of all listed messages: a person may answer an earlier message and then write a new one.
 */
export type UiRequest = {
  chatId: string
  model: string | undefined
  /** The page's instructions to the model. */
  system: string | undefined
  answers: PermissionAnswer[]
  /** The outputs of the page's own tools in the whole list. Most were sent before. */
  outputs: CallAnswer[]
  /** The pointers of the fields that are not used. */
  ignored: string[]
} & (Prompt | { kind: 'answers'; runId: string; known: ReadonlySet<string> })

type Again = 'never' | 'ended' | 'always'
type Prompt = {
  kind: 'prompt'
  prompt: string
  attachments: Attachment[]
  listed: Listed
  again: Again
  /** The page's own tools, if it sends them. */
  clientTools: ClientTool[] | undefined
  seed(): SeedMessage[]
}

/** Throws `invalid_request` for what this server cannot take. The field `message` stands for a list with it alone. */
export function readUiRequest(body: JsonObject): UiRequest {
  const fields = new Fields(body)
  const chatId = sessionIdIn(fields, 'id')
  const messages = fields.has('message') ? [fields.object('message')] : fields.objects('messages')
  const last = messages.at(-1)
  if (!last) throw fields.wrong('messages', 'a list with the new message at its end')
  const role = last.text('role')
  const again = againOf(fields)
  const common = { chatId, model: fields.optionalText('model'), system: fields.optionalText('system') }
  refuseUnsupported(fields, { tools: 'send the tools of the page as client_tools' })
  const own = fields.objects('client_tools').map(({ value }) => value as ClientTool)
  const clientTools = fields.has('client_tools') ? own : undefined
  const outputs = messages.flatMap(outputsIn)
  const ignored = fields.unread
  const earlier = messages.slice(0, -1).flatMap(earlierAnswersIn)
  if (role === 'assistant') {
    const { answers, ...asked } = answered(last)
    return { ...common, ...asked, answers: [...earlier, ...answers], outputs, ignored }
  }
  if (role !== 'user') throw last.wrong('role', 'user, or assistant for answers to its approvals')
  const [prompt, attachments] = [textOf(last), filesIn(last, 'parts')]
  if (prompt === '' && attachments.length === 0)
    throw last.wrong('parts', 'a list with a part of the type text or file')
  return {
    ...common,
    kind: 'prompt',
    ...{ prompt, attachments },
    listed: placeInList(messages, { isList: !fields.has('message') }),
    again,
    answers: earlier,
    ...{ outputs, clientTools, ignored },
    seed: () => seedOf(messages.slice(0, -1).flatMap(pastOf)),
  }
}

/** Whether a message that was sent before runs again: always for `regenerate`, and for an edit once the first run has ended. */
function againOf(fields: Fields): Again {
  if (fields.optionalText('trigger') === 'regenerate-message') return 'always'
  return fields.optionalText('messageId') === undefined ? 'never' : 'ended'
}

function textOf(message: Fields): string {
  const texts = message.objects('parts').map((part) => {
    if (part.text('type') === 'text') return part.text('text')
    if (fileOf(part)) return ''
    throw part.wrong('type', 'text or file')
  })
  return texts
    .filter((text) => text !== '')
    .join('\n\n')
    .trim()
}

const approvalsIn = (message: Fields) =>
  message.objects('parts').flatMap((part) => {
    const approval = part.get('approval')
    return isJsonObject(approval) ? [{ state: part.get('state'), approval: part.object('approval') }] : []
  })

/** The history of a page may have approvals of another server. */
const earlierAnswersIn = (message: Fields): PermissionAnswer[] =>
  message.get('role') !== 'assistant'
    ? []
    : approvalsIn(message).flatMap(({ state, approval }) => {
        const isOurs = PERMISSION.pattern.test(String(approval.get('id')))
        return state === 'approval-responded' && isOurs ? [answerOf(approval)] : []
      })

/** The run whose approvals the last message answers. */
function answered(message: Fields) {
  const runId = message.text('id')
  if (!RUN.pattern.test(runId)) throw message.wrong('id', 'the id of the message that asked for the approvals')
  const approvals = approvalsIn(message)
  const answers = approvals.flatMap(({ state, approval }) =>
    state === 'approval-responded' ? [answerOf(approval)] : [],
  )
  const calls = ownCallsIn(message).map((part) => part.text('toolCallId'))
  const known = new Set([...approvals.map(({ approval }) => approval.text('id')), ...calls])
  if (answers.length + outputsIn(message).length > 0) return { kind: 'answers' as const, runId, answers, known }
  throw invalidRequest('the last message is of the assistant and answers nothing: send a message of the user', {
    param: message.at,
  })
}

/** The calls of the page's own tools: their parts are neither dynamic nor executed by the server (D46.3). */
const ownCallsIn = (message: Fields): Fields[] =>
  message
    .objects('parts')
    .filter((part) => String(part.get('type')).startsWith('tool-') && part.get('providerExecuted') !== true)

/** The outputs of the page's own tools in a message of the assistant, whose id is that of its run. */
function outputsIn(message: Fields): CallAnswer[] {
  const runId = message.get('id')
  if (message.get('role') !== 'assistant' || typeof runId !== 'string' || !RUN.pattern.test(runId)) return []
  return ownCallsIn(message).flatMap((part) => {
    const [state, toolUseId, output] = [part.get('state'), part.get('toolCallId'), part.get('output')]
    if (typeof toolUseId !== 'string') return []
    if (state === 'output-error')
      return [{ runId, toolUseId, output: part.optionalText('errorText') ?? '', isError: true }]
    if (state !== 'output-available') return []
    return [{ runId, toolUseId, output: typeof output === 'string' ? output : JSON.stringify(output ?? null) }]
  })
}

function answerOf(approval: Fields): PermissionAnswer {
  const [id, allow, reason] = [approval.text('id'), approval.optionalFlag('approved'), approval.optionalText('reason')]
  if (!PERMISSION.pattern.test(id)) throw approval.wrong('id', 'the id of an approval of this server')
  if (allow === undefined) throw approval.wrong('approved', 'true or false')
  return { id, allow, ...(reason && { reason }) }
}

/** Converts a message of the page's history, for a session that no longer exists. Parts without a counterpart are left out. */
function pastOf(message: Fields): Past[] {
  const role = message.get('role')
  if (role !== 'user' && role !== 'assistant') return []
  const id = message.optionalText('id')
  const attachments = role === 'user' ? pastFilesIn(message, 'parts') : []
  const files: Past[] = attachments.length > 0 ? [{ id, role: 'user', text: '', attachments }] : []
  const said = message.objects('parts').flatMap((part): Past[] => {
    const [text, output] = [part.get('text'), part.get('output') ?? part.get('errorText')]
    if (part.get('type') === 'text' && typeof text === 'string') return [{ id, role, text }]
    if (role === 'user' || output === undefined) return []
    const call = {
      id: String(part.get('toolCallId')),
      toolName: toolNameOf(part),
      input: isJsonObject(part.get('input')) ? (part.get('input') as JsonObject) : {},
      output: typeof output === 'string' ? output : JSON.stringify(output),
      isError: part.get('errorText') !== undefined,
    }
    return [{ id, role: 'call', call }]
  })
  return [...said, ...files]
}

/** For a tool that the page knows, the type of the part contains the name. */
function toolNameOf(part: Fields): string {
  const name = part.get('toolName')
  return typeof name === 'string' ? name : part.text('type').replace(/^tool-/, '')
}
