import type { Attachment } from '../../kernel/attachment.ts'
import { conflict, invalidRequest, notFound } from '../../kernel/errors.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import { isReply, type PermissionDecision, type PermissionKey, type PermissionStore } from './store.ts'

/** A reply and the caller who sent it. */
export type SignedReply = ApiType<'PermissionReplyRequest'> & { by?: string }

/**
 * Decides a permission request as its client replied. Throws `conflict` when an earlier reply has decided it, and `not_found`
 * when it expired, was withdrawn, or does not exist (api.md "Permission request"), and `invalid_request` for a denial to remember or
 * with an input.
 */
export async function reply(
  store: PermissionStore,
  request: PermissionKey,
  { allow, reason, remember, input, by }: SignedReply,
): Promise<void> {
  if (remember && !allow) throw invalidRequest('only an allowed tool can be remembered: leave remember out', REMEMBER)
  if (input && !allow) throw invalidRequest('a call that is denied needs no input: leave input out', INPUT)
  const decision: PermissionDecision = {
    state: allow ? 'allowed' : 'denied',
    ...(reason !== undefined && { reason }),
    ...(remember && { remember }),
    ...(input && { input: JSON.stringify(input) }),
    ...(by !== undefined && { by }),
  }
  const { isWon, state } = await store.decide(request, decision)
  if (isWon) return
  if (isReply(state)) {
    throw conflict(`permission request ${request.id} was already replied to: it was ${state}`)
  }
  throw notFound(`no pending permission request ${request.id}: it expired, its run ended, or it never existed`)
}

/** The result of a call that the client has executed, and the caller who sent it. */
export type SignedAnswer = { answer: ToolAnswer; by?: string }
type ToolAnswer = { output: string; isError: boolean; attachments?: readonly Attachment[] }

/**
 * Answers a call that the client executes (D45). Throws `conflict` when it was already answered, and `not_found` when it has timed out, its run has
 * ended, or there is no such call.
 */
export async function answerCall(
  store: PermissionStore,
  request: PermissionKey,
  { answer, by }: SignedAnswer,
): Promise<void> {
  const decision = { state: 'answered', answer: JSON.stringify(answer), ...(by !== undefined && { by }) } as const
  const { isWon, state } = await store.decide(request, decision)
  if (isWon) return
  if (isReply(state)) throw conflict('this tool call was already answered')
  throw notFound(
    'no tool call of this run waits for an answer under this id: it expired, its run ended, or it never existed',
  )
}

const REMEMBER = { param: '/remember' }
const INPUT = { param: '/input' }
