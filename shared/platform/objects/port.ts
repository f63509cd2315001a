import type { Readable } from 'node:stream'
import { AppError } from '../../kernel/errors.ts'

/** The bytes of an object. They are sent again after a failure, so `open` may be called several times. */
export type ObjectContent = {
  bytes: number
  /** In hexadecimal digits. */
  sha256: string
  open(): Uint8Array | Readable
}

/** A part of an object: from byte `from` to byte `to`, inclusive; both must exist. */
export type ByteRange = { from: number; to: number }

/** An object is written only if its key does not exist (`absent`), or has this tag. */
export type WriteCondition = 'absent' | { tag: string }

export type FoundObject = {
  /** Changes with the content. */
  tag: string
  /** Throws `unavailable` when reading breaks off. */
  body: AsyncIterable<Uint8Array>
}

/** `ageMs` is the time since it was written, by the clock of the store. */
export type ListedObject = { key: string; ageMs: number }

/**
 * Objects that all processes share, by their keys: letters, digits, `.`, `_`, `-` and `/`. Every method throws `unavailable` when the store
 * does not answer for `waitMs`, or refuses; the `cause` has the reason.
 */
export interface Objects {
  has(key: string): Promise<boolean>
  /** Opens an object or a part of it. The body must be read, because the store waits for that. */
  find(key: string, range?: ByteRange): Promise<FoundObject | undefined>
  /**
   * Returns the new tag; `undefined` when the condition does not hold. A write that is repeated after a failure may
   * also return `undefined`, because the first attempt was carried out.
   */
  write(key: string, content: ObjectContent, when?: WriteCondition): Promise<string | undefined>
  /** Does nothing when the object does not exist. */
  delete(key: string): Promise<void>
  /** The objects whose keys begin with `prefix`, in the order of their keys. */
  list(prefix: string): AsyncIterable<ListedObject>
  close(): Promise<void>
}

/** The error of a store that does not answer, or refuses. */
export const away = (cause: unknown): AppError =>
  new AppError('unavailable', 'the files cannot be reached at the moment; try again', { retryAfterSecs: 2, cause })

/** Throws `unavailable` for each failure of `attempt`. */
export async function orAway<T>(attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt()
  } catch (cause) {
    throw away(cause)
  }
}
