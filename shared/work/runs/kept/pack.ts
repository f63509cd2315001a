import { contentOf } from '../../../platform/objects/content.ts'
import type { ObjectContent } from '../../../platform/objects/port.ts'
import type { StoredContent } from './manifest.ts'

/** Larger files are sent alone. */
export const SMALL_BYTES = 64 * 1024
const PACK_BYTES = 1024 * 1024
/** Fewer are sent alone, too: what a run changes mostly is a few files, of which each is then replaced by itself. */
const LEAST_PACKED = 16

type Waiting = PromiseWithResolvers<StoredContent> & { content: ObjectContent }

/** Puts the contents of many small files into a few objects: a store takes as long for one of them as for a small file. */
export class Packer {
  readonly #send: (content: ObjectContent) => Promise<string>
  #waiting: Waiting[] = []
  #bytes = 0

  /** `send` stores an object and returns its name. */
  constructor(send: (content: ObjectContent) => Promise<string>) {
    this.#send = send
  }

  /** Resolves when the content is stored, which `sendFull` and `flush` see to. */
  add(content: ObjectContent): Promise<StoredContent> {
    const waiting = { ...Promise.withResolvers<StoredContent>(), content }
    waiting.promise.catch(() => {}) // The error is thrown where the promise is awaited.
    this.#waiting.push(waiting)
    this.#bytes += content.bytes
    return waiting.promise
  }

  /** Sends what makes a whole object. */
  async sendFull(): Promise<void> {
    if (this.#bytes >= PACK_BYTES) await this.flush()
  }

  /** Sends what waits. A failure is that of the contents. */
  async flush(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    this.#bytes = 0
    if (waiting.length >= LEAST_PACKED) return this.#sendPack(waiting)
    await Promise.all(
      waiting.map(({ content, resolve, reject }) => this.#send(content).then((object) => resolve({ object }), reject)),
    )
  }

  async #sendPack(waiting: readonly Waiting[]): Promise<void> {
    const pack = contentOf(Buffer.concat(waiting.map(({ content }) => content.open() as Uint8Array)))
    try {
      const object = await this.#send(pack)
      let at = 0
      for (const { content, resolve } of waiting) {
        resolve({ object, packed: { at, of: pack.bytes } })
        at += content.bytes
      }
    } catch (cause) {
      for (const { reject } of waiting) reject(cause)
    }
  }
}
