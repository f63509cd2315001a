import type { Request } from 'express'
import { type AppError, invalidRequest } from '../../../shared/kernel/errors.ts'

export type RateLimits = {
  /** The length of the windows in which the rate is measured. */
  windowMs: number
  /** The body is refused as too slow when fewer bytes arrive in one window. */
  minWindowBytes: number
}

/** The bytes that must arrive within a window: at least 10 KB a second. */
export const leastBytes = (windowMs: number): number => (10 * 1024 * windowMs) / 1000

/** Calls `refuse` when a body arrives too slowly. A client that stalls would otherwise hold the body's memory or disk space for a long time. */
export function watchRate(
  req: Request,
  { windowMs, minWindowBytes }: RateLimits,
  refuse: (error: AppError) => void,
): NodeJS.Timeout {
  const { socket } = req
  let bytesBefore = socket.bytesRead
  return setInterval(() => {
    const bytes = socket.bytesRead - bytesBefore
    bytesBefore = socket.bytesRead
    if (!req.complete && bytes < minWindowBytes) refuse(tooSlow())
  }, windowMs).unref()
}

const tooSlow = () => invalidRequest('the body arrives too slowly: send at least 10 KB a second', { status: 408 })
