import type { Counted, CrowdOrder, CrowdReport } from './client/crowd.ts'
import type { Peer } from './peer.ts'
import type { Target } from './target.ts'

/** Calls the client process, which runs one crowd of streams at a time. */
export class Load {
  readonly #client: Peer

  constructor(client: Peer) {
    this.#client = client
  }

  open(order: CrowdOrder): Promise<unknown> {
    return this.#client.call('open', order)
  }

  async count(ms: number, except = 0): Promise<Counted> {
    return (await this.#client.call('count', { ms, except })) as Counted
  }

  async latencies(ms: number): Promise<{ p50: number; p99: number }> {
    return (await this.#client.call('latencies', { ms })) as { p50: number; p99: number }
  }

  setReading(isReading: boolean, from: number, to: number): Promise<unknown> {
    return this.#client.call('setReading', { isReading, from, to })
  }

  ends(withinMs: number): Promise<unknown> {
    return this.#client.call('ends', { withinMs })
  }

  async report(): Promise<CrowdReport> {
    return (await this.#client.call('report')) as CrowdReport
  }

  close(): Promise<unknown> {
    return this.#client.call('close')
  }

  async oneAtATime(target: Target, count: number): Promise<number> {
    return (await this.#client.call('oneAtATime', { target, count })) as number
  }

  async atRate(target: Target, how: { perSecond: number; ms: number }): Promise<number> {
    return (await this.#client.call('atRate', { target, ...how })) as number
  }

  async closedLoop(target: Target, how: { callers: number; ms: number }): Promise<number> {
    return (await this.#client.call('closedLoop', { target, ...how })) as number
  }
}
