import type { Response } from 'express'
import type { Broker, OnNamed, OpenedRun } from '../../../../shared/cluster/commands/broker.ts'
import type { MessageRequest, SeedMessage } from '../../../../shared/cluster/commands/sessions.ts'
import { hasKind } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { newId } from '../../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import { assertAdmitted } from '../../middleware/admission.ts'
import { assertScope, tenantOf } from '../../middleware/auth.ts'
import { NEW_SESSION, turnOf } from '../../params.ts'
import type { SendReply } from '../../routes/permissions.ts'
import { answerToolCall, cutAnswer } from '../../routes/tool-calls.ts'
import type { Repeated, StartedRun, StartOnce } from '../../starting/start-once.ts'
import { findWaitingRun, type WaitingRun } from '../../starting/waiting-run.ts'
import type { Fields } from './fields.ts'

/** A message to a session. A session that does not exist is created with the history `seed`; without an id a new session begins. */
export type SentMessage = {
  sessionId: string | undefined
  message: MessageRequest
  seed(): SeedMessage[]
  /** Texts of the user right before the message. If the session does not exist, nothing has answered them, and they are sent with the message. */
  unanswered?: readonly string[]
  /** An Idempotency-Key. A request that is sent again has the same one, and joins the run of the first. */
  key?: string | undefined
  /**
   * When the message runs again instead of joining the first run: once that has failed or was cancelled (`failed`), or
   * once it has ended in any way (`ended`).
   */
  again?: 'failed' | 'ended' | undefined
  /** Set for a sender without a key that says which of its requests are repetitions. */
  repeated?: Repeated | undefined
  /** Called before a message is sent, unless it is a repetition. If it rejects, nothing is sent. */
  before?(): Promise<void>
}

/** The answer of a person to a permission request, as a dialect carries it. */
export type PermissionAnswer = { id: string; allow: boolean; reason?: string; input?: JsonObject }

/** The answer of a client to a call that it makes, as a dialect carries it. */
export type CallAnswer = { runId: string; toolUseId: string; output: string; isError?: boolean }

/** Whether the session lacks the message that the new one should follow. */
export const lacksPlace = (cause: unknown): boolean => hasKind(cause, 'invalid_request') && cause.param === '/after'

/** Reads the id of a session from a request. Throws `invalid_request` for one that `POST /sessions` would refuse. */
export function sessionIdIn(fields: Fields, name: string): string {
  const id = fields.text(name)
  if (NEW_SESSION.pattern.test(id)) return id
  throw fields.wrong(name, NEW_SESSION.wanted)
}

/** Starts the runs of conversations that a dialect keeps as sessions, and answers their permission requests. */
export class Conversations {
  readonly #broker: Broker
  readonly #once: StartOnce
  readonly #reply: SendReply

  constructor({ broker, once, reply }: { broker: Broker; once: StartOnce; reply: SendReply }) {
    this.#broker = broker
    this.#once = once
    this.#reply = reply
  }

  /**
   * Starts a run that needs no reader: at an approval the response ends, and nobody reads until the next request. When a person writes a
   * message instead of answering, the open requests are denied (D39.1). `operation` keeps the keys of the dialects apart.
   */
  async send(
    res: Response,
    operation: string,
    { key, again, repeated, before, ...sent }: SentMessage,
  ): Promise<StartedRun & { sessionId: string }> {
    assertAdmitted(res)
    const sessionId = sent.sessionId ?? newId('sess')
    // A person reads the answer, although the run needs no reader.
    const turn = { priority: 'interactive' as const, ...turnOf(res.req) }
    const message = { ...turn, ...sent.message, background: true, if_waiting: 'deny' as const }
    const open = async (onNamed?: OnNamed) => {
      await before?.()
      return this.#open(res, { ...sent, sessionId, message }, onNamed)
    }
    const request = { sessionId: sent.sessionId, message: sent.message }
    const isAnother = again && ((runId: string) => this.#isOver(tenantOf(res), runId, again))
    const use = key === undefined ? repeated : { key, request, isAnother }
    if (use === undefined) return { ...(await open()), isReplayed: false, sessionId }
    const started = await this.#once.start(tenantOf(res), { operation, ...use, open })
    if (!started.isReplayed) return { ...started, sessionId }
    res.setHeader('Idempotency-Replayed', 'true')
    if (sent.sessionId !== undefined) return { ...started, sessionId }
    const { session_id: begun = sessionId } = await this.#broker.getRun(tenantOf(res), started.runId)
    return { ...started, sessionId: begun }
  }

  /** Whether the run has ended in a way after which its message runs again. */
  async #isOver(tenant: TenantId, runId: string, again: NonNullable<SentMessage['again']>): Promise<boolean> {
    try {
      const { status } = await this.#broker.getRun(tenant, runId)
      return status === 'failed' || status === 'cancelled' || (again === 'ended' && status === 'done')
    } catch (cause) {
      if (hasKind(cause, 'not_found')) return true
      throw cause
    }
  }

