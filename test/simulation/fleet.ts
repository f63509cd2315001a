import { MemoryCluster } from '../../shared/cluster/memory-cluster.ts'
import { epochOfRun } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { Checker } from './checker.ts'
import { FaultyStore } from './faulty-store.ts'
import { GatewayNode, type SimWorld, WorkerNode } from './nodes.ts'
import type { Role } from './plan.ts'
import type { Owner, Time } from './time.ts'
import { FaultyWire } from './wire.ts'

/** The members register again within this time after Redis has lost its keys. */
const REBUILD_MS = 3_000
/** Sessions, and runs that have moved. */
const MAX_KEYS = 200

/** The processes of a simulated cluster, and the facts about all of them that none of them can see. */
export class Fleet {
  readonly wire: FaultyWire
  readonly cluster: MemoryCluster
  readonly store: FaultyStore
  /** Runs are stored. */
  readonly isDurable: boolean
  readonly #time: Time
  readonly #checker: Checker
  readonly #world: SimWorld
  readonly #gateways: GatewayNode[] = []
  readonly #workers: WorkerNode[] = []
  readonly #deaths = new Map<Owner, Set<() => void>>()
  /** The epochs that each worker has had. */
  readonly #epochs = new Map<WorkerNode, Set<number>>()
  readonly #members = new Set<WorkerNode>()
  readonly #told = new Map<WorkerNode, string>()
  #keysLostMs = -Infinity
  #lostSinceMs = Infinity
  #troubledMs = -Infinity
  /** Whether a worker has died, was evicted, or could not hand its sessions over because something was away. Sessions may have gone with it. */
  hasLostWorker = false

  constructor(time: Time, checker: Checker, { isDurable }: { isDurable: boolean }) {
    this.isDurable = isDurable
    this.#time = time
    this.#checker = checker
    this.wire = new FaultyWire(time)
    this.cluster = new MemoryCluster({ wire: this.wire, maxKeys: MAX_KEYS })
    this.store = new FaultyStore(time)
    this.#world = {
      ...(isDurable && { store: this.store }),
      time,
      wire: this.wire,
      cluster: this.cluster,
      onEffect: (key, node) => checker.effect(key, node.owner.name, this.#isMember(node) || this.#isRebuilding),
      onAsked: (key, node) => checker.asked(key, node.owner.name),
      onLeft: (node) => this.#onLeft(node),
      onBug: (what) => checker.violate('no bug is logged', what),
    }
  }

  addGateway(): void {
    this.#gateways.push(new GatewayNode(`g${this.#gateways.length + 1}`, this.#world))
    this.#checker.say(`g${this.#gateways.length} starts`)
  }

  addWorker(): void {
    this.#workers.push(new WorkerNode(`w${this.#workers.length + 1}`, this.#world))
    this.#checker.say(`w${this.#workers.length} starts`)
  }

  /** A gateway that serves, as a load balancer without health checks chooses it. */
  anyGateway(): GatewayNode | undefined {
    const serving = this.#gateways.filter(({ owner, readyAt }) => owner.state !== 'dead' && readyAt !== undefined)
    return serving.length === 0 ? undefined : this.#time.random.pick(serving)
  }

  /** The process of this place among those of its role that live. */
  pick({ role, nth }: { role: Role; nth: number }): Owner | undefined {
    const nodes = role === 'worker' ? this.#workers : this.#gateways
    const living = nodes.map(({ owner }) => owner).filter(({ state }) => state !== 'dead')
    return living[nth % living.length]
  }

