import { type Child, type Exit, spawnChild } from '../../scripts/local-services/child.ts'
import { type Exited, type Killed, now } from './history.ts'

export type ProcSpec = {
  /** What the history calls it. */
  name: string
  /** Node's own arguments and the script: `['--max-old-space-size=128', 'services/worker/main.ts']`. */
  args: readonly string[]
  /** Its whole environment. */
  env: Readonly<Record<string, string>>
  /** A whole line of its output; what it captures, such as a port, is in `ready`. */
  ready: RegExp
  readyWithinMs?: number
}

const READY_WITHIN_MS = 15_000

/** The processes of one scenario. None outlives it, however it ends: dispose of it in the end, and a SIGKILL of this process kills all. */
export class Procs implements AsyncDisposable {
  readonly #procs = new Set<Proc>()
  readonly #record: (entry: Killed | Exited) => void

  /** Kills and deaths are told to `record`. */
  constructor(record: (entry: Killed | Exited) => void = () => {}) {
    this.#record = record
  }

  /** Starts a program with this Node and waits for its ready line. Throws with its output when that does not come. */
  async start({ name, args, env, ready, readyWithinMs = READY_WITHIN_MS }: ProcSpec): Promise<Proc> {
    const child = await spawnChild({ name, command: process.execPath, args, env })
    try {
      const proc = new Proc(child, await child.line(ready, readyWithinMs), this.#record)
      this.#procs.add(proc)
      return proc
    } catch (cause) {
      await child.kill('SIGKILL')
      throw cause
    }
  }

  get running(): Proc[] {
    return [...this.#procs].filter(({ isRunning }) => isRunning)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.running.map((proc) => proc.kill('SIGKILL')))
  }
}

/** A process that answers for itself: signals go to its pid, and only while it lives. */
export class Proc {
  readonly name: string
  readonly pid: number
  readonly ready: RegExpExecArray
  readonly exited: Promise<Exit>
  readonly #child: Child
  readonly #record: (entry: Killed | Exited) => void

  constructor(child: Child, ready: RegExpExecArray, record: (entry: Killed | Exited) => void) {
    this.name = child.name
    this.pid = child.pid
    this.ready = ready
    this.#child = child
    this.#record = record
    this.exited = child.exited.then((exit) => {
      record({ kind: 'exited', t: now(), what: child.name, ...exit })
      return exit
    })
  }

  get isRunning(): boolean {
    return this.#child.isRunning
  }

  /** The last 64 Ki characters that it wrote. */
  get output(): string {
    return this.#child.output
  }

  /** Resolves once the signal is sent; SIGKILL, once the process is dead and its death recorded. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    if (!this.isRunning) return
    this.#record({ kind: 'killed', t: now(), what: this.name, signal })
    await this.#child.kill(signal)
    if (signal === 'SIGKILL') await this.exited
  }

  /** SIGTERM, and how it ended; one that has not ended in time is killed, and the record shows that nobody had meant to. */
  async stop(withinMs: number): Promise<Exit> {
    if (this.isRunning) this.#record({ kind: 'killed', t: now(), what: this.name, signal: 'SIGTERM' })
    await this.#child.stop(withinMs)
    return this.exited
  }
}
