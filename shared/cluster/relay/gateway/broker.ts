import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import type { Broker } from '../../commands/broker.ts'
import type { TenantRange } from '../../commands/tenant-loads.ts'
import { type QueuedRunSource, QueuePlaces } from '../../following/queue-places.ts'
import { RunFinder } from '../../following/run-finder.ts'
import type { ReaderFailure } from '../../journal/frames.ts'
import { Executors } from '../../members/executors.ts'
import type { Member } from '../../members/members.ts'
import { Workers } from '../../members/workers.ts'
import type { Claim, MovedRuns, Owners } from '../../owners/owners.ts'
import { SessionRouter, type SessionRouterDeps } from '../../owners/session-router.ts'
import type { PermissionStore } from '../../permissions/store.ts'
import type { Membership } from '../membership.ts'
import { RelayedStreams } from '../streams/relayed-streams.ts'
import { RECORD, type ReceivedRecord, type WireRecord } from '../wire/records.ts'
import type { Transport } from '../wire/transport.ts'
import { createCommands } from './commands.ts'
import { listTenants } from './lists.ts'
import { openInherited } from './open-inherited.ts'
import { type BusySource, RunRecovery } from './run-recovery.ts'
import { RunStarts } from './run-starts.ts'
import { RunCalls, WorkerCalls } from './worker-calls.ts'
import { WorkerPlaces } from './worker-places.ts'

export type RelayBrokerDeps = {
  transport: Pick<Transport, 'outbox'>
  membership: Pick<Membership, 'discover' | 'epoch' | 'isMember' | 'isRebuilt' | 'refreshMembers'>
  owners: Owners
  movedRuns: Pick<MovedRuns, 'find'>
  permissions: PermissionStore
  /** Find the runs that were queued for executors. */
  jobs: readonly QueuedRunSource[]
  /** Whether a session is stored. Left out: sessions end with their worker. */
  isStored?: SessionRouterDeps['isStored']
  /** The sessions that have runs, so that those of dead workers are continued. Left out: runs end with their worker. */
  busySessions?: BusySource | undefined
  isBusAway(): boolean
  metrics: Metrics
  log: Log
}

/** How long a worker may take to read a session from the store. */
const OPEN_MS = 5_000

/** The gateway's side of the relay: the parts that its commands share, and the handlers for changes of the cluster's members. */
export class RelayBroker {
  readonly #deps: RelayBrokerDeps
  readonly broker: Broker
  readonly #calls: WorkerCalls
  readonly #queued: RunFinder
  readonly #sessions: SessionRouter
  readonly #starts: RunStarts
  readonly workers = new Workers()
  readonly executors = new Executors()
  readonly streams: RelayedStreams
  /** The epochs of all gateways. */
  #gateways: readonly number[] = []
  /** `undefined`: runs end with their worker. */
  readonly recovery: RunRecovery | undefined

