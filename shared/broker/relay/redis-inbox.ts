import type { TenantId } from '../../tenant.ts'
import type { FrameCursor, Inbox, MessageRequest, RunFilter, RunRequest } from '../port.ts'
import { AnsweredCalls, readCall } from './calls.ts'
import { BY_WORKER, RECORD, type ReceivedRecord, record } from './records.ts'
import type { RedisNode } from './redis-node.ts'

/** What workers call of each other, besides the inbox. */
export type AdoptSession = (state: unknown) => void

/** The worker's end of the relay: what gateways call reaches the inbox, the frames they follow go to them. */
export function createRedisInbox(inbox: Inbox, adopt: AdoptSession, node: () => RedisNode) {
  const answered = new AnsweredCalls()

  async function answer(from: number, { stream: id, flags, body }: ReceivedRecord): Promise<void> {
    const { method, args } = readCall(body)
    const text = await answered.answer(from, id, () => perform(from, method, args))
    const back = node().outbox(flags === BY_WORKER ? 'worker' : 'gateway', from)
    back.send(record(RECORD.reply, { stream: id, body: text }))
  }

  const follow = (from: number, stream: number, cursor: FrameCursor) =>
    node().outbox('gateway', from).attach(stream, cursor)

  /** The methods of `Inbox` by their names; those that open a stream take the gateway's number for it last. */
  function perform(from: number, method: string, args: unknown[]): unknown {
    const [tenant, ...rest] = args as [TenantId, ...unknown[]]
    switch (method) {
      case 'createSession':
        return inbox.createSession(tenant, ...(rest as [string]))
      case 'getSession':
        return inbox.getSession(tenant, ...(rest as [string]))
      case 'deleteSession':
        return inbox.deleteSession(tenant, ...(rest as [string]))
      case 'startRun': {
        const [runId, request, stream] = rest as [string, RunRequest, number]
        inbox.startRun(tenant, runId, request)
        return follow(from, stream, inbox.followRun(tenant, runId, 0))
      }
      case 'sendMessage': {
        const [runId, message, stream] = rest as [string, MessageRequest & { sessionId: string }, number]
        inbox.sendMessage(tenant, runId, message)
        return follow(from, stream, inbox.followRun(tenant, runId, 0))
      }
      case 'followRun': {
        const [runId, after, stream] = rest as [string, number, number]
        return follow(from, stream, inbox.followRun(tenant, runId, after))
      }
      case 'listRuns':
        return inbox.listRuns(tenant, ...(rest as [RunFilter]))
      case 'getRun':
        return inbox.getRun(tenant, ...(rest as [string]))
      case 'cancelRun':
        return inbox.cancelRun(tenant, ...(rest as [string]))
      case 'adoptSession':
        return adopt(args[0])
      default:
        throw new Error(`no method ${method}`)
    }
  }

  return {
    onRecord(from: number, received: ReceivedRecord): void {
      const { type, stream, seq } = received
      if (type === RECORD.call) void answer(from, received)
      if (type === RECORD.resend) node().outbox('gateway', from).resend(stream, seq)
      if (type === RECORD.taken) node().outbox('gateway', from).taken(stream, seq)
      if (type === RECORD.detach) node().outbox('gateway', from).detach(stream)
    },
  }
}
