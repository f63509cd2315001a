import { AppError, notFound } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Metrics } from '../metrics.ts'
import type { TenantId } from '../tenant.ts'
import { Calls, packCall } from './calls.ts'
import type { Member } from './members.ts'
import { reply } from './permission-reply.ts'
import { lessLoadedOfTwo } from './placement.ts'
import type { Broker, OpenedRun, PermissionBook, RunPage, RunSummary, SessionSummary } from './port.ts'
import { RECORD, type ReceivedRecord, record, type WireRecord } from './records.ts'
import type { RedisNode } from './redis-node.ts'
import type { Owners } from './redis-owners.ts'
import { RelayedStreams } from './relayed-streams.ts'
import { mergePages } from './run-page.ts'
import { isSilent, noWorker, SessionPlaces } from './session-places.ts'
import { Workers } from './workers.ts'

type BrokerDeps = {
  node: () => RedisNode
  owners: Owners
  book: PermissionBook
  isAway: () => boolean
  metrics: Metrics
}

/** What opens a stream: the method and its arguments, the gateway's number for the stream as the last. */
type Opening = (stream: number) => [method: string, args: unknown[]]

/** The gateway's end of the relay: finds the worker, calls it, and puts the frames it sends in order. */
export class RedisBroker {
  readonly #deps: BrokerDeps
  readonly #calls = new Calls()
  readonly #workers = new Workers()
  readonly #places: SessionPlaces
  readonly streams: RelayedStreams
  /** This gateway is leaving: it opens no further stream. */
  isClosing = false

