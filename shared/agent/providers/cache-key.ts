import { createHash } from 'node:crypto'
import type { ModelRequest } from './port.ts'

/**
 * A key that all requests of one conversation share: OpenAI sends requests with equal keys to the machine that has their beginning
 * in its cache. It is a hash of the system prompt and the first message, so it tells nothing of them.
 */
export function promptCacheKey({ system = '', messages }: ModelRequest): string {
  const [first] = messages
  const text = first?.role === 'user' ? first.text : ''
  return createHash('sha256').update(`${system}\n${text}`).digest('hex').slice(0, 32)
}
