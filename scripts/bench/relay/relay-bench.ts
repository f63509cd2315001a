import { type Cluster, startCluster } from './cluster.ts'
import { Load } from './load.ts'
import type { Peer, Peers } from './peer.ts'
import { RUN_PATH, type Target } from './target.ts'

const KEEPALIVE_MS = 15_000

/** The processes that the figures measure. Each starts when it is first used. Disposing of it ends all. */
export class RelayBench implements AsyncDisposable {
  readonly isQuick: boolean
  readonly peers: Peers
  readonly #started = new AsyncDisposableStack()
  #load: Promise<Load> | undefined
  #direct: Promise<Peer> | undefined
  #relay: Promise<Cluster> | undefined

  constructor(peers: Peers, isQuick: boolean) {
    this.peers = peers
    this.isQuick = isQuick
  }

  /** `full`, or `quick` in the quick form. */
  pick(full: number, quick: number): number {
    return this.isQuick ? quick : full
  }

  load(): Promise<Load> {
    this.#load ??= this.peers.start('client').then((client) => new Load(this.#started.use(client)))
    return this.#load
  }

  /** The process without a relay, which creates the events itself. */
  async direct(): Promise<Peer> {
    this.#direct ??= this.peers.start('direct').then((peer) => this.#started.use(peer))
    return this.#direct
  }

  async directTarget(path = RUN_PATH): Promise<Target> {
    return { port: (await this.direct()).ready.port, path }
  }

  /** The product's worker and gateway. */
  relay(): Promise<Cluster> {
    this.#relay ??= this.startRelay().then((cluster) => this.#started.use(cluster))
    return this.#relay
  }

  /** Starts a new cluster, for measurements of memory. */
  startRelay(keepaliveMs = KEEPALIVE_MS): Promise<Cluster> {
    return startCluster(this.peers, { worker: 'worker', gateway: 'gateway', path: RUN_PATH, keepaliveMs })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#started.disposeAsync()
  }
}
