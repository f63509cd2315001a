import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, conflict, notFound } from '../errors.ts'
import { newId } from '../ids.ts'
import type { TenantId } from '../tenant.ts'
import { Calls, packCall } from './calls.ts'
import type { Member } from './members.ts'
import { reply } from './permission-reply.ts'
import { lessLoadedOfTwo, Ring } from './placement.ts'
import type { Broker, FrameStream, OpenedRun, PermissionBook, RunPage, RunSummary, SessionSummary } from './port.ts'
import { LAST, RECORD, type ReceivedRecord, record } from './records.ts'
import type { RedisNode } from './redis-node.ts'
import type { Owners } from './redis-owners.ts'
import { RelayedStream } from './relayed-stream.ts'

type BrokerDeps = { node: () => RedisNode; owners: Owners; book: PermissionBook; isAway: () => boolean }

type OpenStream = { epoch: number; stream: RelayedStream }

/** The gateway's end of the relay: finds the worker, calls it, and puts the frames it sends in order. */
export class RedisBroker {
  readonly #deps: BrokerDeps
  readonly #calls = new Calls()
  readonly #streams = new Map<number, OpenStream>()
  #lastStream = 0
  /** Those that take new work; a draining one is still called for what it has. */
  #workers: readonly Member[] = []
  #living: ReadonlySet<number> = new Set()
  #ring = Ring.EMPTY

  constructor(deps: BrokerDeps) {
    this.#deps = deps
  }

  get streamCount(): number {
    return this.#streams.size
  }

