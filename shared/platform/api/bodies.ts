import type { Decoded, Lines } from './decode.ts'
import { DecodeThread, type DecodeThreadLimits } from './decode-thread.ts'
import { decoderOf } from './decoders.ts'

export interface Bodies {
  /** Decodes a body and checks it against a schema of `openapi.yaml`, named after it. The caller must not use `bytes` afterwards. */
  decode(schema: string, bytes: Uint8Array<ArrayBuffer>, lines?: Lines): Promise<Decoded>
}

/** Bodies up to this size are decoded in place, which takes a few milliseconds at worst. Larger ones go to a thread. */
const INLINE_MAX_BYTES = 128 * 1024

const THREAD_LIMITS: DecodeThreadLimits = {
  ...{ deadlineMs: 10_000, maxWaiting: 32, idleMs: 5_000 },
  keptBytes: 64 * 1024 * 1024,
}

/** Creates a decoder with a thread of its own. */
export function createBodies(threadLimits = THREAD_LIMITS): Bodies {
  const thread = new DecodeThread(threadLimits)
  return {
    async decode(name, bytes, lines) {
      const isSmall = bytes.length <= INLINE_MAX_BYTES
      return isSmall ? (await decoderOf(name))(bytes, lines) : thread.decode({ name, bytes, lines })
    },
  }
}
