import { once } from '../../kernel/async/once.ts'
import type { Decode, Decoded, Lines } from './decode.ts'
import { DecodeThread, type DecodeThreadLimits } from './decode-thread.ts'
import { readBodySchemas } from './document.ts'

export interface Bodies {
  /** Decodes a body and checks it against a schema of `openapi.yaml`, named after it. The caller must not use `bytes` afterwards. */
  decode(schema: string, bytes: Uint8Array<ArrayBuffer>, lines?: Lines): Decoded | Promise<Decoded>
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
    decode(name, bytes, lines) {
      if (bytes.length > INLINE_MAX_BYTES) return thread.decode({ name, bytes, lines })
      const decode = loaded.get(name)
      return decode ? decode(bytes, lines) : decoderOf(name).then((loading) => loading(bytes, lines))
    },
  }
}

const decoders = new Map<string, () => Promise<Decode>>()
const loaded = new Map<string, Decode>()

/** The decoder for bodies of a schema of `openapi.yaml`, which is read and compiled for the first of them. */
export function decoderOf(schema: string): Promise<Decode> {
  const known = decoders.get(schema)
  if (known) return known()
  const load = once(() => loadDecoder(schema))
  decoders.set(schema, load)
  return load()
}

async function loadDecoder(schema: string): Promise<Decode> {
  const { createDecode } = await import('./decode.ts') // Imported on first use: it loads ajv, which takes 14 MB.
  const decode = createDecode(await readBodySchemas(schema), schema)
  loaded.set(schema, decode)
  return decode
}