  async #open(
    res: Response,
    {
      sessionId,
      message,
      unanswered = [],
      seed,
    }: Pick<SentMessage, 'message' | 'unanswered' | 'seed'> & {
      sessionId: string
    },
    onNamed?: OnNamed,
  ): Promise<OpenedRun> {
    const tenant = tenantOf(res)
    const send = (sent: MessageRequest) => this.#broker.sendMessage(tenant, sessionId, sent, onNamed)
    const sendOrBegin = (sent: MessageRequest) =>
      send(sent).catch((cause: unknown) => {
        if (sent.path === undefined || !lacksPlace(cause)) throw cause
        return send({ ...sent, path: [], seed: seed() }) // The session has none of the listed messages: they begin a new branch.
      })
    try {
      return await sendOrBegin(message)
    } catch (cause) {
      if (!hasKind(cause, 'not_found') || message.after !== undefined) throw cause
    }
    try {
      await this.#broker.createSession(tenant, sessionId, seed())
    } catch (cause) {
      if (!hasKind(cause, 'conflict')) throw cause
      return sendOrBegin(message) // Another request has created it in the meantime.
    }
    const { path: _, prompt, ...rest } = message
    return send({ ...rest, prompt: [...unanswered, prompt].filter((text) => text.trim() !== '').join('\n\n') })
  }

  /** The run of the conversation that waits for somebody's answer; `undefined` when none does. */
  waiting(res: Response, sessionId: string): Promise<WaitingRun | undefined> {
    return findWaitingRun(this.#broker, tenantOf(res), sessionId)
  }

  /** Replies to the requests that are open now, and ignores other answers: a client that sends its whole list repeats earlier answers. */
  async answerWaiting(
    res: Response,
    sessionId: string,
    { answers, outputs }: { answers: readonly PermissionAnswer[]; outputs: readonly CallAnswer[] },
  ): Promise<void> {
    if (answers.length + outputs.length === 0) return
    const { runId, permissionIds = [], toolCallIds = [] } = (await this.waiting(res, sessionId)) ?? {}
    const open = answers.filter(({ id }) => permissionIds.includes(id))
    if (open.length > 0) await this.answer(res, sessionId, open)
    const isOpen = (output: CallAnswer) => output.runId === runId && toolCallIds.includes(output.toolUseId)
    await this.answerCalls(res, outputs.filter(isOpen))
  }

  /** Answers calls that the client executes. A call that is already answered or has timed out keeps its state, as a permission request does. */
  async answerCalls(res: Response, answers: readonly CallAnswer[]): Promise<void> {
    const answer = ({ runId, toolUseId, output, isError = false }: CallAnswer) =>
      answerToolCall(res, { broker: this.#broker, runId, toolUseId, answer: { output: cutAnswer(output), isError } })
    for (const each of answers) await answer(each).catch(leaveDecided)
  }

  /**
   * Replies to permission requests. A request that was decided elsewhere or has timed out is left as it is; the run's events show the outcome.
   * Throws `permission` for a token without the scope `approve`, and `invalid_request` for an input that the tool would not take.
   */
  async answer(res: Response, sessionId: string, answers: readonly PermissionAnswer[]): Promise<void> {
    assertScope(res, 'approve')
    for (const { id, ...reply } of answers) {
      await this.#reply(res, { scopeId: sessionId, requestId: id, reply }).catch(leaveDecided)
    }
  }
}

function leaveDecided(cause: unknown): void {
  if (!hasKind(cause, 'conflict') && !hasKind(cause, 'not_found')) throw cause
}
