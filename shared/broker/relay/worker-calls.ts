import { AppError } from '../../errors.ts'
import { isSilent } from '../placement/session-router.ts'
import type { Workers } from '../placement/workers.ts'
import { type Calling, Calls, packCall } from './calls.ts'
import { RECORD, record, type WireRecord } from './records.ts'

export type WorkerCallsDeps = {
  workers: Workers
  /** Sends to the worker of this epoch. */
  send(epoch: number, each: WireRecord): void
  isAway(): boolean
}

/** `isMovable`: another worker can be asked instead. */
export type Patience = { isMovable?: boolean; deadlineMs?: number }
export type CallArgs = [method: string, args: unknown[], patience?: Patience | undefined]

/** How long a client may wait for its request to be accepted. */
export const ACCEPT_MS = 1_000
const TELL_MS = 10_000

/** What a gateway calls of workers. */
export class WorkerCalls {
  readonly #deps: WorkerCallsDeps
  readonly #calls = new Calls()

  constructor(deps: WorkerCallsDeps) {
    this.#deps = deps
  }

  /** Throws what the worker refuses with, `unavailable` when it does not answer, and that at once while Redis is away. */
  async call(epoch: number, ...[method, args, patience]: CallArgs): Promise<unknown> {
    if (this.#deps.isAway()) throw away()
    const { isMovable = false, deadlineMs = ACCEPT_MS } = patience ?? {}
    return this.#calls.make({ ...this.#calling(epoch, method, args), isMovable, limits: { deadlineMs } })
  }

  /** Calls without waiting for what comes of it; while Redis is away, as long as it may be. */
  tell(epoch: number, method: string, args: unknown[]): void {
    const call = this.#calls.make({ ...this.#calling(epoch, method, args), limits: { deadlineMs: TELL_MS } })
    call.catch(() => {}) // Nobody is there, or it has happened already.
  }

  /** The worker did not answer, for it is no more. */
  hasLeft(epoch: number, cause: unknown): boolean {
    return isSilent(cause) && !this.#deps.workers.isAlive(epoch)
  }

  /** An answer has come. */
  settle(id: number, body: Buffer): void {
    this.#calls.settle(id, body)
  }

  /** Nobody listened to what was sent last. */
  unheard(epoch: number): void {
    this.#calls.unheard(epoch)
  }

  /** The worker is gone: it will not answer. */
  abandon(epoch: number): void {
    this.#calls.abandon(epoch)
  }

  #calling(epoch: number, method: string, args: unknown[]): Calling {
    const body = packCall({ method, args })
    return { epoch, send: (id) => this.#deps.send(epoch, record(RECORD.call, { stream: id, body })) }
  }
}

const away = () =>
  new AppError('unavailable', 'the cluster cannot be reached at the moment; try again', { retryAfterSecs: 2 })
