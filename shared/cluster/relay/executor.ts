import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { RunInbox } from '../commands/inbox.ts'
import { Executors, type KnownExecutors, knownExecutors } from '../members/executors.ts'
import type { Lease } from '../members/lease.ts'
import type { MemberAbout, MemberFields } from '../members/members.ts'
import { RelayInbox, runMethods } from './inbox.ts'
import { type MemberReadiness, Membership } from './membership.ts'
import { announceStart } from './notices.ts'
import type { ClusterPorts } from './ports.ts'
import { Transport } from './wire/transport.ts'

/** The executor that the relay connects to the cluster. */
export type ClusterExecutor = {
  inbox: RunInbox
  liveRuns(): number
  isDraining(): boolean
  drain(graceMs: number): Promise<void>
  /** A member has left or was evicted. What it had taken is for the others. */
  onMemberLost(epoch: number): void
  /** Ends all runs: this process was evicted, and others may have ended them already. */
  abortAll(): void
}

export type ExecutorRelayDeps = { pid: number; about?: MemberAbout; lease: Lease; log: Log; metrics: Metrics }

/** An executor of the cluster: a member like a worker, which has no sessions and takes its work from the queue. */
export class ExecutorRelay {
  readonly #ports: Pick<ClusterPorts, 'bus' | 'members'>
  readonly #executor: ClusterExecutor
  readonly #deps: ExecutorRelayDeps
  readonly #all = new Executors()
  readonly #transport: Transport
  readonly #membership: Membership
  readonly #inbox: RelayInbox

  constructor(ports: Pick<ClusterPorts, 'bus' | 'members'>, executor: ClusterExecutor, deps: ExecutorRelayDeps) {
    this.#ports = ports
    this.#executor = executor
    this.#deps = deps
    this.#transport = this.#createTransport()
    this.#membership = this.#createMembership()
    this.#inbox = new RelayInbox(this.#transport, (follow) => runMethods(executor.inbox, follow))
  }

  /** Changes when this process was evicted and has joined again. */
  get epoch(): number {
    return this.#membership.epoch
  }

  /** All executors, this one included. */
  get executors(): KnownExecutors {
    return knownExecutors(this.#all, (epoch) => this.#membership.discover(epoch))
  }

  /** Whether a worker or an executor of this epoch is in the cluster. Throws `unavailable`. */
  isMember(epoch: number): Promise<boolean> {
    return this.#membership.isMember(epoch)
  }

  /** May be called again after it has failed. */
  async join(): Promise<void> {
    await this.#membership.start()
  }

  /** Tells the gateways that wait for this queued run that it has begun here. */
  announceStart(runId: string): void {
    announceStart(this.#ports.bus, runId, this.epoch)
  }

  readiness(): MemberReadiness {
    return {
      isBusAway: this.#ports.bus.awayMs() > 0,
      isMember: this.#deps.lease.isHeld(),
      isDraining: this.#executor.isDraining(),
    }
  }

  /** Takes no further work, lets runs end for `graceMs`, and delivers their last frames. */
  async drain(graceMs: number): Promise<void> {
    const ended = this.#executor.drain(graceMs)
    await this.#membership.announce().catch((cause: unknown) => {
      this.#deps.log.error('the drain could not be published in Redis', { cause }) // Runs end even if this fails.
    })
    await ended
    await this.#transport.flush()
  }

  async stop(): Promise<void> {
    await this.#membership.stop()
  }

  #createTransport(): Transport {
    const { lease, metrics } = this.#deps
    return new Transport(
      { role: 'executor', bus: this.#ports.bus, lease, metrics },
      {
        onRecord: (from, received) => this.#inbox.onRecord(from, received),
        onUndelivered: () => {}, // A gateway that is gone is noticed by its membership.
      },
    )
  }

  #createMembership(): Membership {
    const { lease, log } = this.#deps
    const { members } = this.#ports
    return new Membership(
      { transport: this.#transport, members, lease, log, describe: () => this.#describe() },
      {
        onMembers: (all) => this.#all.update(all),
        onMemberLost: (epoch) => this.#executor.onMemberLost(epoch),
        onEvicted: () => this.#executor.abortAll(),
        onKeysLost: () => {}, // An executor has no other keys in Redis than its membership, which is restored already.
      },
    )
  }

  #describe(): MemberFields {
    return {
      role: 'executor',
      state: this.#executor.isDraining() ? 'draining' : 'active',
      load: this.#executor.liveRuns(),
      pid: this.#deps.pid,
      ...this.#deps.about,
    }
  }
}
