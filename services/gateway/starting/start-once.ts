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

/** A run that a request has started, or that an earlier request with the same key has (D25a). */
export type StartedRun = OpenedRun & { isReplayed: boolean }

/** A first attempt starts a run, also where the same request has started one before. A second one joins that, unless it has failed (D39.6). */
export type Attempt = 'first' | 'again'

export type KeyedStart = KeyUse & {
  /** The body of the request: the same key with another request is refused. */
  request: unknown
  /** Set for a client that sends no key, but says which of its requests are repetitions. */
  attempt?: Attempt | undefined
  open(onNamed: OnNamed): Promise<OpenedRun>
  /** Whether a request that is sent again has another run than this one. Left out: it joins the run, however that has ended. */
  isAnother?: ((runId: string) => Promise<boolean>) | undefined
}

/** The value of a key begins with it while its run is being started. Behind it is the run's id as soon as a worker is asked to start the run. */
const STARTING = 'starting_'
/** How long a second request waits for the first one's start, which takes this long at most. */
const START_MS = 10_000
/** The part of that time after which no worker is asked any more: the last one then answers, or is silent, within the rest. */
const ASKING_SHARE = 0.8
/** For how long a key is freed again whose freeing had no answer. A store that is away longer keeps it, for those who send it again to take over. */
const FREE_MS = 60_000
const FREE_EVERY_MS = 500
const LOOK_EVERY_MS = 50

/** Starts one run for each Idempotency-Key of a tenant, however often and at whichever gateways it is sent. */
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
    // By now the first process has died or has stopped trying. Before, it could still have asked another worker, and both runs would have begun.
    const runId = found.slice(STARTING.length)
    if (!runId.startsWith('run_')) return this.#takeOver(tenant, use, { found, placeholder, open })
    const joined = await this.#join(tenant, runId, unknownOutcome)
    await this.#keys.replace(tenant, { ...use, from: found, to: runId }).catch(() => {}) // Otherwise the next request waits, too.
    return joined
  }

  /** A refused start frees its key. A process that dies in between leaves it behind, so that nothing is started twice. */
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
      await standFor(opened.runId).catch(() => {}) // The run goes on anyway.
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

  /** A run that has waited for a place in vain was refused: its key is free (D54.4). */
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

  /** The first process had asked no worker when it died, and asks none any more: its key is this request's now. */
  async #takeOver(
    tenant: TenantId,
    use: KeyUse,
    { found, placeholder, open }: { found: string; placeholder: string } & Pick<KeyedStart, 'open'>,
  ): Promise<StartedRun> {
    if (!(await this.#keys.replace(tenant, { ...use, from: found, to: placeholder }))) throw unknownOutcome()
    return this.#open(tenant, use, { placeholder, open })
  }

  /** A reservation without an answer may have been made anyway. */
  async #reserve(tenant: TenantId, wanted: KeyUse & { hash: string; id: string }): Promise<Reservation> {
    try {
      return await this.#keys.reserve(tenant, wanted)
    } catch (cause) {
      void this.#free(tenant, wanted)
      throw cause
    }
  }

  /** Resolves after the first try. What has no answer is tried again behind the refusal, which lets the client send the key again. */
  async #free(tenant: TenantId, held: KeyUse & { id: string }): Promise<void> {
    const free = () => this.#keys.release(tenant, held)
    const until = performance.now() + FREE_MS
    await free().catch(() => void retryUntil(free, { pauses: FREE_EVERY_MS, until, ref: false }).catch(() => {}))
  }

  /** Joins the run of the key, unless the request that is sent again has another one, whose key is made of both. */
  async #joinOrStart(tenant: TenantId, started: KeyedStart, runId: string): Promise<StartedRun> {
    const { isAnother, key } = started
    if (!isAnother) return this.#join(tenant, runId, over)
    if (!(await isAnother(runId))) {
      try {
        return await this.#join(tenant, runId, over)
      } catch (cause) {
        if (!hasKind(cause, 'conflict')) throw cause // Its events are not kept any more.
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

/** A request that its sender repeats by itself when a connection breaks, counting that: the same body of the same caller is the same request (D39.6). */
export type Repeated = { key: string; request: unknown; attempt: Attempt }

/** OpenAI's packages send no Idempotency-Key, but the number of the repetition. `undefined` for other clients. */
export function repeatedOf(req: Request, res: Response, body: unknown): Repeated | undefined {
  const count = req.get('x-stainless-retry-count')
  if (count === undefined || !/^\d{1,3}$/.test(count)) return undefined
  const request = [subjectOf(res), body]
  return { key: `repeated ${canonicalHash(request)}`, request, attempt: Number(count) === 0 ? 'first' : 'again' }
}
