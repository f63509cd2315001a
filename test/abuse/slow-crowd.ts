import { setTimeout as sleep } from 'node:timers/promises'
import { SlowSocket, type Trickle } from './slow-socket.ts'

const TRICKLE_EVERY_MS = 1_000

/** Many slow clients; one timer makes each send a little every second. Disposing of it closes their connections. */
export class SlowCrowd implements Disposable {
  readonly sockets: readonly SlowSocket[]
  readonly #timer: NodeJS.Timeout

  constructor(port: number, trickles: readonly Trickle[]) {
    this.sockets = trickles.map((trickle) => new SlowSocket(port, trickle))
    this.#timer = setInterval(() => {
      for (const socket of this.sockets) socket.trickle()
    }, TRICKLE_EVERY_MS)
  }

  /** The number of connections that are open and not answered yet. */
  get waiting(): number {
    return this.sockets.filter(({ isOpen, answeredMs }) => isOpen && answeredMs === undefined).length
  }

  /** Resolves when the server has closed every connection, or after `ms`. */
  async closed(ms: number): Promise<void> {
    const timer = new AbortController()
    const late = sleep(ms, undefined, { signal: timer.signal }).catch(() => {})
    await Promise.race([Promise.all(this.sockets.map(({ closed }) => closed.promise)), late])
    timer.abort()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    for (const socket of this.sockets) socket.leave()
  }
}