  /** A worker that another one could take over from. */
  pickToDrain(nth: number): WorkerNode | undefined {
    const staying = this.#workers.filter(
      ({ owner, drainsSince }) => owner.state !== 'dead' && drainsSince === undefined,
    )
    return staying.length > 1 ? staying[nth % staying.length] : undefined
  }

  kill(owner: Owner): void {
    this.#time.kill(owner)
    if (this.#workers.some((node) => node.owner === owner)) this.hasLostWorker = true
    const listeners = this.#deaths.get(owner)
    this.#deaths.delete(owner)
    for (const listener of listeners ?? []) listener()
  }

  /** Calls `onDeath` when this process dies. Returns the function that forgets that. */
  onDeath(owner: Owner, onDeath: () => void): () => void {
    if (owner.state === 'dead') {
      onDeath()
      return () => {}
    }
    const listeners = this.#deaths.get(owner) ?? new Set()
    this.#deaths.set(owner, listeners.add(onDeath))
    return () => listeners.delete(onDeath)
  }

  /** Something is away until this time. */
  isTroubledUntil(ms: number): void {
    this.#troubledMs = Math.max(this.#troubledMs, ms)
  }

  /** Redis loses what was written since then. A worker that cannot claim its sessions again at once loses them. */
  loseKeys(sinceMs: number, lose: () => void): void {
    this.#lostSinceMs = sinceMs
    this.#keysLostMs = this.#time.nowMs
    lose()
    if (this.#workers.some(({ owner }) => owner.state === 'frozen' || this.wire.isCut(owner))) this.hasLostWorker = true
  }

  /** The worker that has the session and may act for it. */
  holderOf(sessionId: string): string | undefined {
    return this.#acting().find(({ worker }) => [...worker.sessions()].some(({ id }) => id === sessionId))?.owner.name
  }

  /** The worker that has the run, which has not ended, and may act for it. The runs of an earlier life of a worker are ending. */
  holderOfRun(runId: string): string | undefined {
    const epoch = epochOfRun(runId)
    const isOfEarlierLife = (node: WorkerNode) =>
      node.relay.epoch !== epoch && this.#epochs.get(node)?.has(epoch) === true
    return this.#acting().find((node) => !isOfEarlierLife(node) && isLive(node, runId))?.owner.name
  }

  /**
   * A gateway that joins in the second after Redis has lost its keys does not know that, and says 404 before the workers have claimed their
   * sessions again.
   */
  get isLossUnknown(): boolean {
    const since = this.#keysLostMs
    const isNew = ({ readyAt = -Infinity }: GatewayNode) => readyAt >= since && readyAt < since + REBUILD_MS
    return this.#isRebuilding && this.#gateways.some(isNew)
  }

  /** Notices evictions: a worker is no member any more. */
  look(): void {
    if (this.#isRebuilding) return
    for (const node of this.#workers) {
      if (this.#isMember(node)) {
        this.#members.add(node)
        this.#epochs.set(node, (this.#epochs.get(node) ?? new Set()).add(node.relay.epoch))
      } else if (this.#members.delete(node) && !node.hasLeft && node.owner.state !== 'dead') {
        this.hasLostWorker = true
        this.#checker.say(`${node.owner.name} is evicted`)
      }
    }
  }

  /** Says which sessions each worker has, where that has changed. */
  tellSessions(): void {
    for (const node of this.#workers) {
      const held = Array.from(node.worker.sessions(), ({ id, token }) => `${id}/${token.slice(0, 4)}`).join(' ')
      if (held === (this.#told.get(node) ?? '')) continue
      this.#told.set(node, held)
      this.#checker.say(`${node.owner.name} has ${held || 'no session'}`)
    }
  }

  /** Whether a replica that became the primary has not seen what was written at this time: an older claim may hold again. */
  isForgotten(writtenMs: number): boolean {
    return writtenMs >= this.#lostSinceMs && writtenMs <= this.#keysLostMs
  }

  #acting(): WorkerNode[] {
    const isActing = (node: WorkerNode) => node.owner.state === 'running' && this.#isMember(node) && holdsLease(node)
    return this.#workers.filter(isActing)
  }

  #isMember({ relay }: WorkerNode): boolean {
    return this.cluster.isMember(relay.epoch)
  }

  get #isRebuilding(): boolean {
    return this.#time.nowMs < this.#keysLostMs + REBUILD_MS
  }

  /** A worker that drains hands its sessions over, unless something is away meanwhile. */
  #onLeft({ owner, worker, drainsSince = 0 }: WorkerNode): void {
    if ([...worker.sessions()].length === 0) return
    if (this.#troubledMs < drainsSince) this.#checker.violate('a worker that drains keeps no session', owner.name)
    this.hasLostWorker = true
    this.#checker.say(`${owner.name} could not hand over all its sessions`)
  }
}

const holdsLease = ({ owner, lease }: WorkerNode): boolean => owner.as(() => lease.isHeld())

function isLive({ worker: { inbox, knowsRun } }: WorkerNode, runId: string): boolean {
  if (!knowsRun(DEFAULT_TENANT, runId)) return false
  const { status } = inbox.getRun(DEFAULT_TENANT, runId)
  return status === 'running' || status === 'waiting'
}
