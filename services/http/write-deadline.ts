import type { ServerResponse } from 'node:http'

export type WriteLimits = {
  /** A client that accepts no byte of an answer for this long is cut off. */
  stallMs: number
  /** From the end of an answer on its client has `stallMs`, and the time that the rest takes at this rate, to read it. */
  minBytesPerSec: number
}

/**
 * Destroys the connection of a client that does not read its answer, because the answer is held in memory until it has. A response that
 * sends nothing for a while, since its result is not ready, is not affected.
 */
export function limitWrites(res: ServerResponse, { stallMs, minBytesPerSec }: WriteLimits): void {
  let deadline: NodeJS.Timeout | undefined
  // The timeout of the socket passes when no byte was accepted: Node starts it again as long as a write makes progress.
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
