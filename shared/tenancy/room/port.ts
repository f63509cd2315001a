import type { Health, HealthState, Outcomes } from '../../agent/providers/health.ts'
import type { ToldLimit, ToldLimits } from '../../agent/providers/told-limits.ts'

/** Tokens and requests. */
export type Amount = readonly [tokens: number, requests: number]

/** What the tenant has configured for an instance; `Infinity` for no limit. */
export type Caps = { perMinute: Amount; concurrent: number }

/** A process asks for room at one model of one instance. */
export type RoomRequest = {
  process: string
  /** The call comes before paced ones, and may use the part that is kept for such calls. */
  isFirst: boolean
  /** What the next call needs, and what later calls would use, which saves requests. Zero: the process only reports. */
  next: Amount
  want: Amount
  caps: Caps
  /** What the process has sent without being given room, because no limit was known. */
  spent: Amount
  /** The limits of tokens and of requests that the provider has named, how long ago, and what all processes had been given by then (`sent`). */
  told?: { limits: readonly [ToldLimit | undefined, ToldLimit | undefined]; ageMs: number; sent: Amount } | undefined
  /** The provider has refused a call for the rate of requests: none may be sent for this long. */
  refusedMs?: number | undefined
  /** The number of running calls, including the next one. */
  atWork: number
  /** The number of waiting calls here, and the sum of their tenants' weights. */
  waiting: number
  weight: number
  /** How calls have ended since the last request. Left out: none has. */
  outcomes?: Outcomes | undefined
  /** The process has a call that can test whether a resting model answers again. */
  isTrial?: boolean | undefined
}

export type RoomAnswer = {
  granted: Amount
  /** What all processes were given since the start. */
  sent: Amount
  /** After this time the process asks again; 0 when the request was granted. */
  retryMs: number
  /** No call may be sent for this long. */
  closedMs: number
  /** Calls of other processes wait. */
  othersWait: boolean
  /** The health of the model by the calls of all processes. `now` is the present time on the same clock. */
  health: Health
  now: number
  /** This process has the trial. */
  isTrial: boolean
} & Omit<RoomState, 'state' | 'errorRate'>

/** The state that people see. `limit`: `Infinity` for an unknown one; `used`: within the last minute. */
export type RoomState = {
  limit: Amount
  used: Amount
  atWork: number
  waiting: number
  refused: number
  state: HealthState
  errorRate: number
}

/** The room at the models of instances, which all processes share. `scope` names an instance, and `model` one of its models. */
export interface Rooms {
  /** One atomic step. Throws `unavailable` when the rooms cannot be reached. */
  ask(scope: string, model: string, request: RoomRequest): Promise<RoomAnswer>
  /** The models of the scope that were called within a day. */
  look(scope: string): Promise<{ model: string; state: RoomState }[]>
}

/** A call that may be sent. Call `end` once, with its usage; `undefined`: it was not answered. */
export type Turn = {
  tell(told: ToldLimits): void
  refused(retryAfterMs: number | undefined, told: ToldLimits | undefined): void
  end(tokens: number | undefined): void
}

/** The call has waited too long, or would have to. */
export type TurnRefusal = { retryAfterMs: number }
