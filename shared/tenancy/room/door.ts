import { setTimeout as sleep } from 'node:timers/promises'
import type { ModelState, Priority } from '../../agent/providers/port.ts'
import type { ToldLimits } from '../../agent/providers/told-limits.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { FairQueue, type Prioritised, type QueuedCall, type WeightOf } from './fair-queue.ts'
import type { Amount, Caps, RoomAnswer, RoomRequest, Rooms, Turn, TurnRefusal } from './port.ts'
import { FREE_TURN } from './rooms.ts'
import { SharedHealth } from './shared-health.ts'

export type DoorDeps = {
  rooms: Rooms
  log: Log
  weightOf?: WeightOf | undefined
  metrics: Metrics
}

/** A call of a model of an instance. `tokens`: what it may need, as estimated. */
export type GateCall = {
  scope: string
  model: string
  caps: Caps
  tenant: TenantId
  caller: Prioritised
  tokens: number
  /** How long it waits at most; as its priority says unless given. */
  waitMs?: number | undefined
  /** Another model takes over: it waits no longer than this. */
  maxWaitMs?: number | undefined
}

/** Without a promise where nothing is waited for. */
export type Entered = Turn | TurnRefusal | Promise<Turn | TurnRefusal>

/** How long a call waits for its turn at most. */
const WAIT_MS: Record<Priority, number> = { interactive: 60_000, normal: 120_000, batch: 600_000 }
const MAX_WAITING = 10_000
/** Calls that a process is given room for at once where there is enough. */
const AHEAD = 16
/** An open room is looked at again after so many calls: another process may have learned a limit. */
const LOOK_AFTER = 10
/** What was given for later calls is of no use any more after this time. */
const LEASE_MS = 60_000
const RENEW_MS = 10_000
const IDLE_MS = 120_000
/** A refusal that names no time. It doubles with each that follows. */
const BACKOFF_MS = 1_000
const MAX_CLOSED_MS = 60_000
/** Of a provider that has not answered yet no limit is known: so many calls are sent to it in each step. */
const FIRST_CALLS = 16
const FIRST_STEP_MS = 250
/** How long the known number of waiting calls of other processes is used. */
const OTHERS_MS = 3_000
/** Paced calls are given room for several at a time. */
const RETRY_MS = { first: 20, paced: 100, max: 1_000 }

export type Target = Pick<GateCall, 'scope' | 'model' | 'caps'>

type Asking = Pick<RoomRequest, 'isFirst' | 'next' | 'want' | 'atWork' | 'isTrial'>

type Waiting = QueuedCall & { until: number; since: number; raw: number; resolve(answer: Turn | TurnRefusal): void }

type LastTold = { told: ToldLimits; at: number; sent: Amount }

/** The turns at one model of one instance, as far as this process gives them out. */
export class Door implements ModelState {
  readonly #deps: DoorDeps
  readonly #process: string
  readonly #target: Pick<GateCall, 'scope' | 'model'>
  readonly #queue: FairQueue<Waiting>
  readonly health: SharedHealth
  #caps: Caps
  /** What was given and is not used yet, and until when it counts. */
  #lease: [tokens: number, requests: number] = [0, 0]
  #leaseUntil = 0
  /** What was sent without a lease, since no limit is known, or beyond an estimate, and is not told yet. */
  #spent: [tokens: number, requests: number] = [0, 0]
  /** `undefined`: the rooms are to be asked before the next call. */
  #limit: Amount | undefined
  #closedUntil = 0
  #sent: Amount = [0, 0]
  #atWork = 0
  #places = 0
  #othersWaiting = 0
  #askedAt = 0
  #usedAt = performance.now()
  #callsSince = 0
  #told: LastTold | undefined
  #refusedMs: number | undefined
  #refusals = 0
  /** What calls use, in parts of their estimates. */
  #ratio = 1
  /** `undefined` as soon as the provider has answered. */
  #first: { since: number; calls: number } | undefined = { since: performance.now(), calls: 0 }
  #isAsking = false
  #wake = Promise.withResolvers<void>()

