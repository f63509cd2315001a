import { setTimeout as sleep } from 'node:timers/promises'
import type { ModelState, Priority } from '../../agent/providers/port.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { Allowance, BACKOFF_MS, type LastTold } from './allowance.ts'
import { FairQueue, type Prioritised, type QueuedCall, type WeightOf } from './fair-queue.ts'
import type { Caps, RoomAnswer, RoomRequest, Rooms, Turn, TurnRefusal } from './port.ts'
import { FREE_TURN } from './rooms.ts'
import { SharedHealth } from './shared-health.ts'

export type DoorDeps = {
  rooms: Rooms
  log: Log
  weightOf?: WeightOf | undefined
  metrics: Metrics
}

/** A call of a model of an instance. `tokens`: the estimated need. */
export type GateCall = {
  scope: string
  model: string
  caps: Caps
  tenant: TenantId
  caller: Prioritised
  tokens: number
  /** The longest wait; by default that of its priority. */
  waitMs?: number | undefined
  /** Set when another model can take over: the call waits no longer than this. */
  maxWaitMs?: number | undefined
}

/** Not a promise if there is nothing to wait for. */
export type Entered = Turn | TurnRefusal | Promise<Turn | TurnRefusal>

/** How long a call waits for its turn at most. */
const WAIT_MS: Record<Priority, number> = { interactive: 60_000, normal: 120_000, batch: 600_000 }
const MAX_WAITING = 10_000
const IDLE_MS = 120_000
/** How long the known number of waiting calls of other processes is used. */
const OTHERS_MS = 3_000
/** Paced calls are given room for several at a time. */
const RETRY_MS = { first: 20, paced: 100, max: 1_000 }

export type Target = Pick<GateCall, 'scope' | 'model' | 'caps'>

type Asking = Pick<RoomRequest, 'isFirst' | 'next' | 'want' | 'atWork' | 'isTrial'>

/** A call that is sent: `tokens` is its estimate `raw`, corrected by experience. */
type Estimated = QueuedCall & { raw: number }

type Waiting = Estimated & { until: number; since: number; resolve(answer: Turn | TurnRefusal): void }

/** The turns at one model of one instance: sends calls as far as this process's allowance permits, and queues the others. */
export class Door implements ModelState {
  readonly #deps: DoorDeps
  readonly #process: string
  readonly #target: Pick<GateCall, 'scope' | 'model'>
  readonly #queue: FairQueue<Waiting>
  readonly #allowance: Allowance
  readonly health: SharedHealth
  #othersWaiting = 0
  #askedAt = 0
  #usedAt = performance.now()
  #isAsking = false
  #wake = Promise.withResolvers<void>()

