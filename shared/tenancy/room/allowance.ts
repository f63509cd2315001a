import type { ToldLimits } from '../../agent/providers/told-limits.ts'
import type { Amount, Caps, RoomAnswer, RoomRequest } from './port.ts'

/** For how many calls a process gets room at once, if there is enough. */
const AHEAD = 16
/** Without a known limit the rooms are asked again after this many calls: another process may have learned one. */
const LOOK_AFTER = 10
/** Room for later calls expires after this time. */
const LEASE_MS = 60_000
/** The longest time between two reports of running calls, and of what was sent. */
const RENEW_MS = 10_000
/** The pause after a refusal without a time; it doubles with each further refusal. */
export const BACKOFF_MS = 1_000
const MAX_CLOSED_MS = 60_000
/** Before a provider has answered, none of its limits is known: this many calls are sent to it in each step. */
const FIRST_CALLS = 16
const FIRST_STEP_MS = 250

/** The limits in the answer to a call that was sent at time `at`, when all processes together had been given `sent`. */
export type LastTold = { told: ToldLimits; at: number; sent: Amount }

/** What this process may send now to one model of one instance: the room that it was given, less what its calls use. */
export class Allowance {
  #caps: Caps
  /** The unused part of the given room, and when it expires. */
  #lease: [tokens: number, requests: number] = [0, 0]
  #leaseUntil = 0
  /** What was sent without given room (no limit is known), or beyond an estimate, and is not reported yet. */
  #spent: [tokens: number, requests: number] = [0, 0]
  #limit: Amount | undefined
  #closedUntil = 0
  #sent: Amount = [0, 0]
  #atWork = 0
  #places = 0
  #callsSince = 0
  #told: LastTold | undefined
  #refusedMs: number | undefined
  #refusals = 0
  /** What calls use, in parts of their estimates. */
  #ratio = 1
  /** `undefined` as soon as the provider has answered. */
  #first: { since: number; calls: number } | undefined = { since: performance.now(), calls: 0 }

  constructor(caps: Caps) {
    this.#caps = caps
  }

  /** Whether the rooms must be asked before the next call. */
  get isUnknown(): boolean {
    return this.#limit === undefined
  }

  get atWork(): number {
    return this.#atWork
  }

  /** What all processes were given since the start, by the rooms' last answer. */
  get sent(): Amount {
    return this.#sent
  }

  get hasFreePlace(): boolean {
    return this.#places > this.#atWork
  }

  /** Whether nothing of it is in use, here or at the rooms. */
  get isUnused(): boolean {
    return this.#atWork === 0 && (!this.#hasPlaces || this.#places === 0)
  }

  isClosed(now: number): boolean {
    return now < this.#closedUntil
  }

