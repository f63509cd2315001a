import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { NODE_FLAGS } from '../../node-options.ts'

const START_WITHIN_MS = 20_000
const CALL_WITHIN_MS = 60_000
const STOP_WITHIN_MS = 3_000
const MAX_OUTPUT_CHARS = 2_000

export type Ready = { port: number }

/** The processes of one bench. Each ends when its IPC channel closes, so also when this process dies. */
export class Peers {
  readonly #all = new Set<ChildProcess>()
  readonly #profileDir: string | undefined

  constructor(profileDir: string | undefined) {
    this.#profileDir = profileDir
  }

  /** Starts one of ./programs with this Node. It inherits nothing of this process's environment. */
  async start(program: string, options: object = {}): Promise<Peer> {
    const child = fork(join(import.meta.dirname, 'programs', `${program}.ts`), [JSON.stringify(options)], {
      env: { NODE_COMPILE_CACHE: join(import.meta.dirname, '../../../node_modules/.cache/compile') },
      execArgv: [...(program === 'client' ? [] : NODE_FLAGS), ...this.#profile(program)],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#all.add(child)
    child.once('exit', () => this.#all.delete(child))
    const peer = new Peer(program, child)
    await peer.started()
    return peer
  }

  /** Kills all processes at once; for the exit of this process, where nothing can be awaited. */
  killAll(): void {
    for (const child of this.#all) child.kill('SIGKILL')
  }

  #profile(program: string): string[] {
    if (this.#profileDir === undefined) return []
    return ['--cpu-prof', `--cpu-prof-dir=${this.#profileDir}`, `--cpu-prof-name=${program}-${Date.now()}.cpuprofile`]
  }
}

type Answer = { id: number; value?: unknown; failure?: string }
type Waiting = { resolve(value: unknown): void; reject(cause: Error): void }

/** A process that is called over its IPC channel. Disposing of it ends it. */
export class Peer implements AsyncDisposable {
  readonly #name: string
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #output = ''
  ready: Ready = { port: 0 }

  constructor(name: string, child: ChildProcess) {
    this.#name = name
    this.#child = child
    child.on('message', (message) => this.#settle(message as Answer))
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#output = (this.#output + text).slice(-MAX_OUTPUT_CHARS)
    })
    child.once('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`${name} has ended: ${this.#output.trim()}`))
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  async started(): Promise<void> {
    this.ready = (await this.#await(0, START_WITHIN_MS)) as Ready
  }

  /** Calls a method of the process. Throws when it fails, or when the process ends or does not answer within a minute. */
  call(method: string, args: object = {}): Promise<unknown> {
    const id = ++this.#lastId
    this.#child.send({ id, method, args })
    return this.#await(id, CALL_WITHIN_MS)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_WITHIN_MS)
    const exited = once(this.#child, 'exit')
    this.#child.disconnect()
    await exited
    clearTimeout(timer)
  }

  async #await(id: number, withinMs: number): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#waiting.set(id, { resolve, reject })
    const timer = setTimeout(() => reject(new Error(`${this.#name} did not answer: ${this.#output.trim()}`)), withinMs)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(id)
    }
  }

  #settle({ id, value, failure }: Answer): void {
    const waiting = this.#waiting.get(id)
    if (failure === undefined) waiting?.resolve(value)
    else waiting?.reject(new Error(`${this.#name}: ${failure}`))
  }
}
