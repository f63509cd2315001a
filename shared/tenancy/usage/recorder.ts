import { randomBytes } from 'node:crypto'
import type { Log } from '../../kernel/log.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import {
  BUCKETS,
  DIMENSIONS,
  NO_KEY,
  type RunUsage,
  type UsageAddition,
  type UsagePlace,
  type UsageRows,
  type UsageStore,
} from './port.ts'
import { addInto, type OwnRows, startOf, sumsOf } from './sums.ts'

export type UsageRecorderDeps = {
  store: Pick<UsageStore, 'add'>
  log: Log
  now?: () => Date
  /** How often what has been used is written. */
  everyMs?: number
}

/** Takes what each run has used. */
export type UsageSink = Pick<UsageRecorder, 'add'>

type Waiting = UsagePlace & { tenant: TenantId; rows: OwnRows }
type Addition = UsageAddition & { tenant: TenantId }

const EVERY_MS = 2_000
/** Hours and days of tenants that wait for the store; what comes on top of them is lost. */
const MAX_PLACES = 50_000
/** Values of a dimension that wait for the store in one place, above those that it keeps. */
const MAX_KEYS = 1_000
/** Each is for what another process was faster with, or for what gathered during the one before. */
const MAX_CLOSING_TRIES = 3

/**
 * Adds up what the runs of this process have used, by hour, day and dimension, and adds the sums to the stored ones every two seconds. What
 * the store did not take is tried again, and counted once: an addition keeps its number until it is stored.
 */
export class UsageRecorder {
  readonly #deps: UsageRecorderDeps
  readonly #now: () => Date
  readonly #process = randomBytes(6).toString('base64url')
  readonly #waiting = new Map<string, Waiting>()
  /** The additions that are being written. Sums of the same places gather in `#waiting` meanwhile. */
  #additions: Addition[] = []
  #number = 0
  readonly #timer: NodeJS.Timeout
  #flushing: Promise<void> | undefined

  constructor(deps: UsageRecorderDeps) {
    this.#deps = deps
    this.#now = deps.now ?? (() => new Date())
    this.#timer = setInterval(() => void this.#flush(), deps.everyMs ?? EVERY_MS).unref()
  }

  /** Counts a run that has ended now. */
  add(tenant: TenantId, usage: RunUsage): void {
    const sums = sumsOf(usage)
    const time = this.#now().toISOString()
    for (const bucket of BUCKETS)
      for (const by of DIMENSIONS) {
        this.#wait({ tenant, by, bucket, start: startOf(time, bucket) }, new Map([[usage[by] ?? NO_KEY, sums]]))
      }
  }

  /** Stores what is waiting. What the store does not take now is lost. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#flushing
    for (let tries = 0; tries < MAX_CLOSING_TRIES && this.#pending > 0; tries++) if (!(await this.#writeAll())) break
    if (this.#pending > 0)
      this.#deps.log.error('the usage of some runs is lost: the store did not take it', { places: this.#pending })
  }

  get #pending(): number {
    return this.#additions.length + this.#waiting.size
  }

  #wait(place: Omit<Waiting, 'rows'>, added: UsageRows): void {
    const { tenant, by, bucket, start } = place
    const key = `${by} ${bucket} ${start} ${tenant}`
    let waiting = this.#waiting.get(key)
    if (!waiting && this.#waiting.size < MAX_PLACES) {
      waiting = { ...place, rows: new Map() }
      this.#waiting.set(key, waiting)
    }
    if (waiting) addInto(waiting.rows, added, MAX_KEYS)
    else if (by === 'kind' && bucket === 'day')
      this.#deps.log.error('the usage of a run is lost: the store has been away for too long', { tenant })
  }

  async #flush(): Promise<void> {
    this.#flushing ??= this.#writeAll().then(() => {
      this.#flushing = undefined
    })
    await this.#flushing
  }

  /** Returns whether the store answers. */
  async #writeAll(): Promise<boolean> {
    if (this.#additions.length === 0) this.#additions = this.#takeWaiting()
    const pending = this.#additions
    const refused: Addition[] = []
    for (const [i, { tenant, ...addition }] of pending.entries()) {
      try {
        if (!(await this.#deps.store.add(tenant, addition))) refused.push({ tenant, ...addition })
      } catch (cause) {
        this.#deps.log.debug("a tenant's usage could not be stored; it is tried again", { cause })
        this.#additions = [...refused, ...pending.slice(i)]
        return false
      }
    }
    this.#additions = refused
    return true
  }

  #takeWaiting(): Addition[] {
    const taken = [...this.#waiting.values()]
    this.#waiting.clear()
    return taken.map((each) => ({ ...each, process: this.#process, number: ++this.#number }))
  }
}
