import { setTimeout as sleep } from 'node:timers/promises'
import type { Answered } from './ask.ts'
import { now } from './history.ts'
import type { Member, World } from './world.ts'

/** `at` is when it was asked. */
export type Probe = Pick<Answered, 'status' | 'ms'> & { at: number }

const EVERY_MS = 200

/** Creates sessions through every gateway until it is stopped: how new work is taken meanwhile. */
export class Prober {
  readonly probes: Probe[] = []
  readonly #world: World
  readonly #stop = new AbortController()
  readonly #asked = new Set<Promise<void>>()
  readonly #loop: Promise<void>

  constructor(world: World) {
    this.#world = world
    this.#loop = this.#run()
  }

  /** Resolves when all that was asked is answered. */
  async stop(): Promise<readonly Probe[]> {
    this.#stop.abort()
    await this.#loop
    await Promise.all(this.#asked)
    return this.probes
  }

  /** At its own pace, however long the answers take. */
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

/** How new work fared: refused quickly while Redis was away, and taken again after it. */
export function judgeOutage(probes: readonly Probe[], { from, to }: Outage) {
  const inOrder = probes.toSorted((a, b) => a.at - b.at)
  const isTaken = ({ status }: Probe) => status === 201
  const during = inOrder.filter(({ at }) => at >= from && at < to)
  const after = inOrder.filter(({ at }) => at >= to)
  const lastRefused = after.findLast((probe) => !isTaken(probe))
  return {
    /** What was asked before the end of the outage and answered with neither 503 nor, by its very end, 201. */
    wrong: during.filter((probe) => probe.status !== 503 && !(isTaken(probe) && isAcross(probe, { from, to }))),
    refusedInMs: during.filter(({ status }) => status === 503).map(({ ms }) => ms),
    /** From the end of the outage to the last answer that was none; `undefined` when nothing was asked or taken after it. */
    normalAfterMs: after.some(isTaken) ? (lastRefused ? lastRefused.at + lastRefused.ms - to : 0) : undefined,
  }
}

/** Was it under way when the outage began or ended? */
const isAcross = ({ at, ms }: Probe, { from, to }: Outage) => at < from || at + ms >= to
