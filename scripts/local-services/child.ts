import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Tail } from './tail.ts'
import { endWithParent } from './watchdog.ts'

export type ChildSpec = {
  /** What it is called in error messages. */
  name: string
  command: string
  args: readonly string[]
  /** Its whole environment; without it, this process's. */
  env?: Readonly<Record<string, string>>
  /** A folder that is its alone, removed when this process dies before it. */
  ownDir?: string
}

export type Exit = { code: number | null; signal: NodeJS.Signals | null }

/** Starts a process that ends when this one does, however this one ends. A terminal's Ctrl-C reaches this one only. */
export async function spawnChild({ name, command, args, env, ownDir }: ChildSpec): Promise<Child> {
  const started = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  if (started.pid !== undefined) endWithParent(started, ownDir)
  const child = new Child(name, started)
  await once(started, 'spawn')
  return child
}

/** A process that we started: its output, its death, and signals to it, by pid. */
export class Child {
  readonly name: string
  /** Resolves when the process is dead and reaped. */
  readonly exited: Promise<Exit>
  readonly #process: ChildProcess
  readonly #tail = new Tail()
  readonly #watchers = new Set<() => void>()
  #isClosed = false

  constructor(name: string, process: ChildProcess) {
    this.name = name
    this.#process = process
    this.exited = new Promise((resolve) => process.once('exit', (code, signal) => resolve({ code, signal })))
    process.on('error', () => {}) // A signal that could not be sent: whoever waits for its effect has a deadline.
    process.once('close', () => {
      this.#isClosed = true
      this.#wake()
    })
    for (const stream of [process.stdout, process.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#tail.add(text)
        this.#wake()
      })
  }

  get pid(): number {
    return this.#process.pid ?? -1
  }

  get isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null
  }

  /** The end of what it wrote, stdout and stderr together. */
  get output(): string {
    return this.#tail.text
  }

  /** The first whole line, past or to come, that fits. Throws with the output when the process ends or the time is over. */
  async line(pattern: RegExp, withinMs: number): Promise<RegExpExecArray> {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>()
    const fail = (how: string) => reject(this.failure(`${how} a line like ${pattern}`))
    const timer = setTimeout(fail, withinMs, `let ${withinMs} ms go by without`)
    const look = () => {
      const found = this.#tail.match(pattern)
      if (found) resolve(found)
      else if (this.#isClosed) fail('ended without')
    }
    this.#watchers.add(look)
    look()
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#watchers.delete(look)
    }
  }

  /** Resolves once the signal is sent; SIGKILL, once the process is dead. To a dead process it does nothing. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    if (!this.isRunning) return
    this.#process.kill(signal)
    if (signal === 'SIGKILL') await this.exited
  }

  /** SIGTERM, also to a stopped process; SIGKILL when it is not dead in time. */
  async stop(withinMs: number): Promise<Exit> {
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), withinMs)
    await this.kill('SIGTERM')
    await this.kill('SIGCONT')
    const exit = await this.exited
    clearTimeout(timer)
    return exit
  }

  failure(how: string, cause?: unknown): Error {
    return new Error(`${this.name} ${how}. Its output:\n${this.output.trim() || '(none)'}`, { cause })
  }

  #wake(): void {
    for (const look of this.#watchers) look()
  }
}
