import type { AskRequest, Decision, OpenAsk } from '../../shared/agent/engine/permissions.ts'
import type { ToolOutcome } from '../../shared/agent/tools/port.ts'
import {
  type AskKind,
  clientCallId,
  type PendingPermission,
  type PermissionDecision,
  type PermissionStore,
} from '../../shared/cluster/permissions/store.ts'
import { retryUntil } from '../../shared/kernel/async/retry.ts'
import type { JsonObject } from '../../shared/kernel/events.ts'
import { newId } from '../../shared/kernel/ids.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import type { Run } from '../../shared/work/runs/run.ts'
import type { EventReporter } from './event-reporter.ts'

/** How long a request waits for its reply, by its kind. */
export type AskTimes = Readonly<Record<AskKind, number>>

/**
 * Asks a run's client for permission, or to make a call itself (D45). A request is decided by the first of a reply, the timeout and the end of the run
 * (api.md "Permission request"). Without a decision the tool is denied, or the call has failed.
 */
export function createPermissionRequester(
  store: PermissionStore,
  times: AskTimes,
  {
    metrics,
    reporter,
    log,
  }: { metrics: Metrics; reporter: Pick<EventReporter, 'permissionRequested' | 'permissionResolved'>; log: Log },
): (run: Run) => OpenAsk {
  const measure = createMeasure(metrics)
  return (run) => async (ask) => {
    const timeoutMs = times[ask.kind ?? 'permission']
    const request = requestOf(run, ask, timeoutMs)
    const { created_at, expires_at } = request.details
    if (!ask.earlier) await ask.keep?.({ id: request.id, created_at, expires_at })
    try {
      await store.open(request)
    } catch (cause) {
      // The request may have been stored all the same. Nothing waits for its decision, so no reply may succeed.
      void decideUntilStored(store, request, { state: 'withdrawn' })
      throw cause
    }
    if (!ask.earlier) reporter.permissionRequested(request)
    const decision = measure(awaitDecision(request, { store, timeoutMs, run })).then((made) => {
      if (run.isAbandoned) return made
      reporter.permissionResolved(request, made)
      log.info('permission decided', { ...describe(request), allow: made.allow, how: made.how })
      return made
    })
    return { id: request.id, expiresAt: request.details.expires_at, decision: run.waitFor(decision) }
  }
}

/** Neither the input of the tool nor the reason of the reply. */
const describe = ({ tenant, runId, id, scopeId, details }: PendingPermission) => ({
  tenant,
  run_id: runId,
  session_id: scopeId,
  permission_id: id,
  tool: details.tool_name,
})

/** Returns a function that counts and times the requests that wait for their decision. */
function createMeasure(metrics: Metrics): (decision: Promise<Decision>) => Promise<Decision> {
  let pendingCount = 0
  metrics.gauge('permissions_pending', () => pendingCount)
  return async (decision) => {
    const askedAt = performance.now()
    pendingCount++
    try {
      return await decision
    } finally {
      pendingCount--
      metrics.observe('permission_wait_seconds', (performance.now() - askedAt) / 1000)
    }
  }
}

function requestOf(
  run: Run,
  { kind, toolUseId, toolName, input, message, preview, earlier }: AskRequest,
  timeoutMs: number,
): PendingPermission {
  const now = Date.now()
  return {
    id: earlier?.id ?? (kind === 'tool_call' ? clientCallId(run.id, toolUseId) : newId('perm')),
    tenant: run.tenant,
    scopeId: run.scopeId,
    runId: run.id,
    details: {
      tool_name: toolName,
      tool_use_id: toolUseId,
      input,
      message,
      ...(preview && { preview }),
      created_at: earlier?.created_at ?? new Date(now).toISOString(),
      expires_at: earlier?.expires_at ?? new Date(now + timeoutMs).toISOString(),
    },
  }
}

type Wait = { store: PermissionStore; timeoutMs: number; run: Run }

/** The end of a run waits this long for a store that does not answer. */
const WITHDRAWN_WITHIN_MS = 500

/** Waits for the decision. The request stays open if another worker continues the run. */
async function awaitDecision(request: PendingPermission, { store, timeoutMs, run }: Wait): Promise<Decision> {
  const { signal, superseded } = run
  const leftMs = Date.parse(request.details.expires_at) - Date.now()
  const expire = () => void decideUntilStored(store, request, { state: 'expired' })
  const timer = setTimeout(expire, Math.min(timeoutMs, Math.max(0, leftMs)))
  const withdrawn = Promise.withResolvers<PermissionDecision>()
  const giveUp = () => withdrawn.resolve({ state: 'withdrawn' })
  const over = new AbortController()
  let late: NodeJS.Timeout | undefined
  const withdraw = () => {
    if (run.isAbandoned) return giveUp()
    late = setTimeout(giveUp, WITHDRAWN_WITHIN_MS)
    void decideUntilStored(store, request, { state: 'withdrawn' }).then(({ isWon }) => isWon && giveUp())
  }
  const deny = () => void decideUntilStored(store, request, NEW_MESSAGE)
  if (signal.aborted) withdraw()
  else if (superseded.aborted) deny()
  signal.addEventListener('abort', withdraw, { once: true })
  superseded.addEventListener('abort', deny, { once: true })
  try {
    return decisionOf(await Promise.race([store.decision(request, over.signal), withdrawn.promise]), timeoutMs)
  } finally {
    over.abort()
    clearTimeout(timer)
    clearTimeout(late)
    signal.removeEventListener('abort', withdraw)
    superseded.removeEventListener('abort', deny)
  }
}

const RETRY_MS = 500

/** Repeats the decision until the store has answered, since a failed call may or may not have had an effect. Never rejects. */
const decideUntilStored = (store: PermissionStore, request: PendingPermission, decision: PermissionDecision) =>
  retryUntil(() => store.decide(request, decision), { pauses: RETRY_MS, ref: false })

/** The decision when a new message of the session arrives that does not wait for an answer (D39.1). */
const NEW_MESSAGE: PermissionDecision = { state: 'denied', reason: 'a new message came' }

function decisionOf(
  { state, reason = '', remember, by, input, answer }: PermissionDecision,
  timeoutMs: number,
): Decision {
  if (state === 'expired') {
    return { allow: false, how: 'timeout', reason: `nobody answered within ${timeoutMs / 1000} seconds` }
  }
  const how = state === 'withdrawn' ? 'cancelled' : 'reply'
  return {
    allow: state === 'allowed' || state === 'answered',
    how,
    reason,
    ...(remember && { remember }),
    ...(by !== undefined && { by }),
    ...(input !== undefined && { input: JSON.parse(input) as JsonObject }),
    ...(answer !== undefined && { answer: JSON.parse(answer) as ToolOutcome }),
  }
}
