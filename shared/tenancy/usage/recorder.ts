import { randomBytes } from 'node:crypto'
import type { Log } from '../../kernel/log.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { truncate } from '../../kernel/text.ts'
import { crossedKey } from './crossed.ts'
import {
  BUCKETS,
  CROSSED,
  DIMENSIONS,
  type Dimension,
  NO_KEY,
  type RunUsage,
  type UsageAddition,
  type UsageStore,
} from './port.ts'
import { addInto, addRow, dayOf, type OwnRows, sumsOf } from './sums.ts'

export type UsageRecorderDeps = {
  store: Pick<UsageStore, 'add'>
  log: Log
  now?: () => Date
  /** How often the usage is written. */
  everyMs?: number
}

/** Counts the usage of each run. */
export type UsageSink = Pick<UsageRecorder, 'add'>

/** The sums of an hour or a day of a tenant. */
type Waiting = { tenant: TenantId; start: string; rows: Record<Dimension, OwnRows> }
type Addition = UsageAddition & { tenant: TenantId }

const EVERY_MS = 2_000
const HOUR_MS = 3_600_000
/** How many hours of tenants may wait for the store; usage beyond that is lost. */
const MAX_HOURS = 5_000
/** How many values of a dimension may wait for the store in one hour or day: more than the store keeps. */
const MAX_KEYS = 1_000
/** Additions that are written at the same time: the hour and the day of each dimension of two tenants. */
const AT_ONCE = 20
/** Further attempts are for additions on which another process was faster, and for usage that was added meanwhile. */
const MAX_CLOSING_TRIES = 3

/**
 * Adds up the usage of this process's runs, by hour, day and dimension, and adds the sums to the stored ones every two seconds. A failed
 * addition is repeated but counted only once, because it keeps its number until it is stored.
 */
export class UsageRecorder {
  readonly #deps: UsageRecorderDeps
  readonly #now: () => Date
  readonly #process = randomBytes(6).toString('base64url')
  /** Hours of tenants. Their days are added up when they are written. */
  readonly #waiting = new Map<string, Waiting>()
  /** The additions that are being written. Sums of the same hours gather in `#waiting` meanwhile. */
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
    const rows = this.#rowsOfHour(tenant)
    if (!rows)
      return this.#deps.log.error('the usage of a run is lost: the store has been away for too long', { tenant })
    const sums = sumsOf(usage)
    for (const by of DIMENSIONS) for (const key of keysOf(usage, by)) addRow(rows[by], [key, sums], MAX_KEYS)
  }

  /** Stores the waiting usage. If the store fails now it is lost. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#flushing
    for (let tries = 0; tries < MAX_CLOSING_TRIES && this.#pending > 0; tries++) if (!(await this.#writeAll())) break
    if (this.#pending > 0)
      this.#deps.log.error('the usage of some runs is lost: the store did not take it', { places: this.#pending })
  }

  get #pending(): number {
    return this.#additions.length + this.#waiting.size * BUCKETS.length * DIMENSIONS.length
  }

  /** `undefined` when too many hours of tenants wait. */
  #rowsOfHour(tenant: TenantId): Waiting['rows'] | undefined {
    const hour = Math.floor(this.#now().getTime() / HOUR_MS)
    const key = `${hour} ${tenant}`
    const known = this.#waiting.get(key)
    if (known || this.#waiting.size >= MAX_HOURS) return known?.rows
    const rows = noRows()
    this.#waiting.set(key, { tenant, start: new Date(hour * HOUR_MS).toISOString(), rows })
    return rows
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
    for (let i = 0; i < pending.length; i += AT_ONCE) {
      const some = pending.slice(i, i + AT_ONCE)
      const added = await Promise.allSettled(some.map(({ tenant, ...each }) => this.#deps.store.add(tenant, each)))
      refused.push(...some.filter((_, j) => !isAdded(added[j])))
      const failure = added.find((each) => each.status === 'rejected')
      if (!failure) continue
      this.#deps.log.debug("a tenant's usage could not be stored; it is tried again", { cause: failure.reason })
      this.#additions = [...refused, ...pending.slice(i + AT_ONCE)]
      return false
    }
    this.#additions = refused
    return true
  }

  #takeWaiting(): Addition[] {
    const hours = [...this.#waiting.values()]
    this.#waiting.clear()
    const places = { hour: hours, day: daysOf(hours) }
    return BUCKETS.flatMap((bucket) =>
      places[bucket].flatMap(({ tenant, start, rows }) =>
        DIMENSIONS.filter((by) => rows[by].size > 0).map((by) => {
          const number = ++this.#number
          return { tenant, by, bucket, start, rows: rows[by], process: this.#process, number }
        }),
      ),
    )
  }
}

function keysOf(usage: RunUsage, by: Dimension): readonly string[] {
  if (by === 'metadata') return (usage.metadata ?? []).map(cut)
  return [by === 'crossed' ? crossedKey(CROSSED.map((each) => cut(usage[each] ?? NO_KEY))) : cut(usage[by] ?? NO_KEY)]
}

/** Longer values, such as some model names, are cut. */
const cut = (value: string): string => truncate(value, 256)

const isAdded = (result: PromiseSettledResult<boolean> | undefined): boolean =>
  result?.status === 'fulfilled' && result.value

const noRows = (): Waiting['rows'] => ({
  model: new Map(),
  kind: new Map(),
  flow: new Map(),
  customer: new Map(),
  subject: new Map(),
  metadata: new Map(),
  crossed: new Map(),
})

function daysOf(hours: readonly Waiting[]): Waiting[] {
  const days = new Map<string, Waiting>()
  for (const { tenant, start: hour, rows } of hours) {
    const start = dayOf(hour)
    const key = `${start} ${tenant}`
    const day = days.get(key) ?? { tenant, start, rows: noRows() }
    days.set(key, day)
    for (const by of DIMENSIONS) addInto(day.rows[by], rows[by], MAX_KEYS)
  }
  return [...days.values()]
}
