import type { Request } from 'express'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { canonicalHash } from '../../../../shared/platform/store/idempotency.ts'
import { FLOW, idempotencyKeyOf, PERMISSION, SESSION } from '../../params.ts'
import type { Attachment } from '../../starting/attach.ts'
import type { PermissionAnswer } from '../shared/conversation.ts'
import { Fields } from '../shared/fields.ts'
import { filesIn } from '../shared/file-parts.ts'

/** A message of a client: its ids, its text and the objects among its parts. */
export type IncomingMessage = {
  fields: Fields
  messageId: string
  taskId: string | undefined
  contextId: string | undefined
  text: string
  data: Fields[]
  attachments: Attachment[]
  /** The flow that is to run. */
  flow: string | undefined
  /** The plan that is to be carried out. */
  plan: Fields | undefined
}

export function readMessage(params: Fields): IncomingMessage {
  const fields = params.object('message')
  const contextId = given(fields, 'contextId')
  if (contextId !== undefined && !SESSION.pattern.test(contextId))
    throw fields.wrong('contextId', `an id that matches ${SESSION.pattern.source}`)
  fields.get('role') // Read and ignored: every message of a client is the user's.
  const parts = fields.objects('parts')
  const attachments = filesIn(fields, 'parts')
  const data = parts.filter((part) => part.has('data')).map((part) => part.object('data'))
  return {
    fields,
    messageId: fields.text('messageId'),
    taskId: given(fields, 'taskId'),
    contextId,
    text: parts
      .flatMap((part) => part.optionalText('text') ?? [])
      .join('\n\n')
      .trim(),
    data,
    attachments,
    ...workOf(fields, data, attachments.length > 0),
  }
}

/** The flow or the plan that `metadata` names; without either the message is part of a conversation. The first data of the message may be the plan. */
function workOf(fields: Fields, data: readonly Fields[], hasFiles: boolean): Pick<IncomingMessage, 'flow' | 'plan'> {
  const metadata = fields.has('metadata') ? fields.object('metadata') : new Fields({})
  const flow = metadata.optionalText('flow')
  if (flow !== undefined && !FLOW.pattern.test(flow)) throw metadata.wrong('flow', 'the name of a flow')
  if (hasFiles && (flow !== undefined || metadata.has('plan')))
    throw fields.wrong('parts', 'texts and data for a flow or a plan, which name files by their ids')
  if (!metadata.has('plan')) return { flow, plan: undefined }
  if (flow !== undefined) throw metadata.wrong('plan', 'left out where flow is set')
  const plan = metadata.get('plan') === true ? data[0] : metadata.object('plan')
  if (!plan) throw metadata.wrong('plan', 'a plan, or true where the first data of the message is the plan')
  return { flow, plan }
}

/** The Idempotency-Key of the run of a flow or a plan. A message of a context is known by its id; another by the key of its request. */
export const keyOf = (req: Request, { contextId, messageId }: IncomingMessage): string | undefined =>
  contextId === undefined ? idempotencyKeyOf(req) : canonicalHash(['a2a', contextId, messageId])

/** An empty id means that none is given, as in the protocol's format. */
const given = (fields: Fields, name: string): string | undefined => fields.optionalText(name) || undefined

const WORDS = /^(allow|deny)(?:: *([^]{1,1000}))?$/i

/**
 * The answers to the permission requests of a task: objects `{permissions: [{id, allow, reason, input}]}`, or one of the words `allow`
 * and `deny`, which answers all; `deny: ` may be followed by the reason.
 */
export function readAnswers({ fields, text, data }: IncomingMessage, asked: readonly string[]): PermissionAnswer[] {
  const answers = data.flatMap((each) => each.objects('permissions')).map(answerOf)
  if (answers.length > 0) return answers
  const [, word, reason] = WORDS.exec(text) ?? []
  if (word === undefined)
    throw fields.wrong(
      'parts',
      'the answer: data with permissions, each with id and allow, or one of the words allow and deny',
    )
  const allow = word.toLowerCase() === 'allow'
  return asked.map((id) => ({ id, allow, ...(!allow && reason !== undefined && { reason }) }))
}

function answerOf(answer: Fields): PermissionAnswer {
  const [id, allow, reason] = [answer.text('id'), answer.optionalFlag('allow'), answer.optionalText('reason')]
  if (!PERMISSION.pattern.test(id)) throw answer.wrong('id', 'the id of a permission request')
  if (allow === undefined) throw answer.wrong('allow', 'true or false')
  const input: JsonObject | undefined = allow && answer.has('input') ? answer.object('input').value : undefined
  return { id, allow, ...(reason && { reason }), ...(input && { input }) }
}

/** The input of a flow: the object in the message, or an object with the message's text in the field `text`. */
export const inputOf = ({ data: [object], text }: IncomingMessage): JsonObject => object?.value ?? { text }

/** The prompt for the agent: the text of a message, and its objects as JSON. */
export function promptOf({ fields, text, data, attachments }: IncomingMessage): string {
  const objects = data.map(({ value }) => JSON.stringify(value))
  const prompt = [text, ...objects].filter((each) => each !== '').join('\n\n')
  if (prompt === '' && attachments.length === 0) throw fields.wrong('parts', 'a list with a text, data or a file')
  return prompt
}