  useCaps(caps: Caps): void {
    if (this.#caps !== caps) this.#limit = undefined
    this.#caps = caps
  }

  /** What a call probably needs, corrected by earlier calls. */
  estimate(tokens: number): number {
    return Math.max(1, Math.ceil(tokens * this.#ratio))
  }

  /** Whether a call of this many tokens may be sent with what is held. */
  allows(tokens: number, now: number): boolean {
    if (this.#limit === undefined || this.isClosed(now) || this.#firstWaitMs(now) > 0) return false
    if (this.#hasPlaces && !this.hasFreePlace) return false
    const holds = now < this.#leaseUntil
    const needs = [tokens, 1]
    return this.#limit.every(
      (limit, at) => limit === Number.POSITIVE_INFINITY || (holds && (this.#lease[at] ?? 0) >= (needs[at] ?? 0)),
    )
  }

  /** For how long no call can be sent, even if the rooms allow it. An unreported refusal must be reported first. */
  waitMs(now: number): number {
    return this.#refusedMs === undefined ? Math.max(this.#closedUntil - now, this.#firstWaitMs(now)) : 0
  }

  /** What a call of this many tokens lacks, and what later calls would use. */
  lack(tokens: number): Pick<RoomRequest, 'next' | 'want'> {
    const [leased = 0, requests = 0] = performance.now() < this.#leaseUntil ? this.#lease : []
    const next: Amount = [Math.max(0, Math.ceil(tokens - leased)), Math.max(1, Math.ceil(1 - requests))]
    return { next, want: [next[0] + AHEAD * tokens, next[1] + AHEAD] }
  }

  /** Whether it is time to report to the rooms, this long after the last report: places are freed, and used ones renewed. */
  isDue(silentMs: number): boolean {
    const isSilent = silentMs > RENEW_MS
    const isUntold = this.#spent.some((each) => each !== 0) || this.#places !== this.#atWork
    return (this.#hasPlaces && (this.hasFreePlace || (this.#atWork > 0 && isSilent))) || (isUntold && isSilent)
  }

  /** Takes the facts that must be reported to the rooms. */
  takeUntold(now: number): Pick<RoomRequest, 'caps' | 'refusedMs' | 'spent' | 'told'> {
    const told = this.#told && {
      ...{ limits: [this.#told.told.tokens, this.#told.told.requests] as const, sent: this.#told.sent },
      ageMs: Math.max(0, Math.round(now - this.#told.at)),
    }
    const untold = { caps: this.#caps, refusedMs: this.#refusedMs, spent: this.#spent, told }
    this.#refusedMs = undefined
    this.#told = undefined
    this.#spent = [0, 0]
    this.#callsSince = 0
    return untold
  }

  /** `atWork`: the calls for which the rooms were asked. */
  learn({ granted, sent, limit, closedMs, retryMs }: RoomAnswer, atWork: number): void {
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
    this.#places = retryMs > 0 ? Math.min(this.#places, atWork - 1) : atWork
  }

  /** Counts a call that is sent. Returns whether the rooms must be asked again. */
  begin(tokens: number): boolean {
    this.#atWork++
    if (this.#first) this.#first.calls++
    this.#use(tokens, 1)
    return ++this.#callsSince >= LOOK_AFTER && this.#isOpen
  }

  /** Ends a call: room that it did not use is for others; what it used in excess counts against later calls. */
  end({ raw, tokens }: { raw: number; tokens: number }, used: number): void {
    this.#atWork--
    if (used > 0 && raw > 0) this.#ratio = Math.min(4, Math.max(0.01, 0.9 * this.#ratio + 0.1 * (used / raw)))
    this.#spent[0] += used - tokens
  }

  /** Notes the limits in an answer. Returns whether this is the first answer of the provider. */
  tell(last: LastTold): boolean {
    const { tokens, requests } = last.told
    const isFirst = this.#first !== undefined
    this.#first = undefined
    this.#refusals = 0
    if (!tokens && !requests) return isFirst
    this.#told = last
    this.#lease = [
      Math.min(this.#lease[0], tokens?.left ?? this.#lease[0]),
      Math.min(this.#lease[1], requests?.left ?? this.#lease[1]),
    ]
    if (this.#isOpen) this.#limit = undefined
    return isFirst
  }

  /** The provider has refused a call. */
  refuse(retryAfterMs: number | undefined, told: LastTold | undefined): void {
    const waitMs = retryAfterMs ?? BACKOFF_MS * 2 ** Math.min(this.#refusals, 5)
    this.#refusals++
    this.#refusedMs = Math.round(Math.min(Math.max(waitMs, this.#refusedMs ?? 0, 1), MAX_CLOSED_MS))
    this.#told = told ?? this.#told
    this.#first = undefined
    this.#limit = undefined
  }

  /** Whether the number of concurrent calls is limited. */
  get #hasPlaces(): boolean {
    return this.#caps.concurrent !== Number.POSITIVE_INFINITY
  }

  get #isOpen(): boolean {
    return this.#limit?.every((each) => each === Number.POSITIVE_INFINITY) === true
  }

  #firstWaitMs(now: number): number {
    if (!this.#first) return 0
    const { since, calls } = this.#first
    return Math.floor(calls / FIRST_CALLS) * FIRST_STEP_MS - (now - since)
  }

  /** Counts an amount against the given room, or as sent without it. */
  #use(...amount: [tokens: number, requests: number]): void {
    for (const at of [0, 1] as const) {
      if (this.#limit?.[at] === Number.POSITIVE_INFINITY) this.#spent[at] += amount[at]
      else this.#lease[at] -= amount[at]
    }
  }
}