  constructor({ scope, model, caps }: Target, process: string, deps: DoorDeps) {
    this.#deps = deps
    this.#process = process
    this.#target = { scope, model }
    this.#caps = caps
    this.#queue = new FairQueue(deps.weightOf)
    const ask = (isTrial: boolean) => (isTrial || !this.#limit ? this.#tellRooms(isTrial) : undefined)
    this.health = new SharedHealth({ target: this.#target, log: deps.log, ask })
  }

  get queued(): number {
    return this.#queue.size
  }

  get waiting(): number {
    const now = performance.now()
    const others = now - this.#askedAt < OTHERS_MS ? this.#othersWaiting : 0
    return this.#queue.size + others + (now < this.#closedUntil ? 1 : 0)
  }

  enter(call: GateCall, signal: AbortSignal): Entered {
    const now = performance.now()
    this.#usedAt = now
    if (this.#caps !== call.caps) this.#limit = undefined
    this.#caps = call.caps
    const { tenant, caller, tokens: raw } = call
    const tokens = Math.max(1, Math.ceil(raw * this.#ratio))
    if (this.#queue.size === 0 && this.#takes(tokens, now)) {
      this.#deps.metrics.observe('model_turn_wait_seconds', 0)
      return this.#begin({ tenant, caller, tokens, raw })
    }
    if (this.#queue.size >= MAX_WAITING) return { retryAfterMs: BACKOFF_MS }
    const waitMs = Math.min(call.waitMs ?? WAIT_MS[caller.priority], call.maxWaitMs ?? Number.POSITIVE_INFINITY)
    return this.#wait({ tenant, caller, tokens, raw, since: now, until: now + waitMs }, signal)
  }

  /** Gives back places, and renews those in use. Returns whether the door is of no use any more. */
  tidy(now: number): boolean {
    const isLimited = this.#caps.concurrent !== Number.POSITIVE_INFINITY
    const isDue = this.#places > this.#atWork || (this.#atWork > 0 && now - this.#askedAt > RENEW_MS)
    const isUntold = this.#spent.some((each) => each !== 0) || this.#places !== this.#atWork
    if (this.health.hasNews || (isLimited && isDue) || (isUntold && now - this.#askedAt > RENEW_MS))
      void this.#tellRooms()
    const isIdle = this.#atWork === 0 && this.#queue.size === 0 && !this.#isAsking
    return isIdle && (!isLimited || this.#places === 0) && now - this.#usedAt > IDLE_MS
  }

  #wait(call: Omit<Waiting, 'resolve'>, signal: AbortSignal): Promise<Turn | TurnRefusal> {
    return new Promise((resolve) => {
      const leave = () => this.#answer(waiting, FREE_TURN)
      const timer = setTimeout(() => this.#answer(waiting, TOO_LATE), call.until - call.since)
      const waiting: Waiting = {
        ...call,
        resolve(answer) {
          clearTimeout(timer)
          signal.removeEventListener('abort', leave) // The signal is that of the run, which makes many calls.
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

  /** Lets the calls of the queue go in their order. */
  async #serve(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    for (let now = performance.now(), next = this.#queue.next(now); next; next = this.#queue.next(now)) {
      if (this.#takes(next.call.tokens, now)) this.#take(next.call, now)
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

  /** Whether a call of so many tokens may be sent with what is held. */
  #takes(tokens: number, now: number): boolean {
    if (this.#limit === undefined || now < this.#closedUntil || this.#firstWaitMs(now) > 0) return false
    if (this.#caps.concurrent !== Number.POSITIVE_INFINITY && this.#atWork >= this.#places) return false
    const holds = now < this.#leaseUntil
    const needs = [tokens, 1]
    return this.#limit.every(
      (limit, at) => limit === Number.POSITIVE_INFINITY || (holds && (this.#lease[at] ?? 0) >= (needs[at] ?? 0)),
    )
  }

  #firstWaitMs(now: number): number {
    if (!this.#first) return 0
    const { since, calls } = this.#first
    return Math.floor(calls / FIRST_CALLS) * FIRST_STEP_MS - (now - since)
  }

  async #waitFor(call: Waiting, isFirst: boolean): Promise<void> {
    const woken = this.#wake.promise
    const now = performance.now()
    const ownMs = this.#refusedMs === undefined ? Math.max(this.#closedUntil - now, this.#firstWaitMs(now)) : 0
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
    const [tokens = 0, requests = 0] = performance.now() < this.#leaseUntil ? this.#lease : []
    const next: Amount = [Math.max(0, Math.ceil(call.tokens - tokens)), Math.max(1, Math.ceil(1 - requests))]
    const want: Amount = [next[0] + AHEAD * call.tokens, next[1] + AHEAD]
    const answer = await this.#ask({ isFirst, next, want, atWork: this.#atWork + 1 })
    if (answer) return answer.closedMs > 0 ? 0 : answer.retryMs // Until it opens the door waits by itself.
    this.#take(call, performance.now()) // While the rooms cannot be reached the provider decides.
    return 0
  }

  async #tellRooms(isTrial = false): Promise<RoomAnswer | undefined> {
    if (this.#isAsking) return undefined
    this.#isAsking = true
    const answer = await this.#ask({ isTrial, isFirst: false, next: [0, 0], want: [0, 0], atWork: this.#atWork })
    this.#isAsking = false
    void this.#serve()
    return answer
  }

  /** `undefined` when the rooms cannot be reached. */
  async #ask(part: Asking): Promise<RoomAnswer | undefined> {
    const now = performance.now()
    const told = this.#told
    const request: RoomRequest = {
      ...{ ...part, process: this.#process, caps: this.#caps, refusedMs: this.#refusedMs, spent: this.#spent },
      ...{ waiting: this.#queue.size, weight: this.#queue.weight, outcomes: this.health.takeUntold() },
      told: told && {
        ...{ limits: [told.told.tokens, told.told.requests], sent: told.sent },
        ageMs: Math.max(0, Math.round(now - told.at)),
      },
    }
    this.#refusedMs = undefined
    this.#told = undefined
    this.#spent = [0, 0]
    this.#askedAt = now
    this.#callsSince = 0
    try {
      const answer = await this.#deps.rooms.ask(this.#target.scope, this.#target.model, request)
      this.#note(answer, part.atWork)
      this.health.learnFrom(answer, request.outcomes)
      return answer
    } catch (cause) {
      this.#deps.log.debug('the room at a provider cannot be read', { cause })
      return undefined
    }
  }

  #note({ granted, sent, limit, closedMs, retryMs, othersWait, waiting }: RoomAnswer, atWork: number): void {
    const now = performance.now()
    if (granted[1] > 0) {
      const [tokens = 0, requests = 0] = now < this.#leaseUntil ? this.#lease : []
      this.#lease = [tokens + granted[0], requests + granted[1]]
      this.#leaseUntil = now + LEASE_MS
    }
    if (closedMs > 0) this.#lease = [0, 0]
    this.#closedUntil = closedMs > 0 ? now + closedMs : 0
    this.#limit = limit
    this.#sent = sent
    this.#othersWaiting = othersWait ? Math.max(1, waiting - this.#queue.size) : 0
    this.#places = retryMs > 0 ? Math.min(this.#places, atWork - 1) : atWork
  }

  #begin(call: QueuedCall & { raw: number }): Turn {
    this.#atWork++
    if (this.#first) this.#first.calls++
    this.#use(call.tokens, 1)
    if (++this.#callsSince >= LOOK_AFTER && this.#isOpen) void this.#tellRooms()
    const [at, sent] = [performance.now(), this.#sent]
    let isOver = false
    return {
      tell: (told) => this.#tell({ told, at, sent }),
      refused: (retryAfterMs, told) => this.#noteRefusal(retryAfterMs, told && { told, at: performance.now(), sent }),
      end: (tokens) => {
        if (isOver) return
        isOver = true
        this.#atWork--
        this.#settle(call, tokens)
      },
    }
  }

  get #isOpen(): boolean {
    return this.#limit?.every((each) => each === Number.POSITIVE_INFINITY) === true
  }

  /** Counts what is sent against the lease, or as sent without one. */
  #use(...amount: [tokens: number, requests: number]): void {
    for (const at of [0, 1] as const) {
      if (this.#limit?.[at] === Number.POSITIVE_INFINITY) this.#spent[at] += amount[at]
      else this.#lease[at] -= amount[at]
    }
  }

  #tell(last: LastTold): void {
    const { tokens, requests } = last.told
    if (this.#first) this.#stir()
    this.#first = undefined
    this.#refusals = 0
    if (!tokens && !requests) return
    this.#told = last
    this.#lease = [
      Math.min(this.#lease[0], tokens?.left ?? this.#lease[0]),
      Math.min(this.#lease[1], requests?.left ?? this.#lease[1]),
    ]
    if (this.#isOpen) this.#limit = undefined
  }

  /** What a call has not used is for others; what it has used beyond counts against those that follow. */
  #settle(call: QueuedCall & { raw: number }, tokens: number | undefined): void {
    const used = tokens ?? 0
    if (used > 0 && call.raw > 0) this.#ratio = Math.min(4, Math.max(0.01, 0.9 * this.#ratio + 0.1 * (used / call.raw)))
    this.#spent[0] += used - call.tokens
    this.#queue.charge(call, used - call.tokens)
    const next = this.#queue.next(performance.now())
    if (next && (this.#places > this.#atWork || this.#takes(next.call.tokens, performance.now()))) this.#stir()
    if (!next && this.#othersWaiting > 0 && this.#places > this.#atWork) void this.#tellRooms()
  }

  #noteRefusal(retryAfterMs: number | undefined, told: LastTold | undefined): void {
    const waitMs = retryAfterMs ?? BACKOFF_MS * 2 ** Math.min(this.#refusals, 5)
    this.#refusals++
    this.#refusedMs = Math.round(Math.min(Math.max(waitMs, this.#refusedMs ?? 0, 1), MAX_CLOSED_MS))
    this.#told = told ?? this.#told
    this.#first = undefined
    this.#limit = undefined
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
