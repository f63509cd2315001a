import type { ServerResponse } from 'node:http'
import type { Request, Response } from 'express'
import type { FrameStream, Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import { renderReaderFailure } from '../../../shared/cluster/journal/frames.ts'
import type { Log } from '../../../shared/kernel/log.ts'
import type { Metrics } from '../../../shared/kernel/metrics.ts'
import { callerOf } from '../../http/request-log.ts'
import { ChunkedBody } from './chunked-body.ts'
import { createKeepalive, type Keepalive, type KeepaliveTarget } from './keepalive.ts'

export type RelayLimits = {
  keepaliveMs: number
  /** A reader that accepts no bytes for this long is cut off. Default: 30 s. */
  stallMs?: number
  /** How long it may then take to read the final error before its connection is destroyed. Default: 5 s. */
  closeGraceMs?: number
}

const STALL_MS = 30_000
const CLOSE_GRACE_MS = 5_000

/** No blank line follows a comment: some readers would report an empty message. */
const OPENING = ': ok\n'
/** A reader that is cut off knows the id of its last event and continues after it. */
const CUT_OFF = ': connect again\n'
const KEEPALIVE = Buffer.from(': keepalive\n')

/** Without a run, the stream is one of the tenant's events (D16). */
export type Streamed = {
  runId?: string
  frames: FrameStream
  /** Number of the last frame that the reader already has. */
  after?: number
  /** Renders the last text for a reader that is cut off; by default the last event of a run's stream. */
  farewell?: (lastSeq: number, code: CutCode) => string
}

/**
 * Sends frames to one reader until the frames end or the reader leaves, no faster than the reader reads. Never
 * throws.
 */
export type Relay = (stream: Streamed, res: Response) => void

export function createRelay(
  { keepaliveMs, stallMs = STALL_MS, closeGraceMs = CLOSE_GRACE_MS }: RelayLimits,
  { log, metrics }: { log: Log; metrics: Metrics },
): Relay {
  const keepalive = createKeepalive(keepaliveMs)
  let openCount = 0
  metrics.gauge('streams', () => openCount)
  const options: StreamOptions = {
    stallMs,
    closeGraceMs,
    onSlow: () => metrics.count('slow_consumers'),
    onEnd: () => void openCount--,
  }
  return ({ runId, frames, after = 0, farewell = farewellOf(runId) }, res) => {
    openStream(runId, res)
    res.socket?.setTimeout(stallMs + 2 * closeGraceMs) // A stream cuts a stalled reader off by itself, with a last frame.
    metrics.count('streams_opened')
    openCount++
    const onLost = () => {
      metrics.countDivided('runs_ended', 'worker_lost')
      log.warn('run ended', { ...callerOf(res), run_id: runId, code: 'worker_lost' })
    }
    const stream = new Stream({
      res,
      frames: frames[Symbol.asyncIterator](),
      lastSeq: after,
      options,
      onLost,
      farewell,
    })
    const onFailure = (cause: unknown) => log.error('stream failed', { ...callerOf(res), run_id: runId, cause })
    void stream.run(keepalive, onFailure)
    if (res.req) releaseRequest(res.req)
  }
}

const farewellOf = (runId: string | undefined) => (runId === undefined ? () => CUT_OFF : renderReaderFailure)

/** Answers a HEAD request for a stream. */
export function answerHead(runId: string | undefined, res: Response): void {
  openStream(runId, res)
  res.end()
}

/** Answers a client that already has the last event of an ended run: 204 tells EventSource not to reconnect (D4.5c). */
export function answerNothingLeft(runId: string, res: Response): void {
  res.setHeader('X-Run-ID', runId).status(204).end()
}

/** Sends the headers of D4.1 and D4.2, and a first comment so that proxies pass them on immediately. */
function openStream(runId: string | undefined, res: Response): void {
  res.setHeader('Content-Type', 'text/event-stream')
  res.setHeader('Cache-Control', 'no-cache, no-transform')
  res.setHeader('X-Accel-Buffering', 'no')
  if (runId !== undefined) res.setHeader('X-Run-ID', runId)
  const { socket } = res
  socket?.setNoDelay(true)
  socket?.cork()
  res.flushHeaders() // Written apart from the comment: Node would keep the pieces of a combined write in memory.
  res.write(OPENING)
  // The run emits its first event in the next turn of the event loop and this stream writes it in the turn after that, so all of it
  // goes out in one packet.
  setImmediate(() => setImmediate(() => socket?.uncork()))
}

const RELEASED = Object.freeze({ headers: {}, rawHeaders: [], params: {}, next: undefined })

/** Frees about 3 KB per stream: Node keeps a request as long as its response, and thousands of streams may be open and idle. */
function releaseRequest(req: Request): void {
  Object.assign(req, RELEASED)
}

type CutCode = 'slow_consumer' | 'internal'

/** Shared by all streams of a process. */
type StreamOptions = { stallMs: number; closeGraceMs: number; onSlow: () => void; onEnd: () => void }

type StreamParts = {
  res: ServerResponse
  frames: AsyncIterator<Frames>
  lastSeq: number
  options: StreamOptions
  onLost: () => void
  /** Renders the last text for a reader that is cut off. */
  farewell: (lastSeq: number, code: CutCode) => string
}

/**
 * One open response. open -> ended (no more frames) | cut (the reader stalled, or reading frames failed) | left (the client
 * disconnected).
 */
class Stream implements KeepaliveTarget {
  readonly #res: ServerResponse
  readonly #body: ChunkedBody
  readonly #frames: AsyncIterator<Frames>
  readonly #options: StreamOptions
  readonly #onLost: () => void
  readonly #farewell: StreamParts['farewell']
  #lastSeq: number
  /** Whether a piece of a large frame was written last, and more pieces follow. */
  #isInsideFrame = false
  #cutCode: CutCode | undefined

  constructor({ res, frames, lastSeq, options, onLost, farewell }: StreamParts) {
    this.#res = res
    this.#body = new ChunkedBody(res)
    this.#frames = frames
    this.#lastSeq = lastSeq
    this.#options = options
    this.#onLost = onLost
    this.#farewell = farewell
  }

  async run(keepalive: Keepalive, onFailure: (cause: unknown) => void): Promise<void> {
    this.#res.on('close', this.#stopReading)
    const place = keepalive.add(this)
    try {
      await this.#pump()
    } catch (cause) {
      onFailure(cause)
      if (this.#isInsideFrame) this.#breakOff()
      else this.#cut('internal')
    } finally {
      place.leave()
      this.#body.end()
      this.#options.onEnd()
    }
  }

  sendKeepalive(): void {
    if (!this.#res.writableNeedDrain && !this.#isInsideFrame) this.#body.write(KEEPALIVE)
  }

  async #pump(): Promise<void> {
    while (!this.#res.closed) {
      const { done, value } = await this.#frames.next()
      if (done === true) return
      if (this.#isInsideFrame && value.failure !== undefined) return this.#breakOff()
      if (value.failure === 'worker_lost') this.#onLost()
      this.#lastSeq = value.lastSeq
      this.#isInsideFrame = value.pieces !== undefined
      const hasRoom = this.#body.write(value.text)
      if (this.#cutCode && !this.#isInsideFrame) return this.#sayWhy(this.#cutCode)
      if (hasRoom || this.#res.closed || (await isDrained(this.#res, this.#waitMs))) continue
      if (this.#cutCode) break
      this.#cut('slow_consumer')
      if (!this.#isInsideFrame) return
    }
    this.#stopReading()
  }

  get #waitMs(): number {
    return this.#cutCode ? this.#options.closeGraceMs : this.#options.stallMs
  }

  /**
   * Ends the stream with an error frame while the run may continue; inside a large frame, after the rest of it. Destroys the
   * connection when the client does not read that in time.
   */
  #cut(code: CutCode): void {
    if (code === 'slow_consumer') this.#options.onSlow()
    this.#cutCode = code
    const timer = setTimeout(() => this.#res.destroy(), this.#options.closeGraceMs).unref()
    this.#res.once('close', () => clearTimeout(timer))
    if (!this.#isInsideFrame) this.#sayWhy(code)
  }

  #sayWhy(code: CutCode): void {
    this.#stopReading()
    this.#body.write(this.#farewell(this.#lastSeq, code))
  }

  /**
   * Closes the connection because the rest of a frame never comes. A client ignores an event that is incomplete when its
   * connection breaks, and reconnects.
   */
  #breakOff(): void {
    this.#stopReading()
    this.#res.destroy()
  }

  readonly #stopReading = (): void => {
    this.#res.off('close', this.#stopReading)
    this.#frames.return?.()?.catch(() => {}) // The client has left, so nobody can receive the error.
  }
}

/** Waits until the write buffer is empty or the connection is closed; `false` when neither happens in time. */
function isDrained(res: ServerResponse, stallMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const settle = (isInTime: boolean) => () => {
    clearTimeout(timer)
    res.off('drain', onProgress).off('close', onProgress)
    resolve(isInTime)
  }
  const onProgress = settle(true)
  const timer = setTimeout(settle(false), stallMs).unref()
  res.on('drain', onProgress).on('close', onProgress)
  return promise
}
