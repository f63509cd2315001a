import { within } from '../../../kernel/async/deadline.ts'
import type { Log } from '../../../kernel/log.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { RunInbox } from '../../commands/inbox.ts'
import type { RunReader } from '../../commands/runs.ts'
import { Executors, type KnownExecutors, knownExecutors } from '../../members/executors.ts'
import { ClusterMember, type ClusterPorts, type MemberDeps } from '../member.ts'
import type { MemberReadiness } from '../membership.ts'
import { announceStart } from '../notices.ts'
import { RelayInbox, runMethods } from './relay-inbox.ts'

/** The executor that the relay connects to the cluster. */
export type ClusterExecutor = {
  inbox: RunInbox
  liveRuns(): number
  isDraining(): boolean
  drain(graceMs: number): Promise<void>
  /** Called when a member has left or was evicted: others may take its jobs. */
  onMemberLost(epoch: number): void
  /** Ends all runs, because this process was evicted and others may already have ended them. */
  abortAll(): void
}

/** A queued run that begins here. */
export type BegunRun = { id: string; tenant: TenantId; ended: Promise<void> }

/** Tells `reader`, or all gateways, that a run has begun here. */
export type Announce = (run: BegunRun, reader?: RunReader) => void

/** How long frames are held back for a reader that needs them only at the run's end. */
const END_WITHIN_MS = 200

/** An executor of the cluster: a member like a worker, which has no sessions and takes its work from the queue. */
export class ExecutorRelay {
  readonly #ports: Pick<ClusterPorts, 'bus' | 'members'>
  readonly #executor: ClusterExecutor
  readonly #log: Log
  readonly #all = new Executors()
  /** The epochs of all gateways. */
  #gateways: readonly number[] = []
  readonly #member: ClusterMember
  readonly #inbox: RelayInbox

  constructor(ports: Pick<ClusterPorts, 'bus' | 'members'>, executor: ClusterExecutor, deps: MemberDeps) {
    this.#ports = ports
    this.#executor = executor
    this.#log = deps.log
    this.#member = new ClusterMember(ports, deps, {
      name: 'executor',
      isDraining: () => executor.isDraining(),
      load: () => executor.liveRuns(),
      onRecord: (from, received) => this.#inbox.onRecord(from, received),
      onMembers: (all) => {
        this.#all.update(all)
        this.#gateways = all.flatMap(({ role, epoch }) => (role === 'gateway' ? [epoch] : []))
      },
      onMemberLost: (epoch) => executor.onMemberLost(epoch),
      onEvicted: () => executor.abortAll(),
    })
    this.#inbox = new RelayInbox(this.#member.transport, (follow) => runMethods(executor.inbox, follow))
  }

  /** The epoch changes when this process was evicted and has joined again. */
  get epoch(): number {
    return this.#member.epoch
  }

  /** All executors, this one included. */
  get executors(): KnownExecutors {
    return knownExecutors(this.#all, (epoch) => this.#member.membership.discover(epoch))
  }

  /** Whether a worker or an executor of this epoch is in the cluster. Throws `unavailable`. */
  isMember(epoch: number): Promise<boolean> {
    return this.#member.membership.isMember(epoch)
  }

  /** May be called again after it has failed. */
  async join(): Promise<void> {
    await this.#member.membership.start()
  }

  /**
   * Sends the frames of this queued run to the gateway that waits for it, or tells all of them that it has begun here. It does both if the client
   * comes back, possibly to another gateway.
   */
  announceStart({ id, tenant, ended }: BegunRun, reader?: RunReader): void {
    const isHere = reader && this.#member.membership.isAlive(reader.gateway)
    if (!isHere || (reader.comesBack && this.#gateways.some((each) => each !== reader.gateway)))
      announceStart(this.#ports.bus, id, this.epoch)
    if (!isHere) return
    const send = () => this.#inbox.follow(reader, this.#executor.inbox.followRun(tenant, id, 0))
    if (!reader.readsEnd) return void send()
    within(END_WITHIN_MS, ended)
      .then(send)
      .catch(() => {}) // The run is no longer known here.
  }

  readiness(): MemberReadiness {
    return this.#member.readiness()
  }

  /** Takes no further work, lets runs end for `graceMs`, and delivers their last frames. */
  async drain(graceMs: number): Promise<void> {
    const ended = this.#executor.drain(graceMs)
    await this.#member.membership.announce().catch((cause: unknown) => {
      this.#log.error('the drain could not be published in Redis', { cause }) // The drain continues even if this fails.
    })
    await ended
    await this.#member.transport.flush()
  }

  async stop(): Promise<void> {
    await this.#member.membership.stop()
  }
}
