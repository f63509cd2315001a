import type { RequestHandler, Response } from 'express'
import type { AppError } from '../../../shared/kernel/errors.ts'
import { type IsHeapHigh, refuseAtHighHeap, tooFull } from '../../http/heap.ts'
import { assertCounted } from './rate-limit.ts'

/** A full heap may not have room for a larger body. Answers to permission requests are shorter. */
const MAX_BYTES = 1024 * 1024

/** Refuses new work while the process's heap is too full, before the body is read. */
export const whileHeapIsLow =
  (isHeapHigh: IsHeapHigh) =>
  (handle: RequestHandler): RequestHandler =>
  (req, res, next) => {
    refuseAtHighHeap(isHeapHigh)
    return handle(req, res, next)
  }

/**
 * For a path whose body either begins new work or carries answers to permission requests: only the body says which. While the heap is too
 * full, a small body is read, and `assertAdmitted` refuses it when it turns out to be new work; a large one is refused unread.
 */
export const answersWhileHeapIsHigh =
  (isHeapHigh: IsHeapHigh) =>
  (handle: RequestHandler): RequestHandler =>
  (req, res, next) => {
    if (isHeapHigh()) {
      const bytes = req.headers['content-length']
      if (bytes === undefined || Number(bytes) > MAX_BYTES) throw tooFull()
      res.locals['heapRefusal'] = tooFull()
    }
    return handle(req, res, next)
  }

/** Throws the refusal of new work, for a request that was let through because it could have carried answers. */
export function assertAdmitted(res: Response): void {
  assertCounted(res)
  const refusal = res.locals['heapRefusal'] as AppError | undefined
  if (refusal) throw refusal
}
