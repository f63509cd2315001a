import { AppError, notFound } from '../../errors.ts'
import { newId } from '../../ids.ts'
import type { Metrics } from '../../metrics.ts'
import type { TenantId } from '../../tenant.ts'
import { reply } from '../permissions/reply.ts'
import type { Member } from '../placement/members.ts'
import type { Owners } from '../placement/owners.ts'
import { lessLoadedOfTwo } from '../placement/ring.ts'
import { isSilent, noWorker, SessionRouter } from '../placement/session-router.ts'
import { Workers } from '../placement/workers.ts'
import type { Broker, OpenedRun, PermissionStore, RunPage, RunSummary, SessionSummary } from '../port.ts'
import { mergePages } from '../run-page.ts'
import { RECORD, type ReceivedRecord, type WireRecord } from './records.ts'
import type { RedisNode } from './redis-node.ts'
import { RelayedStreams } from './relayed-streams.ts'
import { ACCEPT_MS, type Patience, WorkerCalls } from './worker-calls.ts'

type BrokerDeps = {
  node: () => RedisNode
  owners: Owners
  book: PermissionStore
  isAway: () => boolean
  metrics: Metrics
}

/** What opens a stream: the method and its arguments, the gateway's number for the stream as the last. */
type Opening = (stream: number) => [method: string, args: unknown[]]

/** The gateway's end of the relay: finds the worker, calls it, and puts the frames it sends in order. */
export class RedisBroker {
  readonly #deps: BrokerDeps
  readonly #calls: WorkerCalls
  readonly #workers = new Workers()
  readonly #places: SessionRouter
  readonly streams: RelayedStreams
  /** This gateway is leaving: it opens no further stream. */
  isClosing = false

