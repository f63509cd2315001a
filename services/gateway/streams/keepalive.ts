import { LiveItems, type Place } from '../../http/live-items.ts'

/** An open stream that needs a keepalive comment at regular intervals. */
export interface KeepaliveTarget {
  sendKeepalive(): void
}

export interface Keepalive {
  /** To remove the stream, leave the returned place, once. */
  add(stream: KeepaliveTarget): Place
}

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
    waiting.place = queue.add(waiting)
  }
  const wait = (): void => {
    const [first] = queue
    const waitMs = first && Math.max(LEAST_WAIT_MS, Math.ceil(first.dueAt - now()))
    timer = waitMs === undefined ? undefined : setTimeout(send, waitMs).unref()
  }
  const send = (): void => {
    for (const waiting of queue) {
      if (waiting.dueAt > now()) break
      waiting.place?.leave()
      enqueue(waiting) // Before the comment, because the stream may be removed during it.
      waiting.stream.sendKeepalive()
    }
    wait()
  }
  const onLeft = (): void => {
    if (queue.size > 0) return
    clearTimeout(timer)
    timer = undefined
  }
  return {
    add(stream) {
      const waiting = new Waiting(stream, onLeft)
      enqueue(waiting)
      if (timer === undefined) wait()
      return waiting
    },
  }
}

class Waiting implements Place {
  readonly stream: KeepaliveTarget
  readonly #onLeft: () => void
  dueAt = 0
  place: Place | undefined = undefined

  constructor(stream: KeepaliveTarget, onLeft: () => void) {
    this.stream = stream
    this.#onLeft = onLeft
  }

  leave(): void {
    this.place?.leave()
    this.#onLeft()
  }
}
