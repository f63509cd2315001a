import type { WarningEvent } from '../../../kernel/events.ts'
import type { Failure, ModelProvider, ModelRoute } from '../port.ts'
import { type CallNotice, failureOf, type PendingAnswer, type StartedAnswer } from './retry.ts'

/** The reason that the signal of a request is aborted with when another one has answered the same call first. */
export const ABANDONED = 'abandoned'

type Sending = { signal: AbortSignal; onSent: () => void }

export type HedgedCall = {
  primary: ModelRoute
  /** The model that gets the second request. */
  spare: ModelRoute
  signal: AbortSignal
  now: () => number
  open(route: ModelRoute, sending: Sending): PendingAnswer
  /** Called when the primary was late and the spare has answered. */
  onLate(): void
}

/** `problem`: the failure of the other request, when both have failed. `isHedged`: there was a second request. */
export type HedgedAnswer = { answer: StartedAnswer | undefined; problem?: Failure | undefined; isHedged: boolean }

type Step = Awaited<ReturnType<PendingAnswer['next']>>
const LATE = Symbol('late')

/**
 * Starts an answer, and a second request if the first has sent nothing in the time in which 95 of 100 calls send their first part. The request that
 * answers first is used; the other one is aborted, its parts are dropped, and `abandoned` reports its cost.
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

/** A running request, with its retries. */
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

  /** Called when the request has failed and is sent again. */
  goOn(): void {
    this.step = this.#next()
    this.sentAt = undefined
  }

  /** A provider may throw while the race is not read; the error is kept for the reader of the step. */
  #next(): Promise<Step> {
    const step = this.pending.next()
    step.catch(() => {})
    return step
  }
}

/** The running requests of one call. */
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

  /** Sends a request. The next one is due when this one has been at the provider for `lateAfterMs`. */
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

/** Aborts the other request, and reports the model that answers if it is the spare. */
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

/** A part that has arrived meanwhile, or an error that the provider throws, is ignored. */
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

/** For how many calls the time to the first part is kept, and the least number of times to use it. */
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

/** For an abandoned request it is at least the time that has passed. */
function noteFirstPart({ route: { provider, model }, sentAt }: Request, now: number): void {
  if (sentAt === undefined) return
  const ofProvider = times.get(provider) ?? new Map<string, number[]>()
  if (ofProvider.size >= MAX_MODELS) ofProvider.clear()
  times.set(provider, ofProvider)
  ofProvider.set(model, [...(ofProvider.get(model) ?? []), now - sentAt].slice(-MAX_TIMES))
}
