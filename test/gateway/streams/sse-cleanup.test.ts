import { EventEmitter } from 'node:events'
import { expect } from 'chai'
import type { Response } from 'express'
import { createRelay } from '../../../services/gateway/streams/sse.ts'
import { NO_METRICS } from '../../../shared/kernel/metrics.ts'
import { DONE, delta, Feed, framesOf, RUN_ID } from '../setup.ts'

const LOG = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} }
const LIMITS = { keepaliveMs: 100, stallMs: 60_000 }

/** A response whose buffer is full after every write and drains in the next turn of the event loop. */
class SlowResponse extends EventEmitter {
  closed = false
  writableNeedDrain = false
  readonly written: string[] = []
  mostListeners = 0
  readonly #ended = Promise.withResolvers<void>()
  readonly #kept = Promise.withResolvers<void>()

  /** Resolves when the response was ended. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** Resolves when a keepalive comment was written. */
  get keptAlive(): Promise<void> {
    return this.#kept.promise
  }

  setHeader(): void {}
  flushHeaders(): void {}

  write(bytes: string | Uint8Array): boolean {
    const text = Buffer.from(bytes as string).toString()
    this.written.push(text)
    if (text === ': keepalive\n') this.#kept.resolve()
    setImmediate(() => {
      this.mostListeners = Math.max(this.mostListeners, this.listenerCount('drain'), this.listenerCount('close'))
      this.emit('drain')
    })
    return false
  }

  end(): void {
    this.closed = true
    this.emit('close')
    this.#ended.resolve()
  }
}

const toResponse = (res: SlowResponse) => res as unknown as Response

describe('what a stream leaves behind', () => {
  it('a stream removes its listeners after each wait for a drain, and all of them at its end', async () => {
    const res = new SlowResponse()
    const events = Array.from({ length: 30 }, (_, i) => delta(String(i)))
    createRelay(LIMITS, { log: LOG, metrics: NO_METRICS })(
      { runId: RUN_ID, frames: framesOf(...events, DONE) },
      toResponse(res),
    )
    await res.ended
    expect(res.written).to.have.length(32)
    expect(res.mostListeners).to.be.at.most(2)
    expect([res.listenerCount('drain'), res.listenerCount('close')]).to.deep.equal([0, 0])
  })

  it('an ended stream gets no keepalive comment', async () => {
    const relay = createRelay(LIMITS, { log: LOG, metrics: NO_METRICS })
    const [ended, open] = [new SlowResponse(), new SlowResponse()]
    const feed = new Feed()
    relay({ runId: RUN_ID, frames: framesOf(DONE) }, toResponse(ended))
    await ended.ended
    relay({ runId: RUN_ID, frames: feed }, toResponse(open))
    await open.keptAlive
    expect(ended.written).to.have.length(2)
    feed.end()
    await open.ended
  })
})
