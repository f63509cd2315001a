import { isJsonObject, parseJson } from '../../../kernel/json.ts'
import { EventParser } from '../../../platform/net/event-parser.ts'
import type { CallWatch } from '../call-watch.ts'
import type { EventFields } from './event-fields.ts'

type Bytes = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>['read']>>

export type BodyReader = Pick<ReadableStreamDefaultReader<Uint8Array>, 'read'>

/**
 * Reads the body of an event stream, each event in the form that the package accepts (`EventFields`). Once the model has sent its finish
 * reason the answer is complete: the body then ends after a short time, or when the connection breaks.
 */
export class EventBody implements BodyReader {
  readonly #body: BodyReader
  readonly #fields: EventFields
  readonly #watch: CallWatch
  readonly #parser = new EventParser((data) => this.#take(data))
  #text = ''
  #isEnding = false
  #isOver = false

  constructor(body: BodyReader, fields: EventFields, watch: CallWatch) {
    this.#body = body
    this.#fields = fields
    this.#watch = watch
  }

  async read(): Promise<Bytes> {
    while (!this.#isOver) {
      const bytes = await this.#readBytes()
      if (bytes) this.#parser.push(bytes)
      else this.#end()
      if (this.#text !== '') return { done: false, value: this.#takeText() }
    }
    return { done: true, value: undefined }
  }

  async #readBytes(): Promise<Uint8Array | undefined> {
    if (this.#fields.isFinished) return this.#readRest()
    const { value } = await this.#body.read()
    return value
  }

  async #readRest(): Promise<Uint8Array | undefined> {
    if (!this.#isEnding) this.#watch.expectRest()
    this.#isEnding = true
    const { promise: isLate, resolve } = Promise.withResolvers<undefined>()
    const stop = () => resolve(undefined)
    const { signal } = this.#watch
    signal.addEventListener('abort', stop, { once: true })
    const rest = this.#body.read().then(({ value }) => value, stop)
    const bytes = await Promise.race([rest, isLate])
    signal.removeEventListener('abort', stop)
    return bytes ?? undefined
  }

  #end(): void {
    this.#parser.end()
    this.#isOver = true
    for (const event of this.#fields.rest()) this.#text += frameOf(JSON.stringify(event))
  }

  #take(data: string): void {
    const event = parseJson(data)
    this.#text += frameOf(isJsonObject(event) ? fitted(event, this.#fields, data) : data)
  }

  #takeText(): Uint8Array {
    const bytes = Buffer.from(this.#text)
    this.#text = ''
    return bytes
  }
}

function fitted(event: Record<string, unknown>, fields: EventFields, data: string): string {
  const fit = fields.fit(event)
  return fit === event ? data : JSON.stringify(fit)
}

/** Only the data of an event is read. */
const frameOf = (data: string) => `data: ${data.replaceAll('\n', '\ndata: ')}\n\n`