  onMembers(members: readonly Member[]): void {
    const workers = members.filter(({ role }) => role === 'worker')
    this.#living = new Set(workers.map(({ epoch }) => epoch))
    const active = workers.filter(({ state }) => state === 'active')
    const before = new Set(this.#workers.map(({ epoch }) => epoch))
    const now = new Set(active.map(({ epoch }) => epoch))
    for (const epoch of now.difference(before)) this.#ring = this.#ring.join(epoch)
    for (const epoch of before.difference(now)) this.#ring = this.#ring.leave(epoch)
    this.#workers = active
  }

  onGone(epoch: number): void {
    this.#calls.abandon(epoch)
    for (const open of this.#streams.values()) if (open.epoch === epoch) open.stream.fail('worker_lost')
  }

  /** Redis has been away for too long for what runs to be taken up again. */
  giveUpStreams(): void {
    for (const { stream } of this.#streams.values()) stream.fail('relay_unavailable')
  }

  onRecord(from: number, received: ReceivedRecord): void {
    const { type, stream: number, seq, count, flags, body } = received
    if (type === RECORD.reply) return this.#calls.settle(number, body)
    if (type === RECORD.beat) return this.#onBeat(body)
    const open = this.#streams.get(number)
    if (open?.epoch !== from) return
    if (type === RECORD.gap) return open.stream.gone()
    if (type === RECORD.frames) open.stream.accept({ seq, count, body, isLast: (flags & LAST) > 0 })
  }

  readonly broker: Broker = {
    createSession: (tenant, sessionId = newId('sess')) => this.#createSession(tenant, sessionId),
    getSession: (tenant, sessionId) =>
      this.#whereItIs(tenant, sessionId, async (epoch) => {
        return (await this.#call(epoch, 'getSession', [tenant, sessionId])) as SessionSummary
      }),
    deleteSession: (tenant, sessionId) =>
      this.#whereItIs(tenant, sessionId, async (epoch) => {
        await this.#call(epoch, 'deleteSession', [tenant, sessionId])
        await this.#deps.owners.release(tenant, sessionId, epoch)
      }),
    startRun: (tenant, request) => this.#startRun(tenant, request),
    sendMessage: (tenant, sessionId, message) =>
      this.#whereItIs(tenant, sessionId, (epoch) => {
        const runId = runIdOn(epoch)
        return this.#open(epoch, runId, (stream) => ['sendMessage', [tenant, runId, { ...message, sessionId }, stream]])
      }),
    listRuns: (tenant, filter) => this.#listRuns(tenant, filter),
    getRun: async (tenant, runId) => (await this.#callRun(tenant, runId, 'getRun')) as RunSummary,
    followRun: async (tenant, runId, after) => {
      const epoch = this.#workerOfRun(runId)
      const { frames } = await this.#open(
        epoch,
        runId,
        (stream) => ['followRun', [tenant, runId, after, stream]],
        after,
      )
      return frames
    },
    cancelRun: async (tenant, runId) => {
      await this.#callRun(tenant, runId, 'cancelRun')
    },
    replyPermission: (tenant, scopeId, id, answer) => reply(this.#deps.book, { tenant, scopeId, id }, answer),
  }

  async #createSession(tenant: TenantId, sessionId: string): Promise<SessionSummary> {
    const { owners } = this.#deps
    const candidate = this.#ring.ownerOf(`${tenant} ${sessionId}`)
    if (candidate === undefined) throw noWorker()
    const owner = await owners.claim(tenant, sessionId, candidate)
    if (owner !== candidate && this.#lives(owner)) throw sessionExists(sessionId)
    if (owner !== candidate) {
      const isOurs = await owners.pass(tenant, sessionId, { from: owner, to: candidate })
      if (!isOurs) throw sessionExists(sessionId)
    }
    try {
      return (await this.#call(candidate, 'createSession', [tenant, sessionId])) as SessionSummary
    } catch (cause) {
      // The worker's own answer counts: a session that it has already is a conflict, and stays claimed.
      if (!(cause instanceof AppError && cause.kind === 'conflict')) await owners.release(tenant, sessionId, candidate)
      throw cause
    }
  }

  /** Tries the less loaded of two, then the others, before it says that all are full. */
  async #startRun(tenant: TenantId, request: Parameters<Broker['startRun']>[1]): Promise<OpenedRun> {
    let left = [...this.#workers]
    let refusal: unknown = noWorker()
    while (left.length > 0) {
      const worker = lessLoadedOfTwo(left, Math.random)
      if (!worker) break
      left = left.filter(({ epoch }) => epoch !== worker.epoch)
      const runId = runIdOn(worker.epoch)
      try {
        const opened = await this.#open(worker.epoch, runId, (stream) => ['startRun', [tenant, runId, request, stream]])
        worker.load++
        return opened
      } catch (cause) {
        if (!(cause instanceof AppError) || !TRY_ANOTHER.has(cause.kind)) throw cause
        refusal = cause
      }
    }
    throw refusal
  }

  async #listRuns(tenant: TenantId, filter: Parameters<Broker['listRuns']>[1]): Promise<RunPage> {
    const pages = (await Promise.all(
      this.#workers.map(({ epoch }) => this.#call(epoch, 'listRuns', [tenant, filter])),
    )) as RunPage[]
    return mergePages(pages, filter.limit)
  }

  async #open(
    epoch: number,
    runId: string,
    call: (stream: number) => [method: string, args: unknown[]],
    after = 0,
  ): Promise<OpenedRun & { frames: FrameStream }> {
    const number = ++this.#lastStream
    const send = (type: 'resend' | 'detach', seq = 0) =>
      this.#deps
        .node()
        .outbox('worker', epoch)
        .send(record(RECORD[type], { stream: number, seq }))
    const stream = new RelayedStream(after, {
      resend: (seq) => {
        if (this.#deps.isAway()) return false
        send('resend', seq)
        return true
      },
      closed: () => {
        this.#streams.delete(number)
        if (this.#lives(epoch)) send('detach')
      },
    })
    this.#streams.set(number, { epoch, stream })
    try {
      await this.#call(epoch, ...call(number))
      return { runId, frames: stream }
    } catch (cause) {
      await stream.return()
      throw cause
    }
  }

  #call(epoch: number, method: string, args: unknown[]): Promise<unknown> {
    const body = packCall({ method, args })
    return this.#calls.make(epoch, (id) =>
      this.#deps
        .node()
        .outbox('worker', epoch)
        .send(record(RECORD.call, { stream: id, body })),
    )
  }

  /**
   * Asks the session's owner. While that is handing the session over it answers that it is draining, or no longer knows it:
   * then the next owner is asked, for as long as a hand-over may take.
   */
  async #whereItIs<T>(tenant: TenantId, sessionId: string, ask: (epoch: number) => Promise<T>): Promise<T> {
    const until = performance.now() + HAND_OVER_MS
    while (true) {
      const epoch = await this.#ownerOf(tenant, sessionId)
      try {
        return await ask(epoch)
      } catch (cause) {
        const hasMoved = (await this.#deps.owners.find(tenant, sessionId)) !== epoch
        if (!hasMoved && !isDraining(cause)) throw cause
        if (performance.now() > until) throw cause
        await sleep(HAND_OVER_STEP_MS)
      }
    }
  }

  async #callRun(tenant: TenantId, runId: string, method: string): Promise<unknown> {
    return this.#call(this.#workerOfRun(runId), method, [tenant, runId])
  }

  /** A session whose worker is gone is gone with it. */
  async #ownerOf(tenant: TenantId, sessionId: string): Promise<number> {
    const epoch = await this.#deps.owners.find(tenant, sessionId)
    if (epoch === undefined || !this.#lives(epoch))
      throw notFound(`no session ${sessionId}: create it with POST /sessions`)
    return epoch
  }

  #workerOfRun(runId: string): number {
    const epoch = epochOf(runId)
    if (!this.#lives(epoch)) throw notFound(`no run ${runId}: it never was, or ended too long ago`)
    return epoch
  }

  #lives(epoch: number): boolean {
    return this.#living.has(epoch)
  }

  #onBeat(body: Buffer): void {
    for (let at = 0; at + 8 <= body.length; at += 8) {
      this.#streams.get(body.readUInt32LE(at))?.stream.announced(body.readUInt32LE(at + 4))
    }
  }
}

const HAND_OVER_MS = 5_000
const HAND_OVER_STEP_MS = 50

const isDraining = (cause: unknown) => cause instanceof AppError && cause.code === 'worker_draining'

const TRY_ANOTHER = new Set(['rate_limit', 'unavailable'])

const noWorker = () => new AppError('unavailable', 'no worker is there to take this; try again', { retryAfterSecs: 2 })

const sessionExists = (sessionId: string) =>
  conflict(`session ${sessionId} exists already; choose another session_id or go on with it`)

/** A run's id names its worker, so that any gateway finds it without a key (its first 8 digits are the epoch). */
const runIdOn = (epoch: number): string => `run_${epoch.toString(16).padStart(8, '0')}${newId('run').slice(-24)}`

const epochOf = (runId: string): number => Number.parseInt(runId.slice(4, 12), 16)

/** Each page is newest first; so is what they make together. */
function mergePages(pages: readonly RunPage[], limit: number): RunPage {
  const placeOf = ({ started_at, run_id }: RunSummary) => `${started_at} ${run_id}`
  const all = pages.flatMap(({ runs }) => runs).sort((a, b) => (placeOf(a) < placeOf(b) ? 1 : -1))
  const runs = all.slice(0, limit)
  const last = runs.at(-1)
  const hasMore = all.length > limit || pages.some(({ next_cursor }) => next_cursor !== null)
  return { runs, next_cursor: last && hasMore ? Buffer.from(placeOf(last)).toString('base64url') : null }
}
