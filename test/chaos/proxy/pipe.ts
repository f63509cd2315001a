import type { Socket } from 'node:net'
import type { Random } from '../../harness/seed.ts'
import type { Direction, Faults } from './faults.ts'

/** The most that one pipe holds back. Beyond it, the pipe stops reading. */
const MAX_QUEUED_BYTES = 4 * 1024 * 1024
const MAX_QUEUED_CHUNKS = 4096
/** A throttled pipe sends at once what the bandwidth allows for this time. */
const THROTTLE_MS = 20

export type PipeDeps = {
  direction: Direction
  source: Socket
  sink: Socket
  /** The current faults, which change over time. */
  faults: () => Faults
  random: Random
  /** Called when the bytes that `cutAfter` allows are sent. */
  onCut: () => void
}

type Chunk = { bytes: Buffer; dueAt: number }

/** One direction of a connection. Forwards bytes in order with the delay, bandwidth and piece size of the faults. */
export class Pipe {
  readonly #deps: PipeDeps
  readonly #queue: Chunk[] = []
  #queuedBytes = 0
  #bytesUntilCut = Number.POSITIVE_INFINITY
  #isSinkFull = false
  #hasEnded = false
  #timer: NodeJS.Timeout | NodeJS.Immediate | undefined
  /** Bytes that a throttled pipe may send, as of `#refilledAt`. */
  #allowance = 0
  #refilledAt = 0

  constructor(deps: PipeDeps) {
    this.#deps = deps
    deps.sink.on('drain', () => {
      this.#isSinkFull = false
      this.update()
    })
    deps.source.on('end', () => {
      this.#hasEnded = true
      this.update()
    })
  }

  push(bytes: Buffer): void {
    if (this.#queue.length === 0 && !this.#isShaped && !this.#isHeld) this.#send(bytes)
    else this.#enqueue(bytes)
    this.update()
  }

  /** Resets the connection after this many more bytes. */
  cutAfter(bytes: number): void {
    this.#bytesUntilCut = bytes
  }

  /** Forwards what the current faults allow. */
  update(): void {
    this.#unschedule()
    if (!this.#isHeld) this.#flush()
    if (this.#hasEnded && this.#queue.length === 0 && !this.#isBlackhole) this.#deps.sink.end()
    const isFull = this.#queuedBytes >= MAX_QUEUED_BYTES || this.#queue.length >= MAX_QUEUED_CHUNKS
    if (this.#isHeld || isFull) this.#deps.source.pause()
    else this.#deps.source.resume()
  }

  close(): void {
    this.#unschedule()
    this.#queue.length = 0
  }

  get #isShaped(): boolean {
    const { latencyMs, jitterMs, bytesPerSec, sliceBytes } = this.#deps.faults()
    return (latencyMs ?? jitterMs ?? bytesPerSec ?? sliceBytes) !== undefined
  }

  get #isBlackhole(): boolean {
    const { blackhole } = this.#deps.faults()
    return blackhole === 'both' || blackhole === this.#deps.direction
  }

  get #isHeld(): boolean {
    return this.#isBlackhole || this.#isSinkFull
  }

  #enqueue(bytes: Buffer): void {
    const { latencyMs = 0, jitterMs = 0 } = this.#deps.faults()
    const dueAt = performance.now() + latencyMs + jitterMs * this.#deps.random.next()
    // Not before its predecessor, which keeps the order.
    this.#queue.push({ bytes, dueAt: Math.max(dueAt, this.#queue.at(-1)?.dueAt ?? 0) })
    this.#queuedBytes += bytes.length
  }

  /** Sends what is due and schedules the rest. */
  #flush(): void {
    const { sliceBytes } = this.#deps.faults()
    for (let chunk = this.#queue[0]; chunk && !this.#isHeld; chunk = this.#queue[0]) {
      const waitMs = this.#waitMs(chunk)
      if (waitMs > 0) return this.#schedule(waitMs)
      this.#sendPart(chunk)
      if (sliceBytes !== undefined && this.#queue.length > 0) return this.#schedule(0)
    }
  }

  #waitMs({ bytes, dueAt }: Chunk): number {
    const { latencyMs, jitterMs, bytesPerSec } = this.#deps.faults()
    const now = performance.now()
    if ((latencyMs ?? jitterMs) !== undefined && dueAt > now) return dueAt - now
    if (bytesPerSec === undefined) return 0
    const most = Math.max(1, (bytesPerSec * THROTTLE_MS) / 1000)
    this.#allowance = Math.min(most, this.#allowance + (bytesPerSec * (now - this.#refilledAt)) / 1000)
    this.#refilledAt = now
    const wanted = Math.min(bytes.length, most)
    return ((wanted - this.#allowance) / bytesPerSec) * 1000
  }

  #sendPart(chunk: Chunk): void {
    const { sliceBytes, bytesPerSec } = this.#deps.faults()
    const slice = sliceBytes === undefined ? chunk.bytes.length : this.#deps.random.between(1, sliceBytes)
    const allowed = bytesPerSec === undefined ? slice : Math.min(slice, Math.max(1, Math.floor(this.#allowance)))
    const part = chunk.bytes.subarray(0, allowed)
    chunk.bytes = chunk.bytes.subarray(part.length)
    if (chunk.bytes.length === 0) this.#queue.shift()
    this.#queuedBytes -= part.length
    this.#allowance -= part.length
    this.#send(part)
  }

  #send(bytes: Buffer): void {
    const part = bytes.subarray(0, this.#bytesUntilCut)
    this.#bytesUntilCut -= part.length
    this.#isSinkFull = !this.#deps.sink.write(part)
    if (this.#bytesUntilCut === 0) this.#deps.onCut()
  }

  #schedule(waitMs: number): void {
    const again = () => this.update()
    this.#timer = waitMs === 0 ? setImmediate(again) : setTimeout(again, waitMs)
  }

  #unschedule(): void {
    clearTimeout(this.#timer as NodeJS.Timeout | undefined)
    clearImmediate(this.#timer as NodeJS.Immediate | undefined)
    this.#timer = undefined
  }
}
