import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Priority } from '../../agent/providers/port.ts'
import type { Log } from '../../kernel/log.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { KnownLimits } from './known-limits.ts'
import type { PlacedRun, PlaceLimits, RunPlaces } from './port.ts'
import { placeLimits, type Standing, standings, startsInOrder, UNKNOWN_SECS } from './start-order.ts'

/** A start that waits for a place among the runs of its tenant (D54). */
export interface StartWait {
  /** Resolves when the run has its place, and with `late` when it has waited for as long as it may. Never resolves for one that has left. */
  readonly turn: Promise<'placed' | 'late'>
  /** Where it stands; `undefined` until that is known, and when it waits no more. */
  readonly standing: { place: number; expectedStart: Date | undefined } | undefined
  /** When a client whose start was too late may try again. */
  readonly retryAfterSecs: number
  /** It waits no more. A place that it gets nevertheless is given back. */
  leave(): void
}

/** Resolves when the start has its place, is too late, or has left the line because the signal was aborted. */
export async function turnOf(wait: StartWait, signal?: AbortSignal): Promise<'placed' | 'late' | 'left'> {
  const left = Promise.withResolvers<'left'>()
  const leave = () => {
    wait.leave()
    left.resolve('left')
  }
  signal?.addEventListener('abort', leave, { once: true })
  if (signal?.aborted) leave()
  const how = await Promise.race([wait.turn, left.promise])
  signal?.removeEventListener('abort', leave)
  wait.leave()
  return how
}

export type NewWait = PlacedRun & {
  priority: Priority
  /** How long it waits at most. */
  waitMs: number
  /** How long it has waited at another process. */
  waitedMs?: number
}

export type StartLinesDeps = { limits: Pick<KnownLimits, 'of'>; places: RunPlaces; log: Log }

/** A line of more starts is looked at only after a tenth of a millisecond for each of them: putting it in order takes CPU. */
const LONG = 20
/** How often a line is looked at: another process may have given a place back. */
const LOOK_MS = { first: 100, perPlace: 50, max: 1_000 }

type Line = {
  waiting: Map<string, Waiting>
  /** Those that the places still know. */
  left: Set<string>
  /** The customers whose starts wait, as seen last. */
  customers: ReadonlySet<string>
  wake: PromiseWithResolvers<void>
  /** The number of starts that wait, in all processes. */
  length: number
}

/** The starts that wait at this process. The lines are shared by all processes; each gives the places to its own starts, when it is their turn. */
export class StartLines {
  readonly #deps: StartLinesDeps
  readonly #process = randomUUID()
  readonly #lines = new Map<TenantId, Line>()
  #size = 0

  constructor(deps: StartLinesDeps) {
    this.#deps = deps
  }

  /** The starts that wait. */
  get size(): number {
    return this.#size
  }

  /** For how long the oldest of them has waited. */
  get oldestMs(): number {
    let oldest = 0
    for (const { waiting } of this.#lines.values())
      for (const { waitedMs } of waiting.values()) oldest = Math.max(oldest, waitedMs)
    return oldest
  }

  /** Those of the tenant. */
  sizeOf(tenant: TenantId): number {
    return this.#lines.get(tenant)?.waiting.size ?? 0
  }

  has(tenant: TenantId, runId: string): boolean {
    return this.#lines.get(tenant)?.waiting.has(runId) ?? false
  }

  wait(start: NewWait): Waiting {
    const { tenant, runId } = start
    const found = this.#lines.get(tenant)
    const line = found ?? {
      ...{ waiting: new Map(), left: new Set(), customers: new Set() },
      ...{ wake: Promise.withResolvers<void>(), length: 0 },
    }
    const waiting = new Waiting(start, (isPlaced) => {
      this.#size--
      line.waiting.delete(runId)
      if (isPlaced) return // The places know it.
      line.left.add(runId)
      line.wake.resolve()
    })
    this.#size++
    line.waiting.set(runId, waiting)
    line.left.delete(runId)
    this.#lines.set(tenant, line)
    if (found) line.wake.resolve()
    else void this.#serve(tenant, line)
    return waiting
  }

  /** A place of the tenant may be free. */
  look(tenant: TenantId): void {
    this.#lines.get(tenant)?.wake.resolve()
  }

  /** Gives it a place if it has one already, there is room and nobody waits, or it is its `turn`. */
  async give(waiting: Waiting, limits: PlaceLimits, turn?: Priority): Promise<void> {
    const { places } = this.#deps
    const { place } = await places.take(waiting.start, limits, turn)
    if (place === 'taken' && !waiting.begin()) await places.release(waiting.start)
  }

  async #serve(tenant: TenantId, line: Line): Promise<void> {
    while (line.waiting.size + line.left.size > 0) {
      line.wake = Promise.withResolvers()
      const pauseMs = await this.#lookAt(tenant, line).catch((cause: unknown) => {
        this.#deps.log.debug('the places of runs cannot be reached', { cause })
        for (const waiting of line.waiting.values()) waiting.fail(cause)
        if (line.waiting.size === 0) line.left.clear() // The places forget them by themselves.
        return LOOK_MS.max
      })
      if (line.waiting.size === 0) continue
      if (line.length > LONG) await sleep(line.length / 10, undefined, { ref: false }) // Not with each run that ends.
      const timer = setTimeout(line.wake.resolve, pauseMs).unref()
      await line.wake.promise
      clearTimeout(timer)
    }
    this.#lines.delete(tenant)
  }

  /** Gives the places that are free to the starts of this process whose turn it is. Returns after how long to look again. */
  async #lookAt(tenant: TenantId, line: Line): Promise<number> {
    const { limits: known, places } = this.#deps
    const limits = await known.of(tenant)
    const [asked, left] = [[...line.waiting.values()], [...line.left]]
    const customers = line.customers.union(new Set(asked.flatMap(({ start: { customer } }) => customer ?? [])))
    const seen = await places.look(tenant, {
      ...{ process: this.#process, joined: asked.flatMap((waiting) => waiting.news), left },
      customers: [...customers].filter((customer) => placeLimits(limits, customer).customer !== null),
    })
    line.length = seen.starts.length
    line.customers = new Set(seen.starts.flatMap(({ customer }) => customer ?? []))
    for (const runId of left) if (!line.waiting.has(runId)) line.left.delete(runId)
    for (const { process, runId } of seen.starts)
      if (process === this.#process && !line.waiting.has(runId)) line.left.add(runId) // It had its place meanwhile.
    for (const waiting of asked) waiting.isKnown = false // Unless the places name it, below.
    const own = standings(startsInOrder(tenant, seen, limits), seen, limits).flatMap((standing) => {
      const waiting = line.waiting.get(standing.start.runId)
      return waiting && standing.start.process === this.#process ? [{ waiting, standing }] : []
    })
    for (const { waiting, standing } of own) {
      waiting.isKnown = true
      if (standing.mayBegin)
        await this.give(waiting, placeLimits(limits, waiting.start.customer), standing.start.priority)
      else waiting.stand(standing)
    }
    const first = own.find(({ standing }) => !standing.mayBegin)?.standing.place ?? 0
    return Math.min(LOOK_MS.first + first * LOOK_MS.perPlace, LOOK_MS.max)
  }
}

