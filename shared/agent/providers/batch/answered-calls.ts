import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { eachOf } from '../../../kernel/async/batch.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import type { ModelPart, ModelProvider, Send, SendResponse } from '../port.ts'
import { asBatched, asEvents } from './as-events.ts'
import { type BatchAnswer, type BatchCall, GOES_LIVE } from './port.ts'

/** The connections of a provider. */
export type Transport = { send: Send; fetch: typeof globalThis.fetch }

/** The answers of a vendor's batches to the calls of one execution. With `missing` it is rehearsed: calls without an answer are noted there, and sent to nobody. */
export type ItemAnswers = { traceId: string; answers: ReadonlyMap<string, BatchAnswer>; missing?: BatchCall[] }

/** What a vendor takes for a call in a batch, as a part of the price of the same call now. */
const PRICE_FACTOR = 0.5
/** Agents that run at the same time make their calls within it: the first failure ends the others. */
const GATHER_MS = 50

type Settings = { item: ItemAnswers; agent: string; base: string }
type Answered = { status: number; type: string; text: string }

/**
 * The model calls of one agent, in their order: those that a batch has answered are taken from there, and the next ones are sent as always. A call has the id of the
 * execution, the agent and the number, so that an execution that begins anew asks for nothing twice.
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

  /** Whether the next call has its answer, so that nobody is called. */
  get isAnswered(): boolean {
    return this.#settings.item.missing !== undefined || this.#stored() !== undefined
  }

  /** The connections of the provider, with what is answered taken out of them. */
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

  /** The same provider, whose answers from a batch cost less. */
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

  /** `undefined`: the call is to be sent. */
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

/** A failure after which nobody asks in another way: of a refusal it is tried without what may have been refused. */
const NOT_YET: BatchAnswer = { status: 401, body: { error: { message: 'this call has no answer yet' } } }

const toSendResponse = ({ status, type, text }: Answered): SendResponse => ({
  status,
  headers: { 'content-type': type },
  body: (async function* () {
    yield new TextEncoder().encode(text)
  })(),
})