  constructor(deps: BrokerDeps) {
    this.#deps = deps
    this.#places = new SessionPlaces({
      workers: this.#workers,
      owners: deps.owners,
      isNew: (epoch) => this.#isNew(epoch),
      isWhole: () => deps.node().isWhole(),
    })
    this.streams = new RelayedStreams({
      send: (epoch, each) => this.#send(epoch, each),
      lives: (epoch) => this.#workers.lives(epoch),
      isAway: deps.isAway,
      metrics: deps.metrics,
    })
  }

  onMembers(members: readonly Member[]): void {
    this.#workers.update(members)
  }

  onGone(epoch: number): void {
    this.#calls.abandon(epoch)
    this.streams.fail('worker_lost', epoch)
  }

  /** Nobody listens on this worker's channel: it is dead, or on its way back. */
  onUnheard(epoch: number): void {
    this.#calls.unheard(epoch)
  }

  onRecord(from: number, received: ReceivedRecord): void {
    if (received.type === RECORD.reply) this.#calls.settle(received.stream, received.body)
    else this.streams.onRecord(from, received)
  }

  readonly broker: Broker = {
    createSession: (tenant, id = newId('sess')) =>
      this.#places.create(tenant, id, {
        make: async (epoch) => (await this.#call(epoch, 'createSession', [tenant, id])) as SessionSummary,
        undo: (epoch) => this.#tell(epoch, 'deleteSession', [tenant, id]),
      }),
    getSession: (tenant, id) =>
      this.#places.ask(tenant, id, async (epoch) => {
        return (await this.#call(epoch, 'getSession', [tenant, id])) as SessionSummary
      }),
    deleteSession: (tenant, id) =>
      this.#places.ask(tenant, id, async (epoch) => {
        await this.#call(epoch, 'deleteSession', [tenant, id])
        await this.#deps.owners.release(tenant, id, epoch)
      }),
    startRun: (tenant, request) => this.#startRun(tenant, request),
    sendMessage: (tenant, sessionId, message) =>
      this.#places.ask(tenant, sessionId, (epoch) => {
        const runId = runIdOn(epoch)
        const args = [tenant, runId, { ...message, sessionId }]
        return this.#open(epoch, { tenant, runId }, (stream) => ['sendMessage', [...args, stream]])
      }),
    listRuns: (tenant, filter) => this.#listRuns(tenant, filter),
    getRun: async (tenant, runId) => (await this.#callRun(tenant, runId, 'getRun')) as RunSummary,
    followRun: (tenant, runId, after) => this.#followRun(tenant, runId, after),
    // It is acknowledged when the run has been aborted where it lives, which is nowhere else: there is nothing to lose afterwards.
    cancelRun: async (tenant, runId) => {
      await this.#callRun(tenant, runId, 'cancelRun')
    },
    listPermissions: (tenant, page) =>
      this.#deps.book.list(tenant, page, (runId) => this.#workers.lives(epochOf(runId))),
    replyPermission: (tenant, scopeId, id, answer) => reply(this.#deps.book, { tenant, scopeId, id }, answer),
  }

  /** Tries the less loaded of two, then the others, before it says that all are full. */
  async #startRun(tenant: TenantId, request: Parameters<Broker['startRun']>[1]): Promise<OpenedRun> {
    let left = [...this.#workers.takers]
    let refusal: unknown = noWorker()
    while (left.length > 0) {
      const worker = lessLoadedOfTwo(left, Math.random)
      if (!worker) break
      const { epoch } = worker
      left = left.filter((other) => other.epoch !== epoch)
      const runId = runIdOn(epoch)
      try {
        const opening: Opening = (stream) => ['startRun', [tenant, runId, request, stream]]
        const opened = await this.#open(epoch, { tenant, runId, isMovable: true }, opening)
        worker.load++
        return opened
      } catch (cause) {
        if (!(cause instanceof AppError) || !TRY_ANOTHER.has(cause.kind) || this.isClosing) throw cause
        refusal = cause
      }
    }
    throw refusal
  }

  async #followRun(tenant: TenantId, runId: string, after: number): Promise<OpenedRun['frames']> {
    this.#refuseWhenClosing()
    const epoch = await this.#workerOfRun(runId)
    const { number, stream } = this.streams.open(epoch, after)
    try {
      await this.#call(epoch, 'followRun', [tenant, runId, after, number])
      return stream
    } catch (cause) {
      await stream.return()
      throw cause
    }
  }

  async #listRuns(tenant: TenantId, filter: Parameters<Broker['listRuns']>[1]): Promise<RunPage> {
    const calls = Array.from(this.#workers.living, (epoch) => this.#call(epoch, 'listRuns', [tenant, filter]))
    return mergePages((await Promise.all(calls)) as RunPage[], filter.limit)
  }

  /** Opens a new run. One whose fate is not known is cancelled behind the call that may have started it. */
  async #open(
    epoch: number,
    { tenant, runId, isMovable = false }: { tenant: TenantId; runId: string; isMovable?: boolean },
    opening: Opening,
  ): Promise<OpenedRun> {
    this.#refuseWhenClosing()
    const { number, stream } = this.streams.open(epoch, 0)
    try {
      await this.#call(epoch, ...opening(number), isMovable)
      return { runId, frames: stream }
    } catch (cause) {
      await stream.return()
      if (isSilent(cause)) this.#tell(epoch, 'cancelRun', [tenant, runId])
      throw cause
    }
  }

  #call(epoch: number, method: string, args: unknown[], isMovable = false): Promise<unknown> {
    const body = packCall({ method, args })
    const send = (id: number) => this.#send(epoch, record(RECORD.call, { stream: id, body }))
    return this.#calls.make({ epoch, send, isMovable })
  }

  /** Calls without waiting for what comes of it. */
  #tell(epoch: number, method: string, args: unknown[]): void {
    this.#call(epoch, method, args).catch(() => {}) // Nobody is there, or it has happened already.
  }

  #send(epoch: number, each: WireRecord): void {
    this.#deps.node().outbox('worker', epoch).send(each)
  }

  async #callRun(tenant: TenantId, runId: string, method: string): Promise<unknown> {
    return this.#call(await this.#workerOfRun(runId), method, [tenant, runId])
  }

  async #workerOfRun(runId: string): Promise<number> {
    const epoch = epochOf(runId)
    if (this.#workers.lives(epoch) || (await this.#isNew(epoch))) return epoch
    throw notFound(`no run ${runId}: it never was, or ended too long ago`)
  }

  async #isNew(epoch: number): Promise<boolean> {
    await this.#deps.node().meet(epoch)
    return this.#workers.lives(epoch)
  }

  #refuseWhenClosing(): void {
    if (!this.isClosing) return
    throw new AppError('unavailable', 'this server is shutting down; send the request again', { retryAfterSecs: 1 })
  }
}

const TRY_ANOTHER = new Set(['rate_limit', 'unavailable'])

/** A run's id names its worker, so that any gateway finds it without a key (its first 8 digits are the epoch). */
const runIdOn = (epoch: number): string => `run_${epoch.toString(16).padStart(8, '0')}${newId('run').slice(-24)}`

const epochOf = (runId: string): number => Number.parseInt(runId.slice(4, 12), 16)
