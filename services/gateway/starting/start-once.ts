import { setTimeout as sleep } from 'node:timers/promises'
import type { Broker, OnNamed, OpenedRun } from '../../../shared/cluster/commands/broker.ts'
import { AppError, hasKind } from '../../../shared/kernel/errors.ts'
import { newToken } from '../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import {
  canonicalHash,
  type Idempotency,
  type KeyUse,
  keyMismatch,
} from '../../../shared/platform/store/idempotency.ts'

/** A run that a request has started, or that an earlier request with the same key has (D25a). */
export type StartedRun = OpenedRun & { isReplayed: boolean }

export type KeyedStart = KeyUse & {
  /** The body of the request: the same key with another request is refused. */
  request: unknown
  open(onNamed: OnNamed): Promise<OpenedRun>
}

/** The value of a key begins with it while its run is being started. Behind it is the run's id as soon as a worker is asked to start the run. */
const STARTING = 'starting_'
/** How long a second request waits for the first one's start, which takes this long at most. */
const START_MS = 10_000
const LOOK_EVERY_MS = 50

/** Starts one run for each Idempotency-Key of a tenant, however often and at whichever gateways it is sent. */
export class StartOnce {
  readonly #keys: Idempotency
  readonly #broker: Pick<Broker, 'followRun'>
  readonly #startMs: number

  constructor(keys: Idempotency, broker: Pick<Broker, 'followRun'>, startMs = START_MS) {
    this.#keys = keys
    this.#broker = broker
    this.#startMs = startMs
  }

  /** Throws `conflict` for a key of another request, and for one whose run cannot be joined any more; and what `open` throws. */
  async start(tenant: TenantId, { request, open, operation, key }: KeyedStart): Promise<StartedRun> {
    const [use, hash, placeholder] = [{ operation, key }, canonicalHash(request), `${STARTING}${newToken()}`]
    let found = ''
    for (const until = performance.now() + this.#startMs; performance.now() < until; await sleep(LOOK_EVERY_MS)) {
      const reservation = await this.#keys.reserve(tenant, { ...use, hash, id: placeholder })
      if (reservation.state === 'mismatch') throw keyMismatch()
      if (reservation.state === 'reserved') return this.#open(tenant, use, { placeholder, open })
      found = reservation.id
      if (!found.startsWith(STARTING)) return this.#join(tenant, found, over)
    }
    // By now the first process has died or has stopped trying. Before, it could still have asked another worker, and both runs would have begun.
    const runId = found.slice(STARTING.length)
    if (!runId.startsWith('run_')) throw unknownOutcome()
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
    const standFor = async (to: string) => {
      if (await this.#keys.replace(tenant, { ...use, from: held, to })) held = to
    }
    try {
      const opened = await open((runId) => standFor(STARTING + runId))
      await standFor(opened.runId).catch(() => {}) // The run goes on all the same.
      return { ...opened, isReplayed: false }
    } catch (cause) {
      await this.#keys.release(tenant, { ...use, id: held }).catch(() => {}) // It expires by itself.
      throw cause
    }
  }

  async #join(tenant: TenantId, runId: string, refusal: (runId: string) => AppError): Promise<StartedRun> {
    try {
      return { runId, frames: await this.#broker.followRun(tenant, runId, 0), isReplayed: true }
    } catch (cause) {
      throw hasKind(cause, 'not_found') ? refusal(runId) : cause
    }
  }
}

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
