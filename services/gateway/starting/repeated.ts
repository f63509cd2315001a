import type { Request, Response } from 'express'
import { canonicalHash } from '../../../shared/platform/store/idempotency.ts'
import { subjectOf } from '../middleware/auth.ts'
import type { Attempt } from './start-once.ts'

/** A request that its sender repeats by itself when a connection breaks, counting that: the same body of the same caller is the same request (D39.6). */
export type Repeated = { key: string; request: unknown; attempt: Attempt }

/** OpenAI's packages send no Idempotency-Key, but the number of the repetition. `undefined` for other clients. */
export function repeatedOf(req: Request, res: Response, body: unknown): Repeated | undefined {
  const count = req.get('x-stainless-retry-count')
  if (count === undefined || !/^\d{1,3}$/.test(count)) return undefined
  const request = [subjectOf(res), body]
  return { key: `repeated ${canonicalHash(request)}`, request, attempt: Number(count) === 0 ? 'first' : 'again' }
}
