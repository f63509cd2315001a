import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { newId } from '../../../../shared/kernel/ids.ts'
import { FLOW, PERMISSION, SESSION } from '../../params.ts'
import type { PermissionAnswer } from '../shared/conversation.ts'
import { Fields } from '../shared/fields.ts'

/** A message of a client: its ids, its text and the objects among its parts. */
export type IncomingMessage = {
  fields: Fields
  messageId: string
  taskId: string | undefined
  /** That of a new session when the client names none. */
  contextId: string
  hasContext: boolean
  text: string
  data: Fields[]
  /** The flow that is to run. */
  flow: string | undefined
}

export function readMessage(params: Fields): IncomingMessage {
  const fields = params.object('message')
  const contextId = given(fields, 'contextId')
  if (contextId !== undefined && !SESSION.pattern.test(contextId))
    throw fields.wrong('contextId', `an id that matches ${SESSION.pattern.source}`)
  const parts = fields.objects('parts')
  if (parts.some((part) => part.has('raw') || part.has('url'))) throw fields.wrong('parts', 'texts and data')
  return {
    fields,
    messageId: fields.text('messageId'),
    taskId: given(fields, 'taskId'),
    contextId: contextId ?? newId('sess'),
    hasContext: contextId !== undefined,
    text: parts
      .flatMap((part) => part.optionalText('text') ?? [])
      .join('\n\n')
      .trim(),
    data: parts.filter((part) => part.has('data')).map((part) => part.object('data')),
    flow: flowOf(fields),
  }
}

function flowOf(fields: Fields): string | undefined {
  const metadata = fields.has('metadata') ? fields.object('metadata') : undefined
  const flow = metadata?.optionalText('flow')
  if (metadata && flow !== undefined && !FLOW.pattern.test(flow)) throw metadata.wrong('flow', 'the name of a flow')
  return flow
}

/** An empty id is none, as the protocol's format has it. */
const given = (fields: Fields, name: string): string | undefined => fields.optionalText(name) || undefined

const WORDS = /^(allow|deny)(?:: *([^]{1,1000}))?$/i

/**
 * The answers to what a task asks: objects `{permissions: [{id, allow, reason, input}]}`, or one of the words `allow` and `deny`, which
 * answers all; `deny: ` may be followed by the reason.
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

/** The input of a flow: the object of the message, or its field `text`. */
export const inputOf = ({ data: [object], text }: IncomingMessage): JsonObject => object?.value ?? { text }

/** The prompt for the agent: the text of a message, and its objects as JSON. */
export function promptOf({ fields, text, data }: IncomingMessage): string {
  const objects = data.map(({ value }) => JSON.stringify(value))
  const prompt = [text, ...objects].filter((each) => each !== '').join('\n\n')
  if (prompt === '') throw fields.wrong('parts', 'a list with a text or data')
  return prompt
}
