import { contentOf } from '../../../platform/objects/content.ts'
import type { ObjectContent } from '../../../platform/objects/port.ts'
import type { StoredContent } from './manifest.ts'

/** Larger files are each sent as an object of their own. */
export const SMALL_BYTES = 64 * 1024
const PACK_BYTES = 1024 * 1024
/** Fewer small files than this are also sent one by one: most runs change only a few files, and each can then be replaced separately. */
const LEAST_PACKED = 16

type Waiting = PromiseWithResolvers<StoredContent> & { content: ObjectContent }

/** Puts the contents of many small files into a few objects: a store takes as long for one such object as for a small file. */
export class Packer {
  readonly #send: (content: ObjectContent) => Promise<string>
  #waiting: Waiting[] = []
  #bytes = 0

  /** `send` stores an object and returns its name. */
  constructor(send: (content: ObjectContent) => Promise<string>) {
    this.#send = send
  }

  /** Resolves when `sendFull` or `flush` has stored the content. */
  add(content: ObjectContent): Promise<StoredContent> {
    const waiting = { ...Promise.withResolvers<StoredContent>(), content }
    waiting.promise.catch(() => {}) // The error is thrown where the promise is awaited.
    this.#waiting.push(waiting)
    this.#bytes += content.bytes
    return waiting.promise
  }

  /** Sends the waiting contents that fill a whole object. */
  async sendFull(): Promise<void> {
    if (this.#bytes >= PACK_BYTES) await this.flush()
  }

  /** Sends all waiting contents. A failure rejects the promises of the contents, not this one. */
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
