import type { RequestHandler } from 'express'
import { type IsHeapHigh, refuseAtHighHeap } from '../../http/heap.ts'

/** Refuses what begins new work while the process's heap is too full, before the body is read. */
export const whileHeapIsLow =
  (isHeapHigh: IsHeapHigh) =>
  (handle: RequestHandler): RequestHandler =>
  (req, res, next) => {
    refuseAtHighHeap(isHeapHigh)
    return handle(req, res, next)
  }
