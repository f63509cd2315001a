import { epochOfRun, isQueuedRun, isRunId, newId } from '../../../kernel/ids.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import type { Broker } from '../../commands/broker.ts'
import type { TenantRange } from '../../commands/tenant-loads.ts'
import { type QueuedRunSource, QueuePlaces } from '../../following/queue-places.ts'
import { RunFinder } from '../../following/run-finder.ts'
import type { ReaderFailure } from '../../journal/frames.ts'
import { Executors } from '../../members/executors.ts'
import type { Member } from '../../members/members.ts'
import { lessLoadedOfTwo, Workers } from '../../members/workers.ts'
import type { Claim, MovedRuns, Owners } from '../../owners/owners.ts'
import { noWorker, SessionRouter, type SessionRouterDeps } from '../../owners/session-router.ts'
import { answerCall, reply } from '../../permissions/reply.ts'
import type { PermissionKey, PermissionStore } from '../../permissions/store.ts'
import type { Membership } from '../membership.ts'
import { RelayedStreams } from '../streams/relayed-streams.ts'
import type { CallArgs, CallResult } from '../wire/calls.ts'
import { RECORD, type ReceivedRecord, type WireRecord } from '../wire/records.ts'
import type { Transport } from '../wire/transport.ts'
import { listRemembered, listRuns, listSessions, listTenants } from './lists.ts'
import { openInherited } from './open-inherited.ts'
import { createRunId, RunCalls } from './run-calls.ts'
import { type BusySource, RunRecovery } from './run-recovery.ts'
import { RunStarts } from './run-starts.ts'
import { WorkerCalls } from './worker-calls.ts'
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
  /** The sessions that have runs, so that those of dead workers go on. Left out: runs end with their worker. */
  busySessions?: BusySource | undefined
  isBusAway(): boolean
  metrics: Metrics
  log: Log
}

/** How long a worker may take to read a session from the store. */
const OPEN_MS = 5_000

type FolderMethod = 'listFiles' | 'readFile'
type SessionMethod = 'branchOf' | 'getSession' | 'listMessages' | 'renameSession' | 'forgetRemembered' | FolderMethod