  constructor({ scope, model, caps }: Target, process: string, deps: DoorDeps) {
    this.#deps = deps
    this.#process = process
    this.#target = { scope, model }
    this.#allowance = new Allowance(caps)
    this.#queue = new FairQueue(deps.weightOf)
    const ask = (isTrial: boolean) => (isTrial || this.#allowance.isUnknown ? this.#tellRooms(isTrial) : undefined)
    this.health = new SharedHealth({ target: this.#target, log: deps.log, ask })
  }

  get queued(): number {
    return this.#queue.size
  }

  get waiting(): number {
    const now = performance.now()
    const others = now - this.#askedAt < OTHERS_MS ? this.#othersWaiting : 0
    return this.#queue.size + others + (this.#allowance.isClosed(now) ? 1 : 0)
  }

  enter(call: GateCall, signal: AbortSignal): Entered {
    const now = performance.now()
    this.#usedAt = now
    this.#allowance.useCaps(call.caps)
    const { tenant, caller, tokens: raw } = call
    const tokens = this.#allowance.estimate(raw)
    if (this.#queue.size === 0 && this.#allowance.allows(tokens, now)) {
      this.#deps.metrics.observe('model_turn_wait_seconds', 0)
      return this.#begin({ tenant, caller, tokens, raw })
    }
    if (this.#queue.size >= MAX_WAITING) return { retryAfterMs: BACKOFF_MS }
    const waitMs = Math.min(call.waitMs ?? WAIT_MS[caller.priority], call.maxWaitMs ?? Number.POSITIVE_INFINITY)
    return this.#wait({ tenant, caller, tokens, raw, since: now, until: now + waitMs }, signal)
  }

  /** Reports new facts to the rooms. Returns whether the door can be removed. */
  tidy(now: number): boolean {
    if (this.health.hasNews || this.#allowance.isDue(now - this.#askedAt)) void this.#tellRooms()
    const isIdle = this.#queue.size === 0 && !this.#isAsking && this.#allowance.isUnused
    return isIdle && now - this.#usedAt > IDLE_MS
  }

  #wait(call: Omit<Waiting, 'resolve'>, signal: AbortSignal): Promise<Turn | TurnRefusal> {
    return new Promise((resolve) => {
      const leave = () => this.#answer(waiting, FREE_TURN)
      const timer = setTimeout(() => this.#answer(waiting, TOO_LATE), call.until - call.since)
      const waiting: Waiting = {
        ...call,
        resolve(answer) {
          clearTimeout(timer)
          signal.removeEventListener('abort', leave) // Removed, because the run's signal is shared by many calls.
          resolve(answer)
        },
      }
      this.#queue.push(waiting, call.since)
      if (signal.aborted) return leave()
      signal.addEventListener('abort', leave, { once: true })
      if (call.caller.priority === 'interactive') this.#stir()
      void this.#serve()
    })
  }

  #answer(call: Waiting, answer: Turn | TurnRefusal): void {
    this.#queue.remove(call)
    call.resolve(answer)
    this.#stir()
  }

  /** Sends the calls of the queue in order. */
  async #serve(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    for (let now = performance.now(), next = this.#queue.next(now); next; next = this.#queue.next(now)) {
      if (this.#allowance.allows(next.call.tokens, now)) this.#take(next.call, now)
      else await this.#waitFor(next.call, next.isFirst)
      now = performance.now()
    }
    this.#isAsking = false
  }

  #take(call: Waiting, now: number): void {
    this.#queue.take(call, now)
    this.#deps.metrics.observe('model_turn_wait_seconds', (now - call.since) / 1_000)
    call.resolve(this.#begin(call))
  }

  async #waitFor(call: Waiting, isFirst: boolean): Promise<void> {
    const woken = this.#wake.promise
    const now = performance.now()
    const ownMs = this.#allowance.waitMs(now)
    if (now + ownMs > call.until) return this.#answer(call, { retryAfterMs: Math.ceil(ownMs) })
    const waitMs = ownMs > 0 ? ownMs : await this.#askFor(call, isFirst)
    if (waitMs > 0)
      await Promise.race([
        woken,
        sleep(Math.min(Math.max(waitMs, isFirst ? RETRY_MS.first : RETRY_MS.paced), RETRY_MS.max)),
      ])
  }

  /** After how long to ask again; 0 when the call has its room. */
  async #askFor(call: Waiting, isFirst: boolean): Promise<number> {
    const { atWork } = this.#allowance
    const answer = await this.#ask({ isFirst, ...this.#allowance.lack(call.tokens), atWork: atWork + 1 })
    if (answer) return answer.closedMs > 0 ? 0 : answer.retryMs // While no calls may be sent, the door waits by itself.
    this.#take(call, performance.now()) // While the rooms cannot be reached the provider decides.
    return 0
  }

  async #tellRooms(isTrial = false): Promise<RoomAnswer | undefined> {
    if (this.#isAsking) return undefined
    this.#isAsking = true
    const { atWork } = this.#allowance
    const answer = await this.#ask({ isTrial, isFirst: false, next: [0, 0], want: [0, 0], atWork })
    this.#isAsking = false
    void this.#serve()
    return answer
  }

  /** `undefined` when the rooms cannot be reached. */
  async #ask(part: Asking): Promise<RoomAnswer | undefined> {
    const now = performance.now()
    const request: RoomRequest = {
      ...{ ...part, process: this.#process, ...this.#allowance.takeUntold(now) },
      ...{ waiting: this.#queue.size, weight: this.#queue.weight, outcomes: this.health.takeUntold() },
    }
    this.#askedAt = now
    try {
      const answer = await this.#deps.rooms.ask(this.#target.scope, this.#target.model, request)
      this.#allowance.learn(answer, part.atWork)
      this.#othersWaiting = answer.othersWait ? Math.max(1, answer.waiting - this.#queue.size) : 0
      this.health.learnFrom(answer, request.outcomes)
      return answer
    } catch (cause) {
      this.#deps.log.debug('the room at a provider cannot be read', { cause })
      return undefined
    }
  }

  #begin(call: Estimated): Turn {
    if (this.#allowance.begin(call.tokens)) void this.#tellRooms()
    const [at, { sent }] = [performance.now(), this.#allowance]
    let isOver = false
    return {
      tell: (told) => {
        if (this.#allowance.tell({ told, at, sent })) this.#stir()
      },
      refused: (retryAfterMs, told) => this.#noteRefusal(retryAfterMs, told && { told, at: performance.now(), sent }),
      end: (tokens = 0) => {
        if (isOver) return
        isOver = true
        this.#settle(call, tokens)
      },
    }
  }

  #settle(call: Estimated, used: number): void {
    this.#allowance.end(call, used)
    this.#queue.charge(call, used - call.tokens)
    const { hasFreePlace } = this.#allowance
    const now = performance.now()
    const next = this.#queue.next(now)
    if (next && (hasFreePlace || this.#allowance.allows(next.call.tokens, now))) this.#stir()
    if (!next && this.#othersWaiting > 0 && hasFreePlace) void this.#tellRooms()
  }

  #noteRefusal(retryAfterMs: number | undefined, told: LastTold | undefined): void {
    this.#allowance.refuse(retryAfterMs, told)
    this.#deps.metrics.count('provider_refusals')
    this.#stir()
    void this.#tellRooms()
  }

  #stir(): void {
    this.#wake.resolve()
    this.#wake = Promise.withResolvers()
  }
}

const TOO_LATE: TurnRefusal = { retryAfterMs: BACKOFF_MS }
