import type { WarningEvent } from '../../../kernel/events.ts'
import type { Failure, ModelProvider, ModelRoute } from '../port.ts'
import { type CallNotice, failureOf, type PendingAnswer, type StartedAnswer } from './retry.ts'

/** The reason that the signal of a request is aborted with when another one has answered the same call first. */
export const ABANDONED = 'abandoned'

type Sending = { signal: AbortSignal; onSent: () => void }

export type HedgedCall = {
  primary: ModelRoute
  /** Takes the second request. */
  spare: ModelRoute
  signal: AbortSignal
  now: () => number
  open(route: ModelRoute, sending: Sending): PendingAnswer
  /** The primary was late, and the spare has answered. */
  onLate(): void
}

/** `problem`: the failure of the other request, when both have failed. `isHedged`: there was a second request. */
export type HedgedAnswer = { answer: StartedAnswer | undefined; problem?: Failure | undefined; isHedged: boolean }

type Step = Awaited<ReturnType<PendingAnswer['next']>>
const LATE = Symbol('late')

/**
 * Starts an answer, and a second request when the first has sent nothing for as long as 95 of 100 calls take until their first part. The first that
 * answers is the answer, and the other one is aborted: its cost is reported by `abandoned`. Nobody reads a part of it.
 */
export async function* startHedged(call: HedgedCall): AsyncGenerator<CallNotice, HedgedAnswer, undefined> {
  const { primary, spare, now } = call
  const race = new Race(call)
  let problem: Failure | undefined
  try {
    race.send(primary, firstPartWithin(primary))
    for (;;) {
      const ended = await race.next()
      if (ended === LATE) race.send(spare)
      else if (!ended.step.done) yield ended.step.value
      else {
        const { value: answer } = ended.step
        const failed = answer && failureOf(answer)
        if (answer && !failed) {
          noteFirstPart(ended.request, now())
          yield* endOthers(ended.request, race, call)
          return { answer, isHedged: race.isHedged }
        }
        if (!answer || race.isEmpty) return { answer, problem, isHedged: race.isHedged }
        problem = failed
        await answer.rest.return?.()
      }
    }
  } finally {
    for (const request of race.takeAll()) abandon(request)
  }
}

/** A request that is under way, with its retries. */
class Request {
  readonly route: ModelRoute
  readonly stop = new AbortController()
  readonly pending: PendingAnswer
  sentAt: number | undefined
  step: Promise<Step>

  constructor(route: ModelRoute, { signal, now, open }: HedgedCall, onSent: () => void) {
    this.route = route
    const noteSent = () => {
      this.sentAt = now()
      onSent()
    }
    this.pending = open(route, { signal: AbortSignal.any([signal, this.stop.signal]), onSent: noteSent })
    this.step = this.#next()
  }

  /** It has failed, and is sent again. */
  goOn(): void {
    this.step = this.#next()
    this.sentAt = undefined
  }

  /** A provider may throw while nobody reads the race: whoever reads the step gets that. */
  #next(): Promise<Step> {
    const step = this.pending.next()
    step.catch(() => {})
    return step
  }
}

/** The requests of one call that are under way. */
class Race {
  readonly #call: HedgedCall
  readonly #requests = new Set<Request>()
  readonly #late = Promise.withResolvers<typeof LATE>()
  #timer: NodeJS.Timeout | undefined
  #isOver = false
  isHedged = false

  constructor(call: HedgedCall) {
    this.#call = call
  }

  get isEmpty(): boolean {
    return this.#requests.size === 0
  }

  /** The next request is due when this one has been at the provider for this long. */
  send(route: ModelRoute, lateAfterMs?: number): void {
    this.isHedged = this.#requests.size > 0
    const onSent = () => {
      if (lateAfterMs !== undefined && !this.#isOver) this.#timer ??= setTimeout(this.#late.resolve, lateAfterMs, LATE)
    }
    this.#requests.add(new Request(route, this.#call, onSent))
  }

  /** The next step of any request, or `LATE`. A request that has ended leaves the race. */
  async next(): Promise<typeof LATE | { request: Request; step: Step }> {
    const steps = [...this.#requests].map(async (request) => ({ request, step: await request.step }))
    const ended = await Promise.race(this.isHedged ? steps : [...steps, this.#late.promise])
    if (ended === LATE) return LATE
    const { request, step } = ended
    if (step.done) this.#requests.delete(request)
    else request.goOn()
    return ended
  }

  takeAll(): Request[] {
    this.#isOver = true
    clearTimeout(this.#timer)
    const left = [...this.#requests]
    this.#requests.clear()
    return left
  }
}

/** Aborts the other request, and says which model gives the answer where it is the spare. */
function endOthers({ route }: Request, race: Race, { primary, now, onLate }: HedgedCall): CallNotice[] {
  const others = race.takeAll()
  const sent = others.filter(({ sentAt }) => sentAt !== undefined)
  for (const request of others) {
    noteFirstPart(request, now())
    abandon(request)
  }
  const abandoned = sent.map((request) => ({ type: 'abandoned', route: request.route }) as const)
  if (route === primary) return abandoned
  if (others.length > 0) onLate()
  return [lateWarning(primary, route), { type: 'served_by', route }, ...abandoned]
}

/** A part that has arrived meanwhile is read by nobody, and neither is what a provider throws by now. */
function abandon({ stop, pending, step }: Request): void {
  stop.abort(ABANDONED)
  const leave = async () => {
    const { done, value } = await step
    await (done ? value?.rest.return?.() : pending.return(undefined))
  }
  leave().catch(() => {})
}

function lateWarning(primary: ModelRoute, spare: ModelRoute): WarningEvent {
  const [from, to] = [primary, spare].map(({ provider, model }) => ({ provider: provider.type, model }))
  return {
    type: 'warning',
    code: 'provider_failover',
    message: `${primary.model} of ${primary.provider.type} is late; ${spare.model} of ${spare.provider.type} has answered first`,
    detail: { from, to, reason: 'hedged' },
  }
}

/** The time to the first part is kept for this many calls, and is used from this many on. */
const MAX_TIMES = 100
const MIN_TIMES = 20
const MAX_MODELS = 64
const LATE_PART = 0.95

const times = new WeakMap<ModelProvider, Map<string, number[]>>()

/** Within how many milliseconds 95 of 100 calls have their first part; `undefined` while too few have been seen. */
function firstPartWithin({ provider, model }: ModelRoute): number | undefined {
  const known = times.get(provider)?.get(model)
  if (!known || known.length < MIN_TIMES) return undefined
  return known.toSorted((one, other) => one - other)[Math.ceil(LATE_PART * known.length) - 1]
}

/** For a request that is abandoned it is at least as long as it has taken. */
function noteFirstPart({ route: { provider, model }, sentAt }: Request, now: number): void {
  if (sentAt === undefined) return
  const ofProvider = times.get(provider) ?? new Map<string, number[]>()
  if (ofProvider.size >= MAX_MODELS) ofProvider.clear()
  times.set(provider, ofProvider)
  ofProvider.set(model, [...(ofProvider.get(model) ?? []), now - sentAt].slice(-MAX_TIMES))
}
