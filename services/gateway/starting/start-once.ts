import { setTimeout as sleep } from 'node:timers/promises'
import type { Request, Response } from 'express'
import type { Broker, OnNamed, OpenedRun } from '../../../shared/cluster/commands/broker.ts'
import { retryUntil } from '../../../shared/kernel/async/retry.ts'
import { AppError, hasKind } from '../../../shared/kernel/errors.ts'
import { newToken } from '../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import {
  canonicalHash,
  type Idempotency,
  type KeyUse,
  keyMismatch,
  type Reservation,
} from '../../../shared/platform/store/idempotency.ts'
import { subjectOf } from '../middleware/auth.ts'

/** A run that this request has started, or an earlier one with the same key (D25a). */
export type StartedRun = OpenedRun & { isReplayed: boolean }

/**
 * A first attempt always starts a run, even if the same request has started one before. A later attempt joins that run,
 * unless it has failed (D39.6).
 */
export type Attempt = 'first' | 'again'

export type KeyedStart = KeyUse & {
  /** The body of the request: the same key with another body is refused. */
  request: unknown
  /** Set for a client that sends no key, but says which of its requests are repetitions. */
  attempt?: Attempt | undefined
  open(onNamed: OnNamed): Promise<OpenedRun>
  /** Whether a repeated request gets a new run instead of this one. Left out: it always joins this run. */
  isAnother?: ((runId: string) => Promise<boolean>) | undefined
}

/** The prefix of a key's value while its run is being started. The run's id follows it as soon as a worker is asked to start the run. */
const STARTING = 'starting_'
/** How long a second request waits for the first one's start, which takes this long at most. */
const START_MS = 10_000
/** No worker is asked after this part of the time; the rest is for the answer of the last one. */
const ASKING_SHARE = 0.8
/**
 * For how long freeing a key is tried again when the store does not answer. A store that is away for longer keeps the
 * key; a later request takes it over.
 */
const FREE_MS = 60_000
const FREE_EVERY_MS = 500
const LOOK_EVERY_MS = 50

/** Starts one run for each Idempotency-Key of a tenant, however often and to whichever gateways it is sent. */
export class StartOnce {
  readonly #keys: Idempotency
  readonly #broker: Pick<Broker, 'followRun' | 'getRun'>
  readonly #startMs: number

  constructor(keys: Idempotency, broker: Pick<Broker, 'followRun' | 'getRun'>, startMs = START_MS) {
    this.#keys = keys
    this.#broker = broker
    this.#startMs = startMs
  }

