import { LiveItems } from '../../http/live-items.ts'

/** An open stream that needs a keepalive comment at regular intervals. */
export interface KeepaliveTarget {
  sendKeepalive(): void
}

export interface Keepalive {
  /** Returns a function that removes the stream, to be called once. */
  add(stream: KeepaliveTarget): () => void
}

const SLOT_MS = 100

/**
 * Calls each added stream every `intervalMs`, with one timer for all of them: a timer wheel. A stream is in the slot that was current
 * when it was added, so streams that open at different times get their comments at different times. The timer runs only while
 * there are streams.
 */
export function createKeepalive(intervalMs: number): Keepalive {
  const wheel = Array.from(
    { length: Math.max(1, Math.round(intervalMs / SLOT_MS)) },
    () => new LiveItems<KeepaliveTarget>(),
  )
  let openCount = 0
  let current = 0
  let timer: NodeJS.Timeout | undefined

  const advance = (): void => {
    current = (current + 1) % wheel.length
    for (const stream of wheel[current] ?? []) stream.sendKeepalive()
  }
  return {
    add(stream) {
      const leave = wheel[current]?.add(stream)
      openCount++
      timer ??= setInterval(advance, SLOT_MS).unref()
      return () => {
        leave?.()
        if (--openCount > 0) return
        clearInterval(timer)
        timer = undefined
      }
    },
  }
}
