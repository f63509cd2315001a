import type { Request, Response } from 'express'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import { retryUntil } from '../../shared/kernel/async/retry.ts'
import { hasKind, invalidRequest } from '../../shared/kernel/errors.ts'
import { tenantOf } from './middleware/auth.ts'

/** Aborts when the client has gone before its answer was complete. */
export function leaving(res: Response): AbortSignal {
  const controller = new AbortController()
  if (res.closed) controller.abort()
  else res.once('close', () => res.writableFinished || controller.abort())
  return controller.signal
}

/** Answers with what `work` returns. When the client leaves, `signal` is aborted; its reason is then not an error. */
export async function answerUntilLeft(res: Response, work: (signal: AbortSignal) => Promise<object>): Promise<void> {
  const signal = leaving(res)
  try {
    const body = await work(signal)
    if (!res.closed) res.json(body)
  } catch (cause) {
    if (cause !== signal.reason) throw cause
  }
}

/** Whether a run ends or goes on when its client closes the connection before the answer is complete (D39.5). */
export type OnDisconnect = 'cancel' | 'continue'

/** Reads `X-On-Disconnect`; `undefined` without it. Throws `invalid_request` for another value. */
export function onDisconnectOf(req: Request): OnDisconnect | undefined {
  const value = req.get('X-On-Disconnect')
  if (value === undefined || value === 'cancel' || value === 'continue') return value
  throw invalidRequest('X-On-Disconnect must be cancel or continue', { param: '/X-On-Disconnect' })
}

/** The request to a worker: a run that is to continue without its client is started like one in the background. */
export const withReaderNeeds = <T extends object>(req: Request, request: T): T & { background?: boolean } =>
  onDisconnectOf(req) === 'continue' ? { ...request, background: true } : request

/** A client that lost its connection comes back within this time, or sends its request again. */
const BACK_WITHIN_MS = 3_000
/** For how long cancelling the run is tried again when it fails. */
const TRY_MS = 30_000
const TRY_EVERY_MS = 1_000

type Answered = {
  runId: string
  /** Whether the answer is complete, while its run may go on. */
  isOver?: () => boolean
}

/** Ends the run when the client of this answer leaves before it is complete, and nobody reads the run soon after. */
export function endWithClient(broker: Broker, res: Response, { runId, isOver = () => false }: Answered): void {
  const tenant = tenantOf(res)
  const end = async () => {
    const { ended_at: endedAt, readers = 0 } = await broker.getRun(tenant, runId)
    if (endedAt === null && readers === 0) await broker.cancelRun(tenant, runId)
  }
  const endSoon = () => {
    const retries = { pauses: TRY_EVERY_MS, until: performance.now() + TRY_MS, ref: false }
    const mayPass = (cause: unknown) => !hasKind(cause, 'not_found')
    void retryUntil(end, { ...retries, mayPass }).catch(() => {}) // If all tries fail, the run continues without a reader.
  }
  const onClose = () => {
    if (!res.writableFinished && !isOver()) setTimeout(endSoon, BACK_WITHIN_MS).unref()
  }
  if (res.closed) onClose()
  else res.once('close', onClose)
}
