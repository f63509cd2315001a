import type { Socket } from 'node:net'
import type { Script } from '../source/script.ts'
import { requestText, type Target } from '../target.ts'
import type { Connect } from './connection.ts'
import { ResponseReader } from './response-reader.ts'

const ONCE: Script = { mode: 'once' }
const FIRST_EVENT = Buffer.from('id: 1\n')
const CALL_WITHIN_MS = 5_000

type Pending = { start: number; firstMs: number; resolve(firstMs: number): void; reject(cause: Error): void }

/** Executes short runs one after the other, on a connection that it keeps as long as the server does. */
export class Caller {
  readonly #connect: Connect
  readonly #target: Target
  readonly #request: string
  #socket: Socket | undefined
  #pending: Pending | undefined
  #isBusy = false

  constructor(connect: Connect, target: Target) {
    this.#connect = connect
    this.#target = target
    this.#request = requestText(target, ONCE)
  }

  get isBusy(): boolean {
    return this.#isBusy
  }

  /** Executes one run. Resolves with the time from the request to the first event. */
  async run(): Promise<number> {
    this.#isBusy = true
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const timer = setTimeout(() => reject(new Error('a run did not end')), CALL_WITHIN_MS)
    this.#socket ??= await this.#open()
    this.#pending = { start: performance.now(), firstMs: 0, resolve, reject }
    this.#socket.write(this.#request)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#pending = undefined
      this.#isBusy = false
    }
  }

  close(): void {
    this.#socket?.resetAndDestroy()
    this.#socket = undefined
  }

  async #open(): Promise<Socket> {
    const reader = new ResponseReader({
      body: (bytes, from, to) => this.#body(bytes.subarray(from, to)),
      ended: (isClosing) => {
        if (isClosing) this.close()
        this.#pending?.resolve(this.#pending.firstMs)
      },
    })
    const socket = this.#connect(this.#target.port, reader, (cause) => this.#pending?.reject(cause))
    await new Promise((resolve) => socket.once('connect', resolve).once('error', resolve))
    return socket
  }

  #body(piece: Buffer): void {
    const pending = this.#pending
    if (pending?.firstMs === 0 && piece.includes(FIRST_EVENT)) pending.firstMs = performance.now() - pending.start
  }
}
