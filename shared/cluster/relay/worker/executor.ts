import type { Log } from '../../../kernel/log.ts'
import type { RunInbox } from '../../commands/inbox.ts'
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
  /** A member has left or was evicted. What it had taken is for the others. */
  onMemberLost(epoch: number): void
  /** Ends all runs: this process was evicted, and others may have ended them already. */
  abortAll(): void
}

/** An executor of the cluster: a member like a worker, which has no sessions and takes its work from the queue. */
export class ExecutorRelay {
  readonly #ports: Pick<ClusterPorts, 'bus' | 'members'>
  readonly #executor: ClusterExecutor
  readonly #log: Log
  readonly #all = new Executors()
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
      onMembers: (all) => this.#all.update(all),
      onMemberLost: (epoch) => executor.onMemberLost(epoch),
      onEvicted: () => executor.abortAll(),
    })
    this.#inbox = new RelayInbox(this.#member.transport, (follow) => runMethods(executor.inbox, follow))
  }

  /** Changes when this process was evicted and has joined again. */
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

  /** Tells the gateways that wait for this queued run that it has begun here. */
  announceStart(runId: string): void {
    announceStart(this.#ports.bus, runId, this.epoch)
  }

  readiness(): MemberReadiness {
    return this.#member.readiness()
  }

  /** Takes no further work, lets runs end for `graceMs`, and delivers their last frames. */
  async drain(graceMs: number): Promise<void> {
    const ended = this.#executor.drain(graceMs)
    await this.#member.membership.announce().catch((cause: unknown) => {
      this.#log.error('the drain could not be published in Redis', { cause }) // Runs end even if this fails.
    })
    await ended
    await this.#member.transport.flush()
  }

  async stop(): Promise<void> {
    await this.#member.membership.stop()
  }
}
