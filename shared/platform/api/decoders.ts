import { once } from '../../kernel/async/once.ts'
import type { Decode } from './decode.ts'
import { readBodySchemas } from './document.ts'

const decoders = new Map<string, () => Promise<Decode>>()

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
  return createDecode(await readBodySchemas(schema), schema)
}
