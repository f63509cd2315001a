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
  /** Resolves when the run has its place, and with `late` when its time to wait is over. Never resolves after `leave`. */
  readonly turn: Promise<'placed' | 'late'>
  /** Its place in the queue; `undefined` until that is known, and when it no longer waits. */
  readonly standing: { place: number; expectedStart: Date | undefined } | undefined
  /** When a client whose start was too late may try again. */
  readonly retryAfterSecs: number
  /** Stops waiting. If it still gets a place, that is freed. */
  leave(): void
}

/** Resolves when the start has its place, is too late, or has left the queue because the signal was aborted. */
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

/** A longer queue is checked only after a tenth of a millisecond for each start, because sorting it takes CPU. */
const LONG = 20
/** How often a queue is checked, because another process may have freed a place. */
const LOOK_MS = { first: 100, perPlace: 50, max: 1_000 }

type Line = {
  waiting: Map<string, Waiting>
  /** Starts that no longer wait but are still registered. */
  left: Set<string>
  /** The customers whose starts wait, as seen last. */
  customers: ReadonlySet<string>
  wake: PromiseWithResolvers<void>
  /** The number of starts that wait, in all processes. */
  length: number
}

/**
 * The waiting starts of this process. The queues are shared by all processes; each process takes the places for its own
 * starts when it is their turn.
 */
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

  /** The number of the tenant's waiting starts. */
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
      if (isPlaced) return // The start is already registered.
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

  /** Checks the tenant's queue, because a place may be free. */
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
        if (line.waiting.size === 0) line.left.clear() // They are removed from the queue after a while without this.
        return LOOK_MS.max
      })
      if (line.waiting.size === 0) continue
      if (line.length > LONG) await sleep(line.length / 10, undefined, { ref: false }) // Not at the end of every run.
      const timer = setTimeout(line.wake.resolve, pauseMs).unref()
      await line.wake.promise
      clearTimeout(timer)
    }
    this.#lines.delete(tenant)
  }

  /** Takes free places for the starts of this process whose turn it is. Returns after how long to look again. */
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
      if (process === this.#process && !line.waiting.has(runId)) line.left.add(runId) // The start has got its place meanwhile.
    for (const waiting of asked) waiting.isKnown = false // Set again below if the queue still contains it.
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
  /** Whether it is registered in the shared queue. */
  isKnown = false
  readonly #joinedAt = performance.now()
  readonly #turn = Promise.withResolvers<'placed' | 'late'>()
  /** Resolves when its place in the queue is known. */
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
    this.#stands.promise.catch(() => {}) // Its rejection may have no handler: only a start that must not wait awaits it.
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

  /** The entry of this start for the next report to the shared queue; empty if the queue has it already. */
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

  /** The expected start does not change as long as the place does not. */
  stand({ place, waitMs }: Standing): void {
    if (this.#standing?.place !== place || this.#standing.expectedStart === undefined)
      this.#standing = { place, expectedStart: waitMs === undefined ? undefined : new Date(Date.now() + waitMs) }
    this.#stands.resolve()
  }

  /** Called when it has a place. Returns `false` when it no longer waits. */
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
