import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import type { Broker } from '../../commands/broker.ts'
import type { TenantRange } from '../../commands/tenant-loads.ts'
import type { QueuedRunSource } from '../../following/queue-places.ts'
import { type KnownExecutors, knownExecutors } from '../../members/executors.ts'
import { Lease } from '../../members/lease.ts'
import type { MemberAbout } from '../../members/members.ts'
import { ClusterMember, type ClusterPorts, type MemberRole } from '../member.ts'
import type { MemberReadiness } from '../membership.ts'
import { listenForMoves, listenForStarts } from '../notices.ts'
import { RelayBroker, type RelayBrokerDeps } from './broker.ts'

/** Streams end with `relay_unavailable` when the bus has been away for this long. */
const MAX_AWAY_MS = 10_000
const WATCH_MS = 500

export type GatewayRelayDeps = {
  pid: number
  about?: MemberAbout
  log: Log
  metrics: Metrics
  /** Finds the runs that were queued for executors. Without it, they are unknown. */
  jobs?: readonly QueuedRunSource[] | undefined
  /** Whether a session is stored, so that a worker can open it. Left out: sessions end with their worker. */
  isStored?: RelayBrokerDeps['isStored']
  /** The sessions that have runs, so that those of dead workers are continued. Left out: runs end with their worker. */
  busySessions?: RelayBrokerDeps['busySessions']
  /** Called when a worker or executor was lost, after its streams have begun to end. */
  onMemberLost?: ((epoch: number) => void) | undefined
}

/** A gateway of the cluster: the broker that its routes call. */
export class GatewayRelay {
  readonly #ports: Pick<ClusterPorts, 'bus' | 'members'>
  readonly #broker: RelayBroker
  readonly #member: ClusterMember
  readonly #firstWorker = Promise.withResolvers<void>()
  #isDraining = false
  #watch: NodeJS.Timeout | undefined

  constructor(
    ports: ClusterPorts,
    { pid, about, log, metrics, jobs = [], isStored, busySessions, onMemberLost }: GatewayRelayDeps,
  ) {
    this.#ports = ports
    const own = { pid, about, lease: new Lease(), log, metrics }
    this.#member = new ClusterMember(ports, own, this.#role({ log, onMemberLost }))
    const { transport, membership } = this.#member
    this.#broker = new RelayBroker({
      transport,
      membership,
      owners: ports.owners,
      movedRuns: ports.movedRuns,
      permissions: ports.permissions,
      jobs,
      isStored,
      busySessions,
      isBusAway: () => ports.bus.awayMs() > 0,
      metrics,
      log,
    })
  }

  get broker(): Broker {
    return this.#broker.broker
  }

  /** Resolves when this gateway knows a worker for the first time. */
  get firstWorker(): Promise<void> {
    return this.#firstWorker.promise
  }

  get executors(): KnownExecutors {
    return knownExecutors(this.#broker.executors, (epoch) => this.#member.membership.discover(epoch))
  }

  get epoch(): number {
    return this.#member.epoch
  }

  /** Adds up each tenant's load on all workers and executors. */
  listTenants(range: TenantRange) {
    return this.#broker.listTenants(range)
  }

  /** May be called again after it has failed. */
  async join(): Promise<void> {
    const { bus } = this.#ports
    await listenForStarts(bus, (runId, epoch) => this.#broker.onStarted(runId, epoch))
    const { recovery } = this.#broker
    if (recovery) await listenForMoves(bus, (...moved) => recovery.onMoved(...moved))
    await this.#member.membership.start()
    await this.#broker.workers.prepare()
    recovery?.start()
    this.#watch = setInterval(() => {
      if (bus.awayMs() > MAX_AWAY_MS) this.#broker.failStreams('relay_unavailable')
    }, WATCH_MS)
  }

  readiness(): MemberReadiness {
    return this.#member.readiness()
  }

  /**
   * Reports not ready at once, and still serves for `graceMs`, until load balancers stop sending requests. Then refuses new
   * streams; those still open after `streamsMs` end with `worker_draining`, while their runs continue.
   */
  async drain({ graceMs, streamsMs }: { graceMs: number; streamsMs: number }): Promise<void> {
    this.#isDraining = true
    await sleep(graceMs)
    this.#broker.close()
    await this.#broker.streamsEnded(streamsMs)
    this.#broker.failStreams('worker_draining')
  }

  async stop(): Promise<void> {
    clearInterval(this.#watch)
    this.#broker.stop()
    await this.#member.membership.stop()
  }

  #role({ log, onMemberLost }: Pick<GatewayRelayDeps, 'log' | 'onMemberLost'>): MemberRole {
    return {
      name: 'gateway',
      isDraining: () => this.#isDraining,
      load: () => this.#broker.streamCount,
      onRecord: (from, received) => this.#broker.onRecord(from, received),
      onUndelivered: (epoch) => this.#broker.onUndelivered(epoch),
      onMembers: (all) => {
        this.#broker.onMembers(all)
        void this.#broker.workers.prepare()
        if (all.some(({ role }) => role === 'worker')) this.#firstWorker.resolve()
      },
      onMemberLost: (epoch) => {
        const streams = this.#broker.onMemberLost(epoch)
        if (streams > 0) log.warn('a worker or executor was lost; its streams end', { epoch, streams })
        onMemberLost?.(epoch)
      },
      onEvicted: () => this.#broker.onEvicted(),
    }
  }
}
