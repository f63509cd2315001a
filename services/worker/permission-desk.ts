import type { PendingPermission, PermissionBook, PermissionDecision } from '../../shared/broker/port.ts'
import type { OpenAsk, Verdict } from '../../shared/engine/permissions.ts'
import { newId } from '../../shared/ids.ts'
import type { Run } from './run.ts'

/**
 * Asks a run's client for permission: the request is decided by the first of a reply, the timeout and the end of the run
 * (api.md "Permission request"). Fails closed: without a decision the answer is no.
 */
export function createPermissionDesk(book: PermissionBook, timeoutMs: number): (run: Run) => OpenAsk {
  return (run) => async () => {
    const request: PendingPermission = { id: newId('perm'), tenant: run.tenant, scopeId: run.scopeId, runId: run.id }
    await book.open(request)
    return { id: request.id, verdict: run.waitFor(awaitVerdict(request, { book, timeoutMs, signal: run.signal })) }
  }
}

type Wait = { book: PermissionBook; timeoutMs: number; signal: AbortSignal }

async function awaitVerdict(request: PendingPermission, { book, timeoutMs, signal }: Wait): Promise<Verdict> {
  const close = (state: 'expired' | 'withdrawn') => void book.decide(request, { state })
  const timer = setTimeout(() => close('expired'), timeoutMs)
  const withdraw = () => close('withdrawn')
  if (signal.aborted) withdraw()
  signal.addEventListener('abort', withdraw, { once: true })
  try {
    return verdictOf(await book.decision(request), timeoutMs)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', withdraw)
  }
}

function verdictOf({ state, reason = '' }: PermissionDecision, timeoutMs: number): Verdict {
  if (state === 'expired') return { isAllowed: false, reason: `nobody answered within ${timeoutMs / 1000} seconds` }
  return { isAllowed: state === 'allowed', reason }
}