  constructor(deps: BrokerDeps) {
    this.#deps = deps
    const send = (epoch: number, each: WireRecord) => deps.node().outbox('worker', epoch).send(each)
    this.#calls = new WorkerCalls({ workers: this.#workers, send, isAway: deps.isAway })
    this.#places = new SessionRouter({
      workers: this.#workers,
      owners: deps.owners,
      isNew: (epoch) => this.#isNew(epoch),
      isWhole: async () => !deps.isAway() && (await deps.node().isRebuilt()),
    })
    this.streams = new RelayedStreams({
      send,
      lives: (epoch) => this.#workers.isAlive(epoch),
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
    this.#deps
      .node()
      .refreshMembers() // It may have left, which is on the next list.
      .catch(() => {})
  }

  onRecord(from: number, received: ReceivedRecord): void {
    if (received.type === RECORD.reply) this.#calls.settle(received.stream, received.body)
    else this.streams.onRecord(from, received)
  }

  readonly broker: Broker = {
    createSession: (tenant, id = newId('sess')) =>
      this.#places.create(tenant, id, {
        make: async (epoch) => (await this.#calls.call(epoch, 'createSession', [tenant, id])) as SessionSummary,
        undo: (epoch) => this.#calls.tell(epoch, 'deleteSession', [tenant, id]),
      }),
    getSession: (tenant, id) =>
      this.#places.ask(tenant, id, async (epoch) => {
        return (await this.#calls.call(epoch, 'getSession', [tenant, id])) as SessionSummary
      }),
    deleteSession: (tenant, id) =>
      this.#places.ask(tenant, id, async (epoch) => {
        await this.#calls.call(epoch, 'deleteSession', [tenant, id])
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
    getRun: async (tenant, runId) => (await this.#callRun(runId, 'getRun', [tenant, runId])) as RunSummary,
    followRun: (tenant, runId, after) => this.#followRun(tenant, runId, after),
    // It is acknowledged when the run has been aborted where it lives, which is nowhere else: there is nothing to lose afterwards.
    cancelRun: async (tenant, runId) => {
      await this.#callRun(runId, 'cancelRun', [tenant, runId])
    },
    listPermissions: (tenant, page) =>
      this.#deps.book.list(tenant, page, (runId) => this.#workers.isAlive(epochOf(runId))),
    replyPermission: (tenant, scopeId, id, answer) => reply(this.#deps.book, { tenant, scopeId, id }, answer),
  }

  /** Tries the less loaded of two, of a customer's run the one where the line is (design §4.7), then the others, before it says that all are full. */
  async #startRun(tenant: TenantId, request: Parameters<Broker['startRun']>[1]): Promise<OpenedRun> {
    const until = performance.now() + ACCEPT_MS
    const { customer_id: customer } = request
    const home = customer && this.#workers.ownerOf(`${tenant} ${customer}`)
    let left = [...this.#workers.eligible]
    let refusal: unknown = noWorker()
    while (left.length > 0) {
      const worker = left.find((member) => member.epoch === home) ?? lessLoadedOfTwo(left, Math.random)
      if (!worker) break
      const { epoch } = worker
      left = left.filter((other) => other.epoch !== epoch)
      const runId = runIdOn(epoch)
      try {
        const opening: Opening = (stream) => ['startRun', [tenant, runId, request, stream]]
        const remainingMs = until - performance.now()
        const patience = { isMovable: true, deadlineMs: left.length > 0 ? Math.min(TRY_MS, remainingMs) : remainingMs }
        const opened = await this.#open(epoch, { tenant, runId, patience }, opening)
        worker.load++
        return opened
      } catch (cause) {
        const isFinal = this.isClosing || this.#deps.isAway() || performance.now() > until - LEAST_MS
        if (isFinal || !(cause instanceof AppError) || !TRY_ANOTHER.has(cause.kind)) throw cause
        refusal = cause
      }
    }
    throw refusal
  }

  async #followRun(tenant: TenantId, runId: string, after: number): Promise<OpenedRun['frames']> {
    this.#refuseWhenClosing()
    const { number, stream } = this.streams.open(epochOf(runId), after)
    try {
      await this.#callRun(runId, 'followRun', [tenant, runId, after, number])
      return stream
    } catch (cause) {
      await stream.return()
      throw cause
    }
  }

  async #listRuns(tenant: TenantId, filter: Parameters<Broker['listRuns']>[1]): Promise<RunPage> {
    const calls = Array.from(this.#workers.alive, (epoch) =>
      this.#calls.call(epoch, 'listRuns', [tenant, filter]).catch((cause: unknown) => {
        if (!this.#calls.hasLeft(epoch, cause)) throw cause
        return { runs: [], next_cursor: null }
      }),
    )
    return mergePages((await Promise.all(calls)) as RunPage[], filter.limit)
  }

  /** Opens a new run. One whose fate is not known is cancelled behind the call that may have started it. */
  async #open(
    epoch: number,
    { tenant, runId, patience }: { tenant: TenantId; runId: string; patience?: Patience },
    opening: Opening,
  ): Promise<OpenedRun> {
    this.#refuseWhenClosing()
    const { number, stream } = this.streams.open(epoch, 0)
    try {
      await this.#calls.call(epoch, ...opening(number), patience)
      return { runId, frames: stream }
    } catch (cause) {
      await stream.return()
      if (isSilent(cause)) this.#calls.tell(epoch, 'cancelRun', [tenant, runId])
      throw cause
    }
  }

  async #callRun(runId: string, method: string, args: unknown[]): Promise<unknown> {
    const epoch = epochOf(runId)
    if (!this.#workers.isAlive(epoch) && !(await this.#isNew(epoch))) throw noRun(runId)
    try {
      return await this.#calls.call(epoch, method, args)
    } catch (cause) {
      throw this.#calls.hasLeft(epoch, cause) ? noRun(runId) : cause
    }
  }

  async #isNew(epoch: number): Promise<boolean> {
    await this.#deps.node().discover(epoch)
    return this.#workers.isAlive(epoch)
  }

  #refuseWhenClosing(): void {
    if (!this.isClosing) return
    throw new AppError('unavailable', 'this server is shutting down; send the request again', { retryAfterSecs: 1 })
  }
}

/** How long one worker of several is waited for. */
const TRY_MS = 500
/** With less time left there is no sense in asking another. */
const LEAST_MS = 100

const noRun = (runId: string) => notFound(`no run ${runId}: it never was, or ended too long ago`)

const TRY_ANOTHER = new Set(['rate_limit', 'unavailable'])

/** A run's id names its worker, so that any gateway finds it without a key (its first 8 digits are the epoch). */
const runIdOn = (epoch: number): string => `run_${epoch.toString(16).padStart(8, '0')}${newId('run').slice(-24)}`

const epochOf = (runId: string): number => Number.parseInt(runId.slice(4, 12), 16)
