import { setTimeout as sleep } from 'node:timers/promises'
import type { PendingPermission, PermissionDecision, PermissionStore } from '../../shared/broker/port.ts'
import type { OpenAsk, Verdict } from '../../shared/engine/permissions.ts'
import { newId } from '../../shared/ids.ts'
import type { Metrics } from '../../shared/metrics.ts'
import type { Run } from './run.ts'

/**
 * Asks a run's client for permission: the request is decided by the first of a reply, the timeout and the end of the run
 * (api.md "Permission request"). Fails closed: without a decision the answer is no.
 */
export function createPermissionRequester(
  book: PermissionStore,
  timeoutMs: number,
  metrics: Metrics,
): (run: Run) => OpenAsk {
  let pendingCount = 0
  metrics.gauge('permissions_pending', () => pendingCount)
  const timed = async (verdict: Promise<Verdict>) => {
    const askedAt = performance.now()
    pendingCount++
    return verdict.finally(() => {
      pendingCount--
      metrics.observe('permission_wait_seconds', (performance.now() - askedAt) / 1000)
    })
  }
  return (run) => async (ask) => {
    const request = requestOf(run, ask, timeoutMs)
    try {
      await book.open(request)
    } catch (cause) {
      void decideSurely(book, request, 'withdrawn') // It may be open all the same, and nobody will act on it.
      throw cause
    }
    return {
      id: request.id,
      verdict: run.waitFor(timed(awaitVerdict(request, { book, timeoutMs, signal: run.signal }))),
    }
  }
}

function requestOf(
  run: Run,
  { toolName, input, message }: Parameters<OpenAsk>[0],
  timeoutMs: number,
): PendingPermission {
  const now = Date.now()
  return {
    id: newId('perm'),
    tenant: run.tenant,
    scopeId: run.scopeId,
    runId: run.id,
    details: {
      tool_name: toolName,
      input,
      message,
      created_at: new Date(now).toISOString(),
      expires_at: new Date(now + timeoutMs).toISOString(),
    },
  }
}

type Wait = { book: PermissionStore; timeoutMs: number; signal: AbortSignal }

async function awaitVerdict(request: PendingPermission, { book, timeoutMs, signal }: Wait): Promise<Verdict> {
  const close = (state: 'expired' | 'withdrawn') => void decideSurely(book, request, state)
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

const DECIDE_AGAIN_MS = 500

/** Until the book has answered: a decision that it did not take, or whose fate is not known, is taken again. Never rejects. */
async function decideSurely(
  book: PermissionStore,
  request: PendingPermission,
  state: 'expired' | 'withdrawn',
): Promise<void> {
  while (true) {
    try {
      await book.decide(request, { state })
      return
    } catch {
      await sleep(DECIDE_AGAIN_MS, undefined, { ref: false })
    }
  }
}

function verdictOf({ state, reason = '' }: PermissionDecision, timeoutMs: number): Verdict {
  if (state === 'expired') return { isAllowed: false, reason: `nobody answered within ${timeoutMs / 1000} seconds` }
  return { isAllowed: state === 'allowed', reason }
}