class Waiting implements StartWait {
  readonly start: NewWait
  /** Whether the places know it. */
  isKnown = false
  readonly #joinedAt = performance.now()
  readonly #turn = Promise.withResolvers<'placed' | 'late'>()
  /** Resolves when it is known where it stands. */
  readonly #stands = Promise.withResolvers<void>()
  readonly #onGone: (isPlaced: boolean) => void
  readonly #timer: NodeJS.Timeout
  #standing: StartWait['standing']
  #over: 'placed' | 'late' | 'left' | undefined

  constructor(start: NewWait, onGone: (isPlaced: boolean) => void) {
    this.start = start
    this.#onGone = onGone
    const leftMs = Math.max(0, start.waitMs - (start.waitedMs ?? 0))
    this.#timer = setTimeout(() => this.#end('late'), leftMs).unref()
    this.#stands.promise.catch(() => {}) // Nobody may be waiting for it: only a start without a wait is.
  }

  get turn(): Promise<'placed' | 'late'> {
    return this.#turn.promise
  }

  get standing(): StartWait['standing'] {
    return this.#over ? undefined : this.#standing
  }

  get retryAfterSecs(): number {
    const expected = this.#standing?.expectedStart
    return expected ? Math.max(1, Math.ceil((expected.getTime() - Date.now()) / 1_000)) : UNKNOWN_SECS
  }

  get waitedMs(): number {
    return (this.start.waitedMs ?? 0) + performance.now() - this.#joinedAt
  }

  /** What the places do not know. */
  get news() {
    const { runId, customer, priority } = this.start
    if (this.isKnown) return []
    return [{ runId, priority, ...(customer !== undefined && { customer }), waitedMs: Math.round(this.waitedMs) }]
  }

  /** Returns whether it has its place, as soon as that is known. Rejects when the places cannot be reached. */
  async begins(): Promise<boolean> {
    await this.#stands.promise
    return this.#over === 'placed'
  }

  fail(cause: unknown): void {
    this.#stands.reject(cause)
  }

  /** The expected start stays as it was told while the place does. */
  stand({ place, waitMs }: Standing): void {
    if (this.#standing?.place !== place || this.#standing.expectedStart === undefined)
      this.#standing = { place, expectedStart: waitMs === undefined ? undefined : new Date(Date.now() + waitMs) }
    this.#stands.resolve()
  }

  /** It has a place. Returns `false` when it waits no more. */
  begin(): boolean {
    return this.#end('placed')
  }

  leave(): void {
    this.#end('left')
  }

  #end(how: 'placed' | 'late' | 'left'): boolean {
    if (this.#over) return false
    this.#over = how
    clearTimeout(this.#timer)
    this.#onGone(how === 'placed')
    this.#stands.resolve()
    if (how !== 'left') this.#turn.resolve(how)
    return true
  }
}
