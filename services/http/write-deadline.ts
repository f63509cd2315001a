import type { ServerResponse } from 'node:http'

export type WriteLimits = {
  /** A client that accepts no byte of an answer for this long is cut off. */
  stallMs: number
  /** Once an answer is complete, the client has `stallMs` plus the time that the unread rest takes at this rate. */
  minBytesPerSec: number
}

/**
 * Returns the function that limits a response: it destroys the connection of a client that does not read its answer, because an unread
 * answer stays in memory. A response that sends nothing because its result is not ready is not affected.
 */
export function createWriteLimit({ stallMs, minBytesPerSec }: WriteLimits): (res: ServerResponse) => void {
  // The listeners get the response as `this`, so that the responses of a server share them.
  function limitRest(this: ServerResponse): void {
    const bytes = unreadBytes(this)
    if (bytes === 0) return
    const deadline = setTimeout(() => this.destroy(), stallMs + (bytes / minBytesPerSec) * 1000).unref()
    this.on('close', () => clearTimeout(deadline))
  }
  return (res) => {
    res.setTimeout(stallMs, destroyIfUnread) // Fires when no byte was accepted: Node restarts it whenever a write makes progress.
    res.on('prefinish', limitRest)
  }
}

function destroyIfUnread(this: ServerResponse): void {
  if (unreadBytes(this) > 0) this.destroy()
}

const unreadBytes = (res: ServerResponse): number => res.writableLength + (res.socket?.writableLength ?? 0)
