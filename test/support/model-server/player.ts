import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Act, ToolCall } from './acts.ts'
import type { Connection } from './connection.ts'
import type { Failure } from './script.ts'
import type { Encoder } from './wire.ts'

type Deps = {
  res: ServerResponse
  encoder: Encoder
  connection: Connection
  /** Sends an HTTP error; used while nothing of the answer has been sent. */
  fail: (failure: Failure) => void
}

type StoppingAct = Extract<Act, { error: unknown } | { reset: unknown } | { truncate: unknown } | { hang: unknown }>

/** Performs the acts of one answer as fast as the client reads. */
export class Player {
  readonly #deps: Deps
  /** Pieces sent so far, which are counted as output tokens. */
  sent = 0

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Returns true when all acts were performed and the end of the answer is still to be sent; false when an act ended it. */
  async play(acts: Act[]): Promise<boolean> {
    for (const act of acts) {
      if (!(await this.#perform(act))) return false
    }
    return true
  }

  async #perform(act: Act): Promise<boolean> {
    const { encoder, connection } = this.#deps
    if ('say' in act) await this.#send(act.pieces.length, act.everyMs, (i) => encoder[act.say](act.pieces[i] ?? ''))
    else if ('tokens' in act) await this.#send(act.tokens, act.everyMs, (i) => encoder.text(`${i + 1} `))
    else if ('call' in act) await this.#call(act.call)
    else if ('raw' in act) await this.write(act.raw)
    else if ('wait' in act) await sleep(act.wait, undefined, { signal: connection.signal })
    else if ('hold' in act) await Promise.race([act.hold, once(connection.signal, 'abort')])
    else return await this.#stop(act)
    return !connection.signal.aborted
  }

  /** Performs an act that ends the answer. */
  async #stop(act: StoppingAct): Promise<false> {
    const { res, encoder, connection, fail } = this.#deps
    if ('truncate' in act) res.end()
    else if ('reset' in act) await connection.reset()
    else if ('hang' in act) await once(connection.signal, 'abort')
    else if (res.headersSent) res.end(encoder.error(act.error))
    else fail(act.error)
    return false
  }

  async #call(call: ToolCall): Promise<void> {
    for (const bytes of this.#deps.encoder.tool(call)) await this.write(bytes)
    this.sent += call.pieces.length
  }

  async #send(count: number, everyMs: number, bytes: (i: number) => string) {
    if (everyMs > 0) await this.#pace(count, everyMs, bytes)
    else {
      for (let i = 0; i < count; i += 1) {
        const full = this.write(bytes(i))
        if (full) await full
      }
    }
    this.sent += count
  }

  /** Sends the pieces that are due by the clock, so that a late timer does not lower the rate. Waits while the client is slow. */
  #pace(count: number, everyMs: number, bytes: (i: number) => string): Promise<void> {
    const { res, connection } = this.#deps
    const { signal } = connection
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const start = performance.now()
    let next = 0
    const tick = () => {
      const due = Math.min(count, 1 + Math.floor((performance.now() - start) / everyMs))
      while (next < due && !res.writableNeedDrain) {
        const piece = bytes(next++)
        if (piece !== '') res.write(piece)
      }
      if (next === count) resolve()
    }
    const timer = setInterval(tick, everyMs)
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    tick()
    return promise.finally(() => {
      clearInterval(timer)
      signal.removeEventListener('abort', stop)
    })
  }

  /** Returns a promise for the drain when the client is slow, else undefined. */
  write(bytes: string): Promise<unknown> | undefined {
    const { res, connection } = this.#deps
    if (bytes === '' || res.write(bytes)) return undefined
    return once(res, 'drain', { signal: connection.signal })
  }
}
