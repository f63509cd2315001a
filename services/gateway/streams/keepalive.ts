import { LiveItems } from '../../http/live-items.ts'

/** An open stream that needs a keepalive comment at regular intervals. */
export interface KeepaliveTarget {
  sendKeepalive(): void
}

export interface Keepalive {
  /** Returns a function that removes the stream, to be called once. */
  add(stream: KeepaliveTarget): () => void
}

type Waiting = { stream: KeepaliveTarget; dueAt: number; leave: () => void }

/** The least time between two checks, so that thousands of streams share few timer runs. A comment is at most this late. */
const LEAST_WAIT_MS = 50

/**
 * Calls each added stream `intervalMs` after its last comment, with one timer for all of them. As the interval is the same for all, the streams
 * are in the order of their next comments. The timer runs only while there are streams.
 */
export function createKeepalive(intervalMs: number, now: () => number = () => performance.now()): Keepalive {
  const queue = new LiveItems<Waiting>()
  let timer: NodeJS.Timeout | undefined

  const enqueue = (waiting: Waiting): void => {
    waiting.dueAt = now() + intervalMs
    waiting.leave = queue.add(waiting)
  }
  const wait = (): void => {
    const [first] = queue
    const waitMs = first && Math.max(LEAST_WAIT_MS, Math.ceil(first.dueAt - now()))
    timer = waitMs === undefined ? undefined : setTimeout(send, waitMs).unref()
  }
  const send = (): void => {
    for (const waiting of queue) {
      if (waiting.dueAt > now()) break
      waiting.leave()
      enqueue(waiting) // Before the comment, because the stream may be removed during it.
      waiting.stream.sendKeepalive()
    }
    wait()
  }
  return {
    add(stream) {
      const waiting: Waiting = { stream, dueAt: 0, leave: () => {} }
      enqueue(waiting)
      if (timer === undefined) wait()
      return () => {
        waiting.leave()
        if (queue.size > 0) return
        clearTimeout(timer)
        timer = undefined
      }
    },
  }
}
