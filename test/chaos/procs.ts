import { type Child, type Exit, spawnChild } from '../../scripts/local-services/child.ts'
import { type Exited, type Killed, now } from './history.ts'

export type ProcSpec = {
  /** Its name in the history. */
  name: string
  /** Node's own arguments and the script: `['--max-old-space-size=128', 'services/worker/main.ts']`. */
  args: readonly string[]
  /** Its complete environment; nothing is inherited. */
  env: Readonly<Record<string, string>>
  /** Matches a complete line of its output. The captured groups, such as a port, are in `Proc.ready`. */
  ready: RegExp
  readyWithinMs?: number
  /** Called with all output, as it comes. */
  onOutput?: (text: string) => void
}

const READY_WITHIN_MS = 60_000

/** The processes of one scenario. Disposing of it kills them; so does the end of this process, SIGKILL included. */
export class Procs implements AsyncDisposable {
  readonly #procs = new Set<Proc>()
  readonly #record: (entry: Killed | Exited) => void

  /** `record` receives the signals sent and the exits. */
  constructor(record: (entry: Killed | Exited) => void = () => {}) {
    this.#record = record
  }

  /** Starts a program with this Node and waits for its ready line. Throws with its output when the line does not come. */
  async start({ name, args, env, ready, readyWithinMs = READY_WITHIN_MS, onOutput }: ProcSpec): Promise<Proc> {
    const child = await spawnChild({ name, command: process.execPath, args, env, ...(onOutput && { onOutput }) })
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

/** A process whose signals and exit are recorded. Signals are sent only while it runs. */
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

  /** The last 64 Ki characters of its output. */
  get output(): string {
    return this.#child.output
  }

  /** Sends a signal. For SIGKILL it resolves when the exit is recorded. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    if (!this.isRunning) return
    this.#record({ kind: 'killed', t: now(), what: this.name, signal })
    await this.#child.kill(signal)
    if (signal === 'SIGKILL') await this.exited
  }

  /** Sends SIGTERM and resolves with the exit. After `withinMs` it kills the process without recording it, so that the checker reports the exit. */
  async stop(withinMs: number): Promise<Exit> {
    if (this.isRunning) this.#record({ kind: 'killed', t: now(), what: this.name, signal: 'SIGTERM' })
    await this.#child.stop(withinMs)
    return this.exited
  }
}
