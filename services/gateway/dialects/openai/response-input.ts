import { invalidRequest } from '../../../../shared/kernel/errors.ts'
import { PERMISSION } from '../../params.ts'
import type { CallAnswer, PermissionAnswer } from '../shared/conversation.ts'
import { Fields } from '../shared/fields.ts'
import { type Prompted, readMessages, textOf } from '../shared/messages.ts'
import { readCallId } from './response-id.ts'

/** The output of a client's call that was made in part `part` of its run. */
export type CallOutput = CallAnswer & { part: number }

/** The items of `input`, sorted by purpose. */
export type ResponseInput = {
  /** The answers to approvals. */
  replies: readonly PermissionAnswer[]
  /** The outputs that answer calls. */
  outputs: readonly CallOutput[]
  /** Whether there is a message of the user, at any place in `input`. */
  hasMessage: boolean
  /** Reads the messages. */
  said(): Prompted
}

/** Throws for an answer whose id this server does not know. `hasPrevious`: the request names the response that asked. */
export function readInput(fields: Fields, hasPrevious: boolean): ResponseInput {
  const input = fields.get('input')
  const items = typeof input === 'string' ? [new Fields({ role: 'user', content: input })] : fields.objects('input')
  const answers = items.filter(isAnswer)
  const outputs = lastOutputs(items).map(outputOf)
  if (answers.length > 0 && !hasPrevious && outputs.length === 0)
    throw invalidRequest('answers to approvals need the response that asked', { param: '/previous_response_id' })
  return {
    replies: answers.map(answerOf),
    outputs,
    hasMessage: endsWithMessage(items),
    said: () => saidIn(items),
  }
}

const isAnswer = (item: Fields): boolean => item.get('type') === 'mcp_approval_response'
const isOutput = (item: Fields): boolean => item.get('type') === 'function_call_output'
const isMessage = (item: Fields): boolean => (item.get('type') ?? 'message') === 'message'

function endsWithMessage(items: readonly Fields[]): boolean {
  const last = items.findLast((item) => !isAnswer(item) && !isOutput(item))
  return (
    last !== undefined && isMessage(last) && last.get('role') === 'user' && items.lastIndexOf(last) > lastCallAt(items)
  )
}

const lastCallAt = (items: readonly Fields[]): number =>
  items.findLastIndex((item) => item.get('type') === 'function_call')

/** The outputs after the last call, which answer it. Earlier ones belong to the history, which some clients send in full. */
function lastOutputs(items: readonly Fields[]): Fields[] {
  const isOfAnswer = (item: Fields) => isMessage(item) && item.get('role') === 'assistant'
  return items.slice(Math.max(lastCallAt(items), items.findLastIndex(isOfAnswer)) + 1).filter(isOutput)
}

function outputOf(item: Fields): CallOutput {
  const call = readCallId(item.text('call_id'))
  if (!call) throw item.wrong('call_id', 'the id of a function call of this server, which waits for it')
  return { ...call, output: textOf(item, 'output') }
}

function answerOf(item: Fields): PermissionAnswer {
  const [id, allow, reason] = [
    item.text('approval_request_id'),
    item.optionalFlag('approve'),
    item.optionalText('reason'),
  ]
  if (!PERMISSION.pattern.test(id))
    throw item.wrong('approval_request_id', 'the id of an approval request of this server')
  if (allow === undefined) throw item.wrong('approve', 'true or false')
  return { id, allow, ...(reason && { reason }) }
}

/** Functions that were called before are part of the history, in the form of chat completions. */
function saidIn(items: readonly Fields[]): Prompted {
  const messages = items.flatMap((item) => {
    if (isMessage(item)) return [item]
    if (isOutput(item))
      return [new Fields({ role: 'tool', tool_call_id: item.get('call_id'), content: textOf(item, 'output') }, item.at)]
    if (item.get('type') !== 'function_call') return []
    const made = { name: item.text('name'), arguments: item.optionalText('arguments') ?? '{}' }
    return [new Fields({ role: 'assistant', tool_calls: [{ id: item.get('call_id'), function: made }] }, item.at)]
  })
  return readMessages(messages, '/input')
}
