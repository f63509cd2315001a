import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { eachOf } from '../../../kernel/async/batch.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import type { ModelPart, ModelProvider, Send, SendResponse } from '../port.ts'
import { asBatched, asEvents } from './as-events.ts'
import { type BatchAnswer, type BatchCall, GOES_LIVE } from './port.ts'

/** The connections of a provider. */
export type Transport = { send: Send; fetch: typeof globalThis.fetch }

/**
 * The answers of a vendor's batches to the calls of one execution. With `missing`, the execution is only tried: calls
 * without an answer are collected there and not sent.
 */
export type ItemAnswers = { traceId: string; answers: ReadonlyMap<string, BatchAnswer>; missing?: BatchCall[] }

/** The price of a call in a batch, as a part of the price of the same live call. */
const PRICE_FACTOR = 0.5
/** Agents that run in parallel make their calls within this time; after it the first call without an answer fails, which ends all of them. */
const GATHER_MS = 50

type Settings = { item: ItemAnswers; agent: string; base: string }
type Answered = { status: number; type: string; text: string }

/**
 * The model calls of one agent, in their order: calls that a batch has answered use that answer, and later ones are sent live. A call's id consists
 * of the execution, the agent and the number, so that a repeated execution asks for nothing twice.
 */
export class AnsweredCalls {
  readonly #settings: Settings
  readonly #prefix: string
  #count = 0
  #isAnswered = false

  constructor(settings: Settings) {
    this.#settings = settings
    const { item, agent } = settings
    this.#prefix = `${item.traceId.slice('trace_'.length)}-${hash('sha256', agent).slice(0, 8)}`
  }

  /** Whether the next call is not sent to the provider. */
  get isAnswered(): boolean {
    return this.#settings.item.missing !== undefined || this.#stored() !== undefined
  }

  /** Wraps the provider's connections, so that calls with a stored answer are not sent. */
  readonly behind = (live: Transport): Transport => {
    return {
      send: async (url, request) => {
        const answer = await this.#next(url, request.body)
        return answer ? toSendResponse(answer) : live.send(url, request)
      },
      fetch: async (input, init) => {
        const url = input instanceof Request ? input.url : String(input)
        const answer = await this.#next(url, typeof init?.body === 'string' ? init.body : '{}')
        const headers = { 'content-type': answer?.type ?? '' }
        return answer ? new Response(answer.text, { status: answer.status, headers }) : live.fetch(input, init)
      },
    }
  }

  /** The same provider, with the lower price for answers from a batch. */
  priced(provider: ModelProvider): ModelProvider {
    return {
      ...provider,
      isAnswered: () => this.isAnswered,
      stream: (...call) => this.#stream(provider.stream(...call)),
    }
  }

  async *#stream(parts: ReturnType<ModelProvider['stream']>): ReturnType<ModelProvider['stream']> {
    for await (const some of parts) yield eachOf(some).map((part) => this.#priced(part))
  }

  #priced(part: ModelPart): ModelPart {
    if (!this.#isAnswered || part.type !== 'finish' || !part.usage) return part
    return { ...part, usage: { ...part.usage, priceFactor: PRICE_FACTOR } }
  }

  #stored(): BatchAnswer | undefined {
    const stored = this.#settings.item.answers.get(this.#id)
    return stored && stored.status !== GOES_LIVE.status ? stored : undefined
  }

  get #id(): string {
    return `${this.#prefix}-${this.#count}`
  }

  /** `undefined`: the call must be sent live. */
  async #next(url: string, body: string | Uint8Array): Promise<Answered | undefined> {
    const { item, base } = this.#settings
    const [id, stored] = [this.#id, this.#stored()]
    this.#isAnswered = stored !== undefined
    if (!stored && !item.missing) return undefined
    this.#count++
    const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
    const call = asBatched(url, base, JSON.parse(text) as JsonObject)
    if (stored?.status === 200)
      return { status: 200, type: 'text/event-stream', text: asEvents(call.path, stored.body) }
    if (stored) return { status: stored.status, type: 'application/json', text: JSON.stringify(stored.body) }
    if (!item.answers.has(id)) item.missing?.push({ id, ...call })
    await sleep(GATHER_MS)
    return { status: NOT_YET.status, type: 'application/json', text: JSON.stringify(NOT_YET.body) }
  }
}

/** A failure that is not tried again. Another 4xx would be: without the option that may have been refused. */
const NOT_YET: BatchAnswer = { status: 401, body: { error: { message: 'this call has no answer yet' } } }

const toSendResponse = ({ status, type, text }: Answered): SendResponse => ({
  status,
  headers: { 'content-type': type },
  body: (async function* () {
    yield new TextEncoder().encode(text)
  })(),
})
