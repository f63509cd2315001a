import type { ServerResponse } from 'node:http'
import type { Request, Response } from 'express'
import { renderReaderFailure } from '../../shared/broker/journal/frames.ts'
import type { FrameStream, Frames } from '../../shared/broker/port.ts'
import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'
import { createKeepalive, type Keepalive, type KeepaliveTarget } from './keepalive.ts'

export type RelayLimits = {
  keepaliveMs: number
  /** A reader that takes nothing for so long is cut off. */
  stallMs?: number
  /** How long it then has to read why. */
  farewellMs?: number
}

const STALL_MS = 30_000
const FAREWELL_MS = 5_000

const OPENING = ': ok\n\n'
const KEEPALIVE = Buffer.from(': keepalive\n\n')

export type StreamedRun = {
  runId: string
  frames: FrameStream
  /** Number of the last frame that the reader has already. */
  after?: number
}

/** Sends a run's frames to one reader, at the reader's pace, until they end, or the reader does. Owns them from the call on; never throws. */
export type Relay = (run: StreamedRun, res: Response) => void

export function createRelay(
  { keepaliveMs, stallMs = STALL_MS, farewellMs = FAREWELL_MS }: RelayLimits,
  { log, metrics }: { log: Log; metrics: Metrics },
): Relay {
  const keepalive = createKeepalive(keepaliveMs)
  let openCount = 0
  metrics.gauge('streams', () => openCount)
  const terms: Terms = {
    stallMs,
    farewellMs,
    onSlow: () => metrics.count('slow_consumers'),
    onEnd: () => void openCount--,
  }
  return ({ runId, frames, after = 0 }, res) => {
    openStream(runId, res)
    metrics.count('streams_opened')
    openCount++
    const stream = new Stream({ res, frames: frames[Symbol.asyncIterator](), lastSeq: after, terms })
    const onFailure = (cause: unknown) => log.error('stream failed', { run_id: runId, cause })
    void stream.run(keepalive, onFailure)
    if (res.req) slim(res.req)
  }
}

/** Headers of D4.1 and D4.2. The comment takes them to the client at once. */
export function openStream(runId: string, res: Response): void {
  res.setHeader('Content-Type', 'text/event-stream')
  res.setHeader('Cache-Control', 'no-cache, no-transform')
  res.setHeader('X-Accel-Buffering', 'no')
  res.setHeader('X-Run-ID', runId)
  const { socket } = res
  socket?.setNoDelay(true)
  socket?.cork()
  res.flushHeaders() // Apart from the comment: together they would stay in memory as the pieces they are made of.
  res.write(OPENING)
  // A run tells of its first turn in the next loop turn, and its reader of that in the one after: one packet for all of it.
  setImmediate(() => setImmediate(() => socket?.uncork()))
}

/** Thousands of streams stand idle while Node keeps each request beside its response: what hangs on it, some 3 KB, is let go. */
function slim(req: Request): void {
  Object.assign(req, { headers: {}, rawHeaders: [], next: undefined })
}

/** The same for all streams of a process. */
type Terms = { stallMs: number; farewellMs: number; onSlow: () => void; onEnd: () => void }

type StreamParts = { res: ServerResponse; frames: AsyncIterator<Frames>; lastSeq: number; terms: Terms }

/** open -> ended (frames over) | cut (reader stalled, or the frames failed) | left (the reader went away). */
class Stream implements KeepaliveTarget {
  readonly #res: ServerResponse
  readonly #frames: AsyncIterator<Frames>
  readonly #terms: Terms
  #lastSeq: number

  constructor({ res, frames, lastSeq, terms }: StreamParts) {
    this.#res = res
    this.#frames = frames
    this.#lastSeq = lastSeq
    this.#terms = terms
  }

  async run(keepalive: Keepalive, onFailure: (cause: unknown) => void): Promise<void> {
    this.#res.once('close', this.#leave)
    keepalive.add(this)
    try {
      await this.#pump()
    } catch (cause) {
      onFailure(cause)
      this.#cut('internal')
    } finally {
      keepalive.delete(this)
      this.#res.end()
      this.#terms.onEnd()
    }
  }

  beat(): void {
    if (!this.#res.writableNeedDrain) this.#res.write(KEEPALIVE)
  }

  async #pump(): Promise<void> {
    while (!this.#res.closed) {
      const { done, value } = await this.#frames.next()
      if (done === true) return
      this.#lastSeq = value.lastSeq
      if (this.#res.write(value.text) || this.#res.closed) continue
      if (!(await isDrained(this.#res, this.#terms.stallMs))) return this.#cut('slow_consumer')
    }
    this.#leave()
  }

  /** Ends the stream though the run may go on; whoever still does not read then loses the connection. */
  #cut(code: 'slow_consumer' | 'internal'): void {
    if (code === 'slow_consumer') this.#terms.onSlow()
    this.#leave()
    this.#res.write(renderReaderFailure(this.#lastSeq, code))
    const timer = setTimeout(() => this.#res.destroy(), this.#terms.farewellMs).unref()
    this.#res.once('close', () => clearTimeout(timer))
  }

  readonly #leave = (): void => {
    this.#res.off('close', this.#leave)
    this.#frames.return?.()?.catch(() => {}) // The reader is gone: there is nobody to tell.
  }
}

/** Waits until a full buffer is empty or the connection gone. `false` when neither comes in time. */
function isDrained(res: ServerResponse, stallMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const settle = (hasDrained: boolean) => () => {
    clearTimeout(timer)
    res.off('drain', onMoved).off('close', onMoved)
    resolve(hasDrained)
  }
  const onMoved = settle(true)
  const timer = setTimeout(settle(false), stallMs).unref()
  res.on('drain', onMoved).on('close', onMoved)
  return promise
}