/** The gateway's end of the relay: finds the worker or executor, calls it, and puts the frames it sends in order. */
export class RelayBroker {
  readonly #deps: RelayBrokerDeps
  readonly #calls: WorkerCalls
  readonly #places: WorkerPlaces
  readonly #runs: RunFinder
  readonly #runCalls: RunCalls
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
    const { transport, membership, owners, movedRuns, jobs, isStored, isBusAway, metrics } = deps
    const roleOf = (epoch: number) => (this.executors.isAlive(epoch) ? 'executor' : 'worker')
    const send = (epoch: number, each: WireRecord) => transport.outbox(roleOf(epoch), epoch).send(each)
    const sendLater = (epoch: number, each: WireRecord) => transport.outbox(roleOf(epoch), epoch).sendLater(each)
    const isAlive = (epoch: number) => this.workers.isAlive(epoch) || this.executors.isAlive(epoch)
    this.#deps = deps
    this.#calls = new WorkerCalls({ isAlive, send, isBusAway })
    this.#sessions = new SessionRouter({
      workers: this.workers,
      owners,
      isStored,
      isMember: (epoch) => membership.isMember(epoch),
      isRebuilt: () => this.#isRebuilt(),
    })
    this.streams = new RelayedStreams({ send, sendLater, isAlive, isBusAway, metrics })
    this.recovery = this.#createRecovery(deps)
    this.#places = new WorkerPlaces({ workers: this.workers, movedRuns, recovery: this.recovery })
    const processes = new RunCalls({
      isKnown: isAlive,
      discover: (epoch) => membership.discover(epoch),
      calls: this.#calls,
      streams: this.streams,
      areSessionsKept: isStored !== undefined,
    })
    this.#runCalls = processes
    this.#runs = new RunFinder({ places: this.#places, processes })
    this.#queued = new RunFinder({ places: new QueuePlaces(jobs, processes), processes })
    this.#starts = new RunStarts({
      workers: this.workers,
      calls: this.#calls,
      streams: this.streams,
      membership,
      places: this.#places,
      isBusAway,
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

  /** The number of open streams, those of queued runs included. */
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

  /** An executor has begun this queued run. */
  onStarted(runId: string, epoch: number): void {
    this.#queued.waiting.onStarted(runId, epoch)
  }

  onMembers(members: readonly Member[]): void {
    this.workers.update(members)
    this.executors.update(members)
    this.#gateways = members.flatMap(({ role, epoch }) => (role === 'gateway' ? [epoch] : []))
  }

  /** Returns the number of streams that end with it. */
  onMemberLost(epoch: number): number {
    this.#calls.pending.failAll(epoch)
    void this.recovery?.recover(epoch)
    return this.streams.fail('worker_lost', epoch)
  }

  /**
   * This gateway has a new epoch. The workers have closed the streams to the old one, and would take a call that is sent again under the new
   * one for another call.
   */
  onEvicted(): void {
    this.#calls.pending.close()
    this.streams.fail('relay_unavailable')
  }

  /** No process listens to this worker's channel: it has crashed, has left, or is connecting again. */
  onUndelivered(epoch: number): void {
    this.#calls.pending.failUndelivered(epoch)
    this.#deps.membership.refreshMembers().catch(() => {}) // It may have left, and the message of that was lost.
  }

  onRecord(from: number, received: ReceivedRecord): void {
    if (received.type === RECORD.reply) this.#calls.pending.settle(received.stream, received.body)
    else if (received.type === RECORD.working) this.#calls.pending.onWorking(received.stream)
    else this.streams.onRecord(from, received)
  }

  /** Adds up what all workers and executors hold of each tenant. */
  listTenants(range: TenantRange) {
    return listTenants(this.#calls, range, [...this.workers.alive, ...this.executors.alive])
  }

  readonly broker: Broker = {
    createSession: async (tenant, id = newId('sess'), ...messages) => {
      await this.#starts.findWorkers()
      return this.#sessions.create(
        { tenant, id },
        {
          create: ({ epoch, token }) => {
            const hasAlternative = this.workers.eligible.some((other) => other.epoch !== epoch)
            return this.#calls.call({ epoch, hasAlternative }, 'createSession', [tenant, id, token, ...messages])
          },
          undo: ({ epoch, token }) => this.#calls.callInBackground(epoch, 'deleteSession', [tenant, id, token]),
        },
      )
    },
    branchOf: (...args) => this.#callOwner('branchOf', args),
    getSession: (...args) => this.#callOwner('getSession', args),
    listSessions: (tenant, page) => listSessions(this.#calls, { tenant, page, epochs: this.workers.alive }),
    listMessages: (...args) => this.#callOwner('listMessages', args),
    renameSession: (...args) => this.#callOwner('renameSession', args),
    deleteSession: (tenant, id) =>
      this.#sessions.remove({ tenant, id }, ({ epoch, token }) =>
        this.#calls.call({ epoch }, 'deleteSession', [tenant, id, token]),
      ),
    startRun: async (tenant, request, onNamed) => {
      const opened = await this.#starts.start(tenant, request, onNamed)
      if (!this.recovery) return opened
      const { runId, frames } = opened
      return { runId, frames: this.#runs.followed({ tenant, runId, epoch: epochOfRun(runId) }, frames) }
    },
    estimateRun: async (...args) => {
      await this.#starts.findWorkers()
      const worker = lessLoadedOfTwo([...this.workers.eligible], Math.random)
      if (!worker) throw noWorker()
      return this.#calls.call({ epoch: worker.epoch }, 'estimateRun', args)
    },
    sendMessage: (tenant, sessionId, message, onNamed) =>
      this.#sessions.callOwner({ tenant, id: sessionId }, async ({ epoch }) => {
        const isSessionKept = this.#deps.isStored !== undefined
        const run = { tenant, runId: createRunId(epoch), epoch, isSessionKept }
        await onNamed?.(run.runId)
        const { runId, frames } = await this.#starts.open(run, (stream) =>
          this.#calls.call({ epoch }, 'sendMessage', [tenant, run.runId, { ...message, sessionId }, stream]),
        )
        return { runId, frames: this.#runs.followed({ tenant, runId, epoch, isOfSession: true }, frames) }
      }),
    listRuns: (tenant, filter) =>
      listRuns(this.#calls, { tenant, page: filter, epochs: [...this.workers.alive, ...this.executors.alive] }),
    getRun: (tenant, runId) => this.#accessTo(runId).getRun(tenant, runId),
    followRun: async (tenant, runId, after) => {
      this.#starts.refuseIfClosing()
      return this.#accessTo(runId).followRun(tenant, runId, after)
    },
    expectRun: (tenant, runId) => ({
      gateway: this.#deps.membership.epoch,
      stream: this.streams.expect(this.#queued.waiting.expect({ tenant, runId })),
    }),
    cancelRun: (tenant, runId) => this.#accessTo(runId).cancelRun(tenant, runId),
    steerRun: (...args) => this.#callRun('steerRun', args),
    listFiles: (...args) => this.#callFolder('listFiles', args),
    readFile: (...args) => this.#callFolder('readFile', args),
    listRemembered: (tenant, page) => listRemembered(this.#calls, { tenant, page, epochs: this.workers.alive }),
    forgetRemembered: (...args) => this.#callOwner('forgetRemembered', args),
    listPermissions: (tenant, page) =>
      this.#deps.permissions.list(tenant, page, async (runId) => !(await this.#places.isLost(tenant, runId))),
    findPermission: (tenant, scopeId, id) => this.#deps.permissions.find({ tenant, scopeId, id }),
    replyPermission: async (tenant, scopeId, id, answer) => {
      const request = { tenant, scopeId, id }
      await this.#withdrawIfLost(request)
      await reply(this.#deps.permissions, request, answer)
    },
    answerCall: async (tenant, scopeId, id, answer) => {
      const request = { tenant, scopeId, id }
      await this.#withdrawIfLost(request)
      await answerCall(this.#deps.permissions, request, answer)
    },
  }

  /** Calls a method of the session that the arguments name, at its owner. */
  #callOwner<M extends SessionMethod>(method: M, args: CallArgs<M>): Promise<CallResult<M>> {
    const [tenant, id] = args
    return this.#sessions.callOwner({ tenant, id }, ({ epoch }) => this.#calls.call({ epoch }, method, args))
  }

  /** Calls a method of the run that the arguments name, where it is. */
  #callRun<M extends 'steerRun' | FolderMethod>(method: M, args: CallArgs<M>): Promise<CallResult<M>> {
    const [tenant, runId] = args
    return this.#accessTo(runId).callRun(tenant, runId, (place) => this.#runCalls.call(place, method, args))
  }

  /** The folder is where the session is, or the run. */
  #callFolder<M extends FolderMethod>(method: M, args: CallArgs<M>): Promise<CallResult<M>> {
    const [, id] = args
    return isRunId(id) ? this.#callRun(method, args) : this.#callOwner(method, args)
  }

  /** Nobody acts on a reply to the request of a run that is lost (D37.2). */
  async #withdrawIfLost(request: PermissionKey): Promise<void> {
    const { permissions } = this.#deps
    const asked = await permissions.find(request)
    if (asked && (await this.#places.isLost(request.tenant, asked.run_id)))
      await permissions.decide(request, { state: 'withdrawn' })
  }

  /** `false` while the workers write again what they have, after Redis lost its keys. */
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

  #accessTo(runId: string): RunFinder {
    return isQueuedRun(runId) ? this.#queued : this.#runs
  }
}
