import { hash } from 'node:crypto'
import type { TenantId } from '../../../../kernel/tenant.ts'
import { type BatchAnswer, type BatchCall, GOES_LIVE } from '../port.ts'
import { PAUSE, pauseAfter, SUBMIT_MS } from './news.ts'
import type { CallOwner, Parcel, PoolStore, Wave } from './store.ts'

/** Only calls with at least this much time wait for a batch, which may take that long. */
const LEAST_HOURS = 1
/**
 * The last shares of the time until a deadline. In `LAST_SHARE` nothing is sent to a vendor any more and running
 * batches are cancelled; in `LIVE_SHARE` no call waits for a batch.
 */
export const LIVE_SHARE = 0.1
export const LAST_SHARE = 0.2
export const mayWaitForBatches = (hours: number | undefined): boolean => hours !== undefined && hours >= LEAST_HOURS

/** How long the calls of a pool are gathered: until none has come for `quiet`, and at most `most`. */
export const GATHER = { quiet: 5_000, most: 120_000 }
/** A parcel is stored as one document; a larger wave is divided into several parcels. */
const PARCEL_BYTES = 4 * 1024 * 1024

/** `until_ms`: until when the calls wait for a vendor. */
export type Terms = { instance: string; until_ms: number; expires_ms: number }

type PoolDeps = { store: PoolStore; now: () => Date }

/** The callers' side of the calls that wait for vendors' batches (D58). */
export class CallPool {
  readonly store: PoolStore
  readonly #now: () => Date

  constructor({ store, now }: PoolDeps) {
    this.store = store
    this.#now = now
  }

  /**
   * Adds calls as the owner's next waves, beginning with `number`, which the owner counts. If a number is taken, another process has already added
   * them. A call that is too long for the store is not sent.
   */
  async add(tenant: TenantId, owner: CallOwner, { calls, number, ...terms }: Added): Promise<void> {
    const lines = calls.map((call) => ({ call, json: JSON.stringify(call) }))
    const isLong = ({ json }: Line) => Buffer.byteLength(json) > PARCEL_BYTES
    const long = lines.filter(isLong).map(({ call }): [string, BatchAnswer] => [call.id, GOES_LIVE])
    if (long.length > 0) await this.store.addAnswers(tenant, owner, { ...terms, answers: new Map(long) })
    let wave = number
    for (const some of parcelsOf(lines.filter((line) => !isLong(line))))
      if (!(await this.#addWave(tenant, { ...owner, wave: wave++ }, { lines: some, terms }))) return
  }

  /** The wave is stored first, so that a process that has read older answers finds the number taken. */
  async #addWave(tenant: TenantId, key: CallOwner & { wave: number }, { lines, terms }: Adding): Promise<boolean> {
    const { instance, until_ms, expires_ms } = terms
    const [entered_ms, calls] = [this.#now().getTime(), lines.map(({ call }) => call.id)]
    const wave: Wave = { ...key, state: 'pooled', vendor_id: null, at_ms: entered_ms, calls }
    if (!(await this.store.addWave(tenant, wave, expires_ms))) return false
    if (this.#now().getTime() - entered_ms > SUBMIT_MS / 2) return false // The wave may soon be treated as lost.
    const json = `[${lines.map((line) => line.json).join(',')}]`
    const pool = poolOf(instance, lines[0]?.call)
    const parcel: Parcel = {
      ...key,
      pool,
      instance,
      calls,
      bytes: Buffer.byteLength(json),
      entered_ms,
      until_ms,
      expires_ms,
    }
    await this.store.addParcel(tenant, parcel, json)
    await this.#wake(tenant, parcel)
    return true
  }

  /** The wave while it waits; `undefined` when its calls have their answers, or were lost. */
  async look(tenant: TenantId, wave: Wave): Promise<Wave | undefined> {
    const { store } = this
    const parcel = await store.parcel(tenant, wave)
    if (parcel) {
      await this.#wake(tenant, parcel, PAUSE.most)
      return wave
    }
    const answers = await store.answers(tenant, wave)
    if (wave.calls.every((call) => answers.has(call))) await store.changeWave(tenant, wave, { state: 'answered' })
    else if (this.#now().getTime() - wave.at_ms < SUBMIT_MS)
      return wave // The wave is still being added.
    else await store.removeWave(tenant, wave)
    return undefined
  }

  /** Keeps a vendor's answers to a wave without a parcel. */
  async keep(tenant: TenantId, wave: Wave & { expires_ms: number }, answers: ReadonlyMap<string, BatchAnswer>) {
    await this.store.addAnswers(tenant, wave, { answers: answersTo(wave.calls, answers), expires_ms: wave.expires_ms })
    await this.store.changeWave(tenant, wave, { state: 'answered' })
  }

  /** Withdraws the calls of a wave; those that were not sent to the vendor never are. */
  async withdraw(tenant: TenantId, wave: Wave): Promise<void> {
    const parcel = await this.store.withdraw(tenant, wave)
    if (parcel) await this.#wake(tenant, parcel, 0)
  }

  /** When the owner of a wave looks again if it gets no notice of the answers. */
  nextLook({ at_ms }: Wave): number {
    const nowMs = this.#now().getTime()
    return nowMs + pauseAfter(nowMs - at_ms)
  }

  #wake(tenant: TenantId, { pool, instance }: Parcel, inMs = GATHER.quiet): Promise<unknown> {
    return this.store.open.wake({ owner: tenant, pool, instance }, this.#now().getTime() + inMs)
  }
}

/** The answers to calls. A call without an answer, or with a failure that may not occur again, is sent live. */
export function answersTo(
  calls: readonly string[],
  answers: ReadonlyMap<string, BatchAnswer>,
): ReadonlyMap<string, BatchAnswer> {
  const isFinal = ({ status }: BatchAnswer) => status !== 429 && status < 500
  return new Map(
    calls.map((call) => {
      const answer = answers.get(call)
      return [call, answer && isFinal(answer) ? answer : GOES_LIVE]
    }),
  )
}

type Line = { call: BatchCall; json: string }
type Added = Terms & { calls: readonly BatchCall[]; number: number }
type Adding = { lines: readonly Line[]; terms: Terms }

/** The pool of a call: a vendor's batch may only contain calls of one model on one path. */
const poolOf = (instance: string, call: BatchCall | undefined): string =>
  hash('sha256', JSON.stringify([instance, call?.path, call?.body['model']])).slice(0, 24)

/** Divides calls into parcels, by pool and size. */
function parcelsOf(lines: readonly Line[]): Line[][] {
  const parcels: Line[][] = []
  for (const same of Map.groupBy(lines, ({ call }) => poolOf('', call)).values()) {
    let bytes = Number.POSITIVE_INFINITY
    for (const line of same) {
      bytes += Buffer.byteLength(line.json)
      if (bytes <= PARCEL_BYTES) parcels.at(-1)?.push(line)
      else {
        parcels.push([line])
        bytes = Buffer.byteLength(line.json)
      }
    }
  }
  return parcels
}
