import { type ByteCaps, StreamMeter } from './ai-sdk-meter.ts'

export type ModelLimits = ByteCaps & {
  connectMs: number
  /** From the call to the first byte of the answer's body. */
  firstByteMs: number
  /** Between two chunks; it counts only while we ask for bytes, so that a slow reader is not the provider's fault. */
  idleMs: number
  turnMs: number
}

/** reliability.md 2.1 "T_prov" and 2.2 "Provider". */
export const MODEL_LIMITS: ModelLimits = {
  connectMs: 5_000,
  firstByteMs: 60_000,
  idleMs: 60_000,
  turnMs: 600_000,
  maxTurnBytes: 32 * 1024 * 1024,
  maxEventBytes: 1024 * 1024,
}

export type Fetch = typeof globalThis.fetch

/** Which limit ended a call. */
export type Breach = 'first_byte' | 'idle' | 'turn' | 'turn_bytes' | 'event_bytes' | 'not_utf8' | 'web_page'

/** How long a provider may take to end its response after it has said everything. */
const GOODBYE_MS = 250

/** A timer that comes later than this was held up by our own process: what it measures is then not the provider's time. */
const OWN_PAUSE_MS = 500

/** Watches over one model call: any limit, and the caller's signal, closes the connection to the provider. */
export class CallWatch {
  /** The limit that ended the call, if one did. */
  breach: Breach | undefined
  /** A request has left: what goes wrong from here on is no bug of ours. */
  isSent = false
  readonly #limits: ModelLimits
  readonly #caller: AbortSignal
  readonly #controller = new AbortController()
  readonly #meter: StreamMeter
  #timer: NodeJS.Timeout
  #wakeAt = 0
  #turnEndsAt: number
  #waitEndsAt: number | undefined
  #hasBytes = false

  constructor(limits: ModelLimits, caller: AbortSignal) {
    this.#limits = limits
    this.#caller = caller
    this.#meter = new StreamMeter(limits)
    const now = performance.now()
    this.#turnEndsAt = now + limits.turnMs
    this.#waitEndsAt = now + limits.firstByteMs
    this.#timer = this.#arm(now)
    caller.addEventListener('abort', this.#abort)
    if (caller.aborted) this.#abort()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Sends a request of this call. Its answer is read under watch, and redirects are not followed: they would carry the key along. */
  async fetch(transport: Fetch, ...[input, init]: Parameters<Fetch>): Promise<Response> {
    this.isSent = true
    return this.#guard(await transport(input, { ...init, redirect: 'manual' }))
  }

  /** Everything has been said: the response may end by itself, so that its connection can be used again, but soon. */
  expectEnd(): void {
    this.#turnEndsAt = Math.min(this.#turnEndsAt, performance.now() + GOODBYE_MS)
    this.#rearm()
  }

  /** A connection whose answer was read to its end is not affected: it stays in the pool. */
  close(): void {
    clearTimeout(this.#timer)
    this.#caller.removeEventListener('abort', this.#abort)
    this.#controller.abort()
  }

  #guard(response: Response): Response {
    if (response.ok && response.headers.get('content-type')?.startsWith('text/html')) this.#break('web_page')
    if (!response.body) return response
    const reader = response.body.getReader()
    const guarded = {
      read: () => this.#read(reader, response.ok),
      cancel: (reason: unknown) => reader.cancel(reason),
      releaseLock: () => reader.releaseLock(),
    }
    const body = { getReader: () => guarded, cancel: guarded.cancel }
    // The package asks a body for nothing but its reader, and a second web stream around it would cost every chunk again.
    return Object.defineProperty(response, 'body', { value: body })
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>, isStream: boolean) {
    if (this.#hasBytes) this.#waitEndsAt = performance.now() + this.#limits.idleMs
    const result = await reader.read()
    if (!result.done) this.#take(result.value, isStream)
    return result
  }

  #take(chunk: Uint8Array, isStream: boolean): void {
    this.#waitEndsAt = undefined
    if (!this.#hasBytes) {
      this.#hasBytes = true
      this.#rearm()
    }
    const breach = isStream ? this.#meter.add(chunk) : this.#meter.addPage(chunk)
    if (!breach) return
    this.#break(breach)
    throw new Error(`the answer is not acceptable: ${breach}`)
  }

  #rearm(): void {
    clearTimeout(this.#timer)
    this.#timer = this.#arm(performance.now())
  }

  #arm(now: number): NodeJS.Timeout {
    this.#wakeAt = Math.min(this.#turnEndsAt, this.#waitEndsAt ?? now + this.#limits.idleMs)
    return setTimeout(this.#check, Math.max(1, Math.ceil(this.#wakeAt - now)))
  }

  readonly #check = () => {
    const now = performance.now()
    const slip = now - this.#wakeAt
    if (slip > OWN_PAUSE_MS) {
      this.#turnEndsAt += slip
      if (this.#waitEndsAt !== undefined) this.#waitEndsAt += slip
    }
    if (now >= this.#turnEndsAt) this.#break('turn')
    else if (this.#waitEndsAt !== undefined && now >= this.#waitEndsAt)
      this.#break(this.#hasBytes ? 'idle' : 'first_byte')
    else this.#timer = this.#arm(now)
  }

  readonly #abort = () => this.#controller.abort(this.#caller.reason)

  #break(breach: Breach): void {
    this.breach ??= breach
    this.#controller.abort()
  }
}
