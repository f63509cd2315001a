import { createHash } from 'node:crypto'
import type { ObjectContent } from './port.ts'

export const sha256Of = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex')

export const contentOf = (content: Uint8Array | string): ObjectContent => {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  return { bytes: bytes.length, sha256: sha256Of(bytes), open: () => bytes }
}

/** Reads a body into memory. Throws when it is longer than `maxBytes`. */
export async function readAll(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error(`the object is longer than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
