import { setTimeout as sleep } from 'node:timers/promises'
import type { Answered } from './ask.ts'
import { now } from './history.ts'
import type { Member, World } from './world.ts'

/** `at` is when the request was sent. */
export type Probe = Pick<Answered, 'status' | 'ms'> & { at: number }

const EVERY_MS = 200

/** Creates a session through every gateway each 200 ms until it is stopped, to measure how new work is accepted. */
export class SessionProber {
  readonly probes: Probe[] = []
  readonly #world: World
  readonly #stop = new AbortController()
  readonly #asked = new Set<Promise<void>>()
  readonly #loop: Promise<void>

  constructor(world: World) {
    this.#world = world
    this.#loop = this.#run()
  }

  /** Resolves when all requests are answered. */
  async stop(): Promise<readonly Probe[]> {
    this.#stop.abort()
    await this.#loop
    await Promise.all(this.#asked)
    return this.probes
  }

  /** Sends at fixed intervals, however long the answers take. */
  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      for (const gateway of this.#world.gateways) this.#probe(gateway)
      await sleep(EVERY_MS, undefined, { signal: this.#stop.signal }).catch(() => undefined)
    }
  }

  #probe(gateway: Member): void {
    const at = now()
    const asked = this.#world.ask(gateway, { path: '/sessions', body: {} }).then(({ status, ms }) => {
      this.probes.push({ at, status, ms })
      this.#asked.delete(asked)
    })
    this.#asked.add(asked)
  }
}

export type Outage = { from: number; to: number }

/** Whether new work was refused quickly while Redis was away, and accepted again after it. */
export function assessOutage(probes: readonly Probe[], { from, to }: Outage) {
  const inOrder = probes.toSorted((a, b) => a.at - b.at)
  const isAccepted = ({ status }: Probe) => status === 201
  const during = inOrder.filter(({ at }) => at >= from && at < to)
  const after = inOrder.filter(({ at }) => at >= to)
  const lastRefused = after.findLast((probe) => !isAccepted(probe))
  return {
    /** Requests during the outage that were answered neither 503 nor, where the answer came after its end, 201. */
    wrong: during.filter((probe) => probe.status !== 503 && !(isAccepted(probe) && isAcross(probe, { from, to }))),
    refusedInMs: during.filter(({ status }) => status === 503).map(({ ms }) => ms),
    /** From the end of the outage to the last refusal; `undefined` when nothing was accepted after it. */
    normalAfterMs: after.some(isAccepted) ? (lastRefused ? lastRefused.at + lastRefused.ms - to : 0) : undefined,
  }
}

/** Whether the request was in progress when the outage began or ended. */
const isAcross = ({ at, ms }: Probe, { from, to }: Outage) => at < from || at + ms >= to
