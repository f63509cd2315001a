import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WarningEvent } from '../../../../kernel/events.ts'
import type { Log } from '../../../../kernel/log.ts'
import type { TenantId } from '../../../../kernel/tenant.ts'
import type { ModelProvider, Unhurried } from '../../port.ts'
import { AnsweredCalls, type Transport } from '../answered-calls.ts'
import { type BatchAnswer, type BatchCall, GOES_LIVE } from '../port.ts'
import { PAUSE } from './news.ts'
import type { CallPool } from './pool.ts'

/** The calls of an instance whose vendor has batches. */
export type PooledCallsDeps = {
  pool: CallPool
  instance: string
  base: string
  /** Opens the instance with these connections before its own. */
  open(transportOf: (live: Transport) => Transport): Promise<ModelProvider>
  now: () => Date
  log: Log
  /** Resolves after this time, and rejects when the signal is aborted. */
  pause?: (ms: number, signal: AbortSignal) => Promise<unknown>
}

type PooledStream = NonNullable<ModelProvider['pooled']>
/** `isTold`: the client knows that the run waits. */
type Asking = { unhurried: Unhurried; signal: AbortSignal; isTold: boolean }

/** After these ends a run no longer needs its call. A run that moves to another process joins the same call there. */
const LEFT: ReadonlySet<unknown> = new Set(['cancelled', 'session_deleted', 'timeout'])

/**
 * The model calls of runs with a deadline (D58.6): each waits in the pool until the vendor has answered it, and is then streamed from the answer. Its
 * id is derived from the run and the request, so that another process that continues the run joins the same call. A call that is repeated because its
 * answer was of no use is sent live.
 */
export function pooledCalls({ pause = pauseFor, ...deps }: PooledCallsDeps): PooledStream {
  return async function* (request, signal) {
    const { unhurried } = request.caller ?? {}
    if (!unhurried || deps.now().getTime() >= unhurried.untilMs) return undefined
    const item = { traceId: 'trace_', answers: new Map<string, BatchAnswer>() }
    const agent = unhurried.runId
    const opened = async (missing?: BatchCall[]) => {
      const calls = new AnsweredCalls({ item: { ...item, ...(missing && { missing }) }, agent, base: deps.base })
      return calls.priced(await deps.open(calls.behind))
    }
    for (let first = true; ; first = false) {
      const missing: BatchCall[] = []
      for await (const _ of (await opened(missing)).stream(request, signal));
      const [call] = missing
      if (!call || signal.aborted) return signal.aborted ? undefined : opened()
      const id = idOf(unhurried, call)
      if (unhurried.asked.has(id)) return opened()
      unhurried.asked.add(id)
      const answer = yield* answerTo({ ...call, id }, { unhurried, signal, isTold: !first }, { ...deps, pause })
      item.answers.set(call.id, answer)
      if (answer.status < 400) return opened()
    }
  }
}

const waiting = ({ liveMs }: Unhurried): WarningEvent => ({
  type: 'warning',
  code: 'waiting_for_batch',
  message: 'the model call waits for a batch of the vendor, for half the price',
  detail: { until: new Date(liveMs).toISOString() },
})

/** The id leaves out the prompt cache key, which differs between processes. */
function idOf({ runId }: Unhurried, { path, body: { prompt_cache_key: _key, ...body } }: BatchCall): string {
  return `${runId.slice('run_'.length)}-${hash('sha256', JSON.stringify([path, body])).slice(0, 24)}`
}

/** Each call is its own owner, with one wave. */
const ownerOf = (id: string) => ({ batch_id: id, chunk: 0 })

type Answering = AsyncGenerator<WarningEvent, BatchAnswer, undefined>
type Waiting = Pick<PooledCallsDeps, 'pool' | 'instance' | 'now' | 'log'> & Required<Pick<PooledCallsDeps, 'pause'>>

/** Tells that the run waits once the call is in the pool. */
async function* answerTo(call: BatchCall, asking: Asking, deps: Waiting): Answering {
  const { unhurried, signal } = asking
  const { pool, now, pause, log } = deps
  for (let { isTold } = asking; ; isTold = true) {
    let pauseMs = PAUSE.least
    try {
      const found = await look(call, asking, deps)
      if ('answer' in found) return found.answer
      pauseMs = found.pauseMs
    } catch (cause) {
      log.debug('the answer to a call in a batch cannot be read at the moment', { call: call.id, cause })
    }
    if (!isTold) yield waiting(unhurried)
    const leftMs = unhurried.liveMs - now().getTime()
    if (leftMs > 0) await pause(Math.min(pauseMs, leftMs), signal).catch(() => {})
    const isOver = signal.aborted || unhurried.liveMs <= now().getTime()
    if (!isOver) continue
    if (!signal.aborted || LEFT.has(signal.reason)) await withdraw(pool, unhurried.tenant, call.id).catch(() => {})
    return GOES_LIVE
  }
}

async function look(
  call: BatchCall,
  { unhurried }: Asking,
  { pool, instance, now }: Waiting,
): Promise<{ answer: BatchAnswer } | { pauseMs: number }> {
  const { tenant, untilMs, expiresMs } = unhurried
  const owner = ownerOf(call.id)
  const answer = (await pool.store.answers(tenant, owner)).get(call.id)
  if (answer) return { answer }
  const [wave] = await pool.store.waves(tenant, owner)
  if (wave && (await pool.look(tenant, wave))) return { pauseMs: pool.nextLook(wave) - now().getTime() }
  const terms = { instance, until_ms: untilMs, expires_ms: expiresMs }
  if (!wave) await pool.add(tenant, owner, { calls: [call], number: 0, ...terms })
  return { pauseMs: wave ? 0 : PAUSE.least }
}

async function withdraw(pool: CallPool, tenant: TenantId, id: string): Promise<void> {
  for (const wave of await pool.store.waves(tenant, ownerOf(id))) await pool.withdraw(tenant, wave)
}

const pauseFor = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal, ref: false })
