import { answeringWithin } from '../../../kernel/async/deadline.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { linked } from '../../../kernel/trace.ts'
import type { Inbox, RunInbox } from '../../commands/inbox.ts'
import type { FrameCursor } from '../../journal/frame-stream.ts'
import {
  AnsweredCalls,
  type CallArgs,
  type CallResult,
  type ReceivedCall,
  readCall,
  type WorkerMethod,
} from '../wire/calls.ts'
import { BY_WORKER, RECORD, type ReceivedRecord, record } from '../wire/records.ts'
import type { Transport } from '../wire/transport.ts'

/**
 * Sends the frames of a cursor to a gateway, under the gateway's number of the stream. Returns the position at which they begin.
 * `onAccepted` is called when the gateway has accepted a new run.
 */
type Follow = (to: FollowedBy, cursor: FrameCursor, onAccepted?: () => void) => number
type FollowedBy = { gateway: number; stream: number }

/** The rest of the caller's time is for sending the answer. */
const ANSWER_SHARE = 0.8

/** The relay's side in a worker or executor: answers calls by `methods` and sends the frames of followed runs. */
export class RelayInbox {
  readonly #transport: Transport
  readonly #methods: Partial<CallTable>
  /** Sends the frames of a run to a gateway. */
  readonly follow: Follow
  readonly #answered = new AnsweredCalls()

  constructor(transport: Transport, methodsOf: (follow: Follow) => Partial<CallTable>) {
    this.#transport = transport
    this.follow = ({ gateway, stream }, cursor, onAccepted) => {
      const { seq } = cursor // Read first: frames may be taken as soon as it is attached.
      transport.outbox('gateway', gateway).attach(stream, cursor, onAccepted)
      return seq
    }
    this.#methods = methodsOf(this.follow)
  }

  onRecord(from: number, received: ReceivedRecord): void {
    const { type, stream, seq, count: pieces } = received
    if (type === RECORD.call) void this.#answer(from, received, readCall(received.body))
    if (type === RECORD.resend) this.#transport.outbox('gateway', from).resend(stream, { seq, pieces })
    if (type === RECORD.readPosition) this.#transport.outbox('gateway', from).confirmRead(stream, { seq, pieces })
    if (type === RECORD.detach) this.#transport.outbox('gateway', from).detach(stream)
  }

  async #answer(from: number, { stream: id, flags }: ReceivedRecord, call: ReceivedCall): Promise<void> {
    const { method, args, within_ms: withinMs = Infinity, trace } = call
    const outbox = this.#transport.outbox(flags === BY_WORKER ? 'worker' : 'gateway', from)
    if (this.#answered.isUnderWay(from, id)) outbox.send(record(RECORD.working, { stream: id }))
    const run = () => answeringWithin(withinMs * ANSWER_SHARE, () => this.#run(from, method, args))
    const text = await this.#answered.answer(from, id, () => linked(trace, run))
    outbox.send(record(RECORD.reply, { stream: id, body: text }))
  }

  #run(from: number, method: string, args: unknown[]): unknown {
    if (!Object.hasOwn(this.#methods, method)) throw new Error(`no method ${method}`)
    const run = this.#methods[method as WorkerMethod] as (from: number, ...args: unknown[]) => unknown
    return run(from, ...args)
  }
}

/** The called methods by name, each with the caller's epoch as an additional first argument. */
type CallTable = {
  [M in WorkerMethod]: (from: number, ...args: CallArgs<M>) => CallResult<M> | Promise<CallResult<M>>
}

/** The methods of an executor. */
export const runMethods = (inbox: RunInbox, follow: Follow) =>
  ({
    followRun: (gateway, tenant, runId, after, stream) =>
      follow({ gateway, stream }, inbox.followRun(tenant, runId, after)),
    listRuns: (_from, ...args) => inbox.listRuns(...args),
    listTenants: (_from, ...args) => inbox.listTenants(...args),
    getRun: (_from, ...args) => inbox.getRun(...args),
    cancelRun: (_from, ...args) => inbox.cancelRun(...args),
    listFiles: (_from, ...args) => inbox.listFiles(...args),
    readFile: (_from, ...args) => inbox.readFile(...args),
  }) satisfies Partial<CallTable>

/**
 * The methods that begin the ownership of a session. `adoptSession` takes over the session of a draining worker, and `inheritSessions` those of a dead one.
 */
export type SessionMethods = Pick<CallTable, 'createSession' | 'adoptSession' | 'inheritSessions'>

/** The methods of a worker. */
export const workerMethods = (inbox: Inbox, sessions: SessionMethods, follow: Follow): CallTable => ({
  ...runMethods(inbox, follow),
  ...sessions,
  listRemembered: (_from, ...args) => inbox.listRemembered(...args),
  forgetRemembered: (_from, ...args) => inbox.forgetRemembered(...args),
  branchOf: (_from, ...args) => inbox.branchOf(...args),
  getSession: (_from, ...args) => inbox.getSession(...args),
  steerRun: (_from, ...args) => inbox.steerRun(...args),
  estimateRun: (_from, ...args) => inbox.estimateRun(...args),
  listSessions: (_from, ...args) => inbox.listSessions(...args),
  listMessages: (_from, ...args) => inbox.listMessages(...args),
  renameSession: (_from, ...args) => inbox.renameSession(...args),
  deleteSession: (_from, ...args) => inbox.deleteSession(...args),
  // A client that follows the run knows its id, so a gateway has accepted the run.
  async followRun(gateway, tenant, runId, after, stream) {
    const cursor = inbox.followRun(tenant, runId, after)
    try {
      await inbox.acceptRun(tenant, runId)
    } catch (cause) {
      cursor.close()
      throw cause
    }
    return follow({ gateway, stream }, cursor)
  },
  async startRun(gateway, tenant, runId, request, stream) {
    await inbox.startRun(tenant, runId, request)
    follow({ gateway, stream }, inbox.followRun(tenant, runId, 0), () => accept(inbox, tenant, runId))
  },
  async sendMessage(gateway, tenant, runId, message, stream) {
    await inbox.sendMessage(tenant, runId, message)
    follow({ gateway, stream }, inbox.followRun(tenant, runId, 0), () => accept(inbox, tenant, runId))
  },
})

/** The run may be gone: the gateway's stream shows that. */
function accept(inbox: Inbox, tenant: TenantId, runId: string): void {
  const accepted = async () => inbox.acceptRun(tenant, runId)
  accepted().catch(() => {})
}