  /** Throws `conflict` for a key of another request, and for one whose run cannot be joined any more; and what `open` throws. */
  async start(tenant: TenantId, started: KeyedStart): Promise<StartedRun> {
    const { request, open, operation, key, attempt } = started
    const [use, hash, placeholder] = [{ operation, key }, canonicalHash(request), `${STARTING}${newToken()}`]
    let found = ''
    for (const until = performance.now() + this.#startMs; performance.now() < until; await sleep(LOOK_EVERY_MS)) {
      const reservation = await this.#reserve(tenant, { ...use, hash, id: placeholder })
      if (reservation.state === 'mismatch') throw keyMismatch()
      if (reservation.state === 'reserved') return this.#open(tenant, use, { placeholder, open })
      found = reservation.id
      if (attempt === 'first') return this.#startAnew(tenant, use, { found, placeholder, open })
      if (found.startsWith(STARTING)) continue
      const joined = await (attempt === undefined
        ? this.#joinUnlessRefused(tenant, started, found)
        : this.#joinUnlessFailed(tenant, found))
      if (joined) return joined
      if (await this.#keys.replace(tenant, { ...use, from: found, to: placeholder }))
        return this.#open(tenant, use, { placeholder, open })
    }
    // By now the first process has died or has stopped trying. Earlier it could still have asked another worker, and two runs would have begun.
    const runId = found.slice(STARTING.length)
    if (!runId.startsWith('run_')) return this.#takeOver(tenant, use, { found, placeholder, open })
    const joined = await this.#join(tenant, runId, unknownOutcome)
    await this.#keys.replace(tenant, { ...use, from: found, to: runId }).catch(() => {}) // Without this the next request would wait, too.
    return joined
  }

  /** A refused start frees its key. If the process dies in between the key stays, so that nothing is started twice. */
  async #open(
    tenant: TenantId,
    use: KeyUse,
    { placeholder, open }: { placeholder: string } & Pick<KeyedStart, 'open'>,
  ): Promise<StartedRun> {
    let held = placeholder
    const tried = [placeholder]
    const askUntil = performance.now() + ASKING_SHARE * this.#startMs
    const standFor = async (to: string) => {
      tried.push(to)
      if (!(await this.#keys.replace(tenant, { ...use, from: held, to }))) throw unknownOutcome()
      held = to
    }
    try {
      const opened = await open(async (runId) => {
        if (performance.now() > askUntil) throw tooLate()
        await standFor(STARTING + runId)
      })
      await standFor(opened.runId).catch(() => {}) // The run continues even if this fails.
      return { ...opened, isReplayed: false }
    } catch (cause) {
      await Promise.all(tried.map((id) => this.#free(tenant, { ...use, id })))
      throw cause
    }
  }

  /** Starts another run for the same request. Of several requests that do so at the same time, one gets the key. */
  async #startAnew(
    tenant: TenantId,
    use: KeyUse,
    { found, placeholder, open }: { found: string; placeholder: string } & Pick<KeyedStart, 'open'>,
  ): Promise<StartedRun> {
    const isFree =
      !found.startsWith(STARTING) && (await this.#keys.replace(tenant, { ...use, from: found, to: placeholder }))
    if (isFree) return this.#open(tenant, use, { placeholder, open })
    return { ...(await open(async () => {})), isReplayed: false }
  }

  /** A run that got no place was refused, so its key is free (D54.4). */
  async #joinUnlessRefused(tenant: TenantId, started: KeyedStart, runId: string): Promise<StartedRun | undefined> {
    const run = await this.#broker.getRun(tenant, runId).catch(() => undefined)
    return run?.code === 'no_room' ? undefined : this.#joinOrStart(tenant, started, runId)
  }

  async #joinUnlessFailed(tenant: TenantId, runId: string): Promise<StartedRun | undefined> {
    try {
      const { status } = await this.#broker.getRun(tenant, runId)
      if (status === 'failed' || status === 'cancelled') return undefined
      return { runId, frames: await this.#broker.followRun(tenant, runId, 0), isReplayed: true }
    } catch (cause) {
      if (hasKind(cause, 'not_found')) return undefined
      throw cause
    }
  }

  /** The first process died, or stopped, before it asked a worker, so this request takes its key. */
  async #takeOver(
    tenant: TenantId,
    use: KeyUse,
    { found, placeholder, open }: { found: string; placeholder: string } & Pick<KeyedStart, 'open'>,
  ): Promise<StartedRun> {
    if (!(await this.#keys.replace(tenant, { ...use, from: found, to: placeholder }))) throw unknownOutcome()
    return this.#open(tenant, use, { placeholder, open })
  }

  /** Frees the key when the store does not answer: the reservation may have been made. */
  async #reserve(tenant: TenantId, wanted: KeyUse & { hash: string; id: string }): Promise<Reservation> {
    try {
      return await this.#keys.reserve(tenant, wanted)
    } catch (cause) {
      void this.#free(tenant, wanted)
      throw cause
    }
  }

  /** Resolves after the first try. If the store does not answer, it continues to try in the background, so that the client can use the key again. */
  async #free(tenant: TenantId, held: KeyUse & { id: string }): Promise<void> {
    const free = () => this.#keys.release(tenant, held)
    const until = performance.now() + FREE_MS
    await free().catch(() => void retryUntil(free, { pauses: FREE_EVERY_MS, until, ref: false }).catch(() => {}))
  }

  /** Joins the run of the key. If the repeated request needs a new run, that run's key is made from the key and the old run's id. */
  async #joinOrStart(tenant: TenantId, started: KeyedStart, runId: string): Promise<StartedRun> {
    const { isAnother, key } = started
    if (!isAnother) return this.#join(tenant, runId, over)
    if (!(await isAnother(runId))) {
      try {
        return await this.#join(tenant, runId, over)
      } catch (cause) {
        if (!hasKind(cause, 'conflict')) throw cause // A conflict means that the run's events are no longer kept.
      }
    }
    return this.start(tenant, { ...started, key: `${key} ${runId}` })
  }

  async #join(tenant: TenantId, runId: string, refusal: (runId: string) => AppError): Promise<StartedRun> {
    try {
      return { runId, frames: await this.#broker.followRun(tenant, runId, 0), isReplayed: true }
    } catch (cause) {
      throw hasKind(cause, 'not_found') ? refusal(runId) : cause
    }
  }
}

const tooLate = () =>
  new AppError('unavailable', 'the run could not be started in time; send the request again', { retryAfterSecs: 1 })

const unknownOutcome = () =>
  new AppError(
    'conflict',
    'the first request with this Idempotency-Key did not say whether its run began: look for it in GET /runs, or send a new key',
  )

const over = (runId: string) =>
  new AppError(
    'conflict',
    `this Idempotency-Key stands for ${runId}, which ended too long ago for its events to be repeated: send a new key to run it again`,
  )

/**
 * A request whose client repeats it by itself when a connection breaks, and counts the attempts. The same body of the
 * same caller is the same request (D39.6).
 */
export type Repeated = { key: string; request: unknown; attempt: Attempt }

/** OpenAI's packages send no Idempotency-Key, but the number of the repetition. `undefined` for other clients. */
export function repeatedOf(req: Request, res: Response, body: unknown): Repeated | undefined {
  const count = req.get('x-stainless-retry-count')
  if (count === undefined || !/^\d{1,3}$/.test(count)) return undefined
  const request = [subjectOf(res), body]
  return { key: `repeated ${canonicalHash(request)}`, request, attempt: Number(count) === 0 ? 'first' : 'again' }
}