  constructor(deps: RelayBrokerDeps) {
    const { transport, membership, owners, movedRuns, permissions, jobs, isStored, isBusAway, metrics } = deps
    const roleOf = (epoch: number) => (this.executors.isAlive(epoch) ? 'executor' : 'worker')
    const send = (epoch: number, each: WireRecord) => transport.outbox(roleOf(epoch), epoch).send(each)
    const sendLater = (epoch: number, each: WireRecord) => transport.outbox(roleOf(epoch), epoch).sendLater(each)
    const isAlive = (epoch: number) => this.workers.isAlive(epoch) || this.executors.isAlive(epoch)
    this.#deps = deps
    this.streams = new RelayedStreams({ send, sendLater, isAlive, isBusAway, metrics })
    const { workers, executors, streams } = this
    const calls = new WorkerCalls({ isAlive, send, isBusAway })
    const areSessionsKept = isStored !== undefined
    this.#calls = calls
    this.#sessions = new SessionRouter({
      ...{ workers, owners, isStored },
      isMember: (epoch) => membership.isMember(epoch),
      isRebuilt: () => this.#isRebuilt(),
    })
    this.recovery = this.#createRecovery(deps)
    const places = new WorkerPlaces({ workers, movedRuns, recovery: this.recovery })
    const discover = (epoch: number) => membership.discover(epoch)
    const runCalls = new RunCalls({ isKnown: isAlive, discover, calls, streams, areSessionsKept })
    this.#queued = new RunFinder({ places: new QueuePlaces(jobs, runCalls), processes: runCalls })
    this.#starts = new RunStarts({ workers, calls, streams, membership, places, isBusAway })
    this.broker = createCommands({
      ...{ workers, executors, calls, places, runCalls, permissions, areSessionsKept },
      ...{ queued: this.#queued, sessions: this.#sessions, starts: this.#starts },
      runs: new RunFinder({ places, processes: runCalls }),
      expectRun: (tenant, runId) => ({
        gateway: membership.epoch,
        stream: this.streams.expect(this.#queued.waiting.expect({ tenant, runId })),
      }),
      areRunsKept: this.recovery !== undefined,
    })
  }

  /** Refuses to open further streams. */
  close(): void {
    this.#starts.close()
  }

  stop(): void {
    this.recovery?.stop()
    this.#calls.pending.close()
  }

  /** The number of open streams, including those of queued runs. */
  get streamCount(): number {
    return this.streams.size + this.#queued.waiting.count
  }

  /** Resolves when no stream is open any more, or after `withinMs`. */
  async streamsEnded(withinMs: number): Promise<void> {
    const until = performance.now() + withinMs
    await this.#queued.waiting.ended(withinMs)
    await this.streams.ended(until - performance.now())
  }

  /** Ends all streams, after the frames accepted so far. */
  failStreams(code: ReaderFailure): void {
    this.#queued.waiting.fail(code)
    this.streams.fail(code)
  }

  /** Called when an executor has begun this queued run. */
  onStarted(runId: string, epoch: number): void {
    this.#queued.waiting.onStarted(runId, epoch)
  }

  onMembers(members: readonly Member[]): void {
    this.workers.update(members)
    this.executors.update(members)
    this.#gateways = members.flatMap(({ role, epoch }) => (role === 'gateway' ? [epoch] : []))
  }

  /** Ends the streams of a lost member. Returns their number. */
  onMemberLost(epoch: number): number {
    this.#calls.pending.failAll(epoch)
    void this.recovery?.recover(epoch)
    return this.streams.fail('worker_lost', epoch)
  }

  /**
   * Called when this gateway has a new epoch. The workers have closed the streams to the old one, and would treat a call that is repeated
   * under the new one as a new call.
   */
  onEvicted(): void {
    this.#calls.pending.close()
    this.streams.fail('relay_unavailable')
  }

  /** Called when no process listens to this worker's channel: it has crashed, has left, or is reconnecting. */
  onUndelivered(epoch: number): void {
    this.#calls.pending.failUndelivered(epoch)
    this.#deps.membership.refreshMembers().catch(() => {}) // It may have left, and the message about that was lost.
  }

  onRecord(from: number, received: ReceivedRecord): void {
    if (received.type === RECORD.reply) this.#calls.pending.settle(received.stream, received.body)
    else if (received.type === RECORD.working) this.#calls.pending.onWorking(received.stream)
    else this.streams.onRecord(from, received)
  }

  /** Adds up each tenant's load on all workers and executors. */
  listTenants(range: TenantRange) {
    return listTenants(this.#calls, range, [...this.workers.alive, ...this.executors.alive])
  }

  /** `false` while the workers write their records again after Redis has lost its keys. */
  async #isRebuilt(): Promise<boolean> {
    const { isBusAway, membership } = this.#deps
    return !isBusAway() && (await membership.isRebuilt())
  }

  #createRecovery(deps: RelayBrokerDeps): RunRecovery | undefined {
    const { busySessions, isStored, movedRuns, membership, log } = deps
    if (!busySessions || !isStored) return undefined
    return new RunRecovery({
      busy: busySessions,
      movedRuns,
      isMember: (epoch) => membership.isMember(epoch),
      isDraining: (epoch) => this.workers.isDraining(epoch),
      openTogether: (lost, sessions) => openInherited(lost, sessions, { workers: this.workers, calls: this.#calls }),
      open: ({ tenant, id }) => {
        const open = async ({ epoch }: Claim) => {
          await this.#calls.call({ epoch, deadlineMs: OPEN_MS }, 'getSession', [tenant, id])
          return epoch
        }
        return this.#sessions.callOwner({ tenant, id }, open, { isKnown: true })
      },
      isStored,
      isRebuilt: () => this.#isRebuilt(),
      rank: () => this.#gateways.filter((epoch) => epoch < membership.epoch).length,
      log,
    })
  }
}
