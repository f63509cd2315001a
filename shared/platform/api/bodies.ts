import { once } from '../../kernel/async/once.ts'
import type { Decode, Decoded, Lines } from './decode.ts'
import { DecodeThread, type DecodeThreadLimits } from './decode-thread.ts'
import { readBodySchemas, type Schemas } from './document.ts'

export interface Bodies {
  /** Decodes a body and checks it against a schema of `openapi.yaml`, named after it. The caller must not use `bytes` afterwards. */
  decode(schema: string, bytes: Uint8Array<ArrayBuffer>, lines?: Lines): Promise<Decoded>
}

/** Bodies up to this size are decoded in place, which takes a few milliseconds at worst. Larger ones go to a thread. */
const INLINE_MAX_BYTES = 128 * 1024

const THREAD_LIMITS: DecodeThreadLimits = { deadlineMs: 10_000, maxWaiting: 32, idleMs: 5_000 }

/** Every decoder of this process uses the same schemas and checks, which are read and compiled on first use. */
const schemas = once(readBodySchemas)
const decode = once(async () => loadDecode(await schemas()))

/** Creates a decoder with a thread of its own. */
export function createBodies(threadLimits = THREAD_LIMITS): Bodies {
  const thread = once(async () => new DecodeThread(await schemas(), threadLimits))
  return {
    async decode(name, bytes, lines) {
      const isSmall = bytes.length <= INLINE_MAX_BYTES
      return isSmall ? (await decode())(name, bytes, lines) : (await thread()).decode({ name, bytes, lines })
    },
  }
}

async function loadDecode(of: Schemas): Promise<Decode> {
  const { createDecode } = await import('./decode.ts') // Imported on first use: it loads ajv, which takes 14 MB.
  return createDecode(of)
}
