import { getHeapStatistics } from 'node:v8'
import { AppError } from '../../shared/kernel/errors.ts'

/** Whether so much of the process's heap is in use that new work could end it. */
export type IsHeapHigh = () => boolean

/** The part of the heap above which a process takes no new work. The rest is for running work. */
const HIGH = 0.8
/** The same for the heap with its gaps: V8 ends the process when it cannot add a page, however much room the pages have. */
const HIGH_WITH_GAPS = 0.9
const SAMPLE_MS = 100
const RETRY_SECS = 2

type HeapUse = { used_heap_size: number; total_heap_size: number; heap_size_limit: number }

/** Reads the heap's size at most every 100 ms. */
export function createHeapGuard(read: () => HeapUse = getHeapStatistics, now = () => performance.now()): IsHeapHigh {
  let readAt = Number.NEGATIVE_INFINITY
  let isHigh = false
  return () => {
    if (now() - readAt < SAMPLE_MS) return isHigh
    readAt = now()
    const { used_heap_size: used, total_heap_size: total, heap_size_limit: limit } = read()
    isHigh = used > limit * HIGH || total > limit * HIGH_WITH_GAPS
    return isHigh
  }
}

/** Throws `unavailable` while the heap is too full for new work. */
export function refuseAtHighHeap(isHeapHigh: IsHeapHigh): void {
  if (isHeapHigh()) throw tooFull()
}

export const tooFull = (): AppError =>
  new AppError('unavailable', 'this server has too little memory for new work at the moment; try again', {
    retryAfterSecs: RETRY_SECS,
  })
