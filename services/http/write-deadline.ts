import type { ServerResponse } from 'node:http'

export type WriteLimits = {
  /** A client that accepts no byte of an answer for this long is cut off. */
  stallMs: number
  /** Once an answer is complete, the client has `stallMs` plus the time that the unread rest takes at this rate. */
  minBytesPerSec: number
}

/**
 * Destroys the connection of a client that does not read its answer, because an unread answer stays in memory. A response that sends
 * nothing because its result is not ready is not affected.
 */
export function limitWrites(res: ServerResponse, { stallMs, minBytesPerSec }: WriteLimits): void {
  let deadline: NodeJS.Timeout | undefined
  // The socket's timeout fires when no byte was accepted: Node restarts it whenever a write makes progress.
  res.setTimeout(stallMs, () => {
    if (unreadBytes(res) > 0) res.destroy()
  })
  res.once('prefinish', () => {
    const bytes = unreadBytes(res)
    if (bytes === 0) return
    deadline = setTimeout(() => res.destroy(), stallMs + (bytes / minBytesPerSec) * 1000).unref()
  })
  res.once('close', () => clearTimeout(deadline))
}

const unreadBytes = (res: ServerResponse): number => res.writableLength + (res.socket?.writableLength ?? 0)
