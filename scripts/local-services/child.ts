import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Tail } from './tail.ts'
import { endWithParent } from './watchdog.ts'

export type ChildSpec = {
  /** Its name in error messages. */
  name: string
  command: string
  args: readonly string[]
  /** Its complete environment. Without it, the child inherits this process's. */
  env?: Readonly<Record<string, string>>
  /** Its standard input. By default it is empty. */
  input?: string
  /** A folder that belongs to the child only. It is removed when this process dies before the child. */
  ownDir?: string
  /** Called with all output, as it comes. */
  onOutput?: (text: string) => void
}

export type Exit = { code: number | null; signal: NodeJS.Signals | null }

/** Starts a process that ends with this one, also when this one is killed. It is detached, so that a terminal's Ctrl-C reaches only this process. */
export async function spawnChild({ name, command, args, env, input, ownDir, onOutput }: ChildSpec): Promise<Child> {
  const started = spawn(command, args, {
    env,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    detached: true,
  })
  started.stdin?.on('error', () => {}).end(input) // A process that ended before it has read this shows that by its exit.
  if (started.pid !== undefined) endWithParent(started, ownDir)
  const child = new Child(name, started, onOutput)
  await once(started, 'spawn')
  return child
}

/** A child process: its output, its exit, and signals to it. */
export class Child {
  readonly name: string
  /** Resolves when the process has exited. */
  readonly exited: Promise<Exit>
  readonly #process: ChildProcess
  readonly #tail = new Tail()
  readonly #watchers = new Set<() => void>()
  #isClosed = false

  constructor(name: string, process: ChildProcess, onOutput: (text: string) => void = () => {}) {
    this.name = name
    this.#process = process
    this.exited = new Promise((resolve) => process.once('exit', (code, signal) => resolve({ code, signal })))
    process.on('error', () => {}) // A signal could not be sent. A caller that waits for its effect has a deadline.
    process.once('close', () => {
      this.#isClosed = true
      this.#wake()
    })
    for (const stream of [process.stdout, process.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#tail.add(text)
        onOutput(text)
        this.#wake()
      })
  }

  get pid(): number {
    return this.#process.pid ?? -1
  }

  get isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null
  }

  /** The last 64 Ki characters of stdout and stderr together. */
  get output(): string {
    return this.#tail.text
  }

  /** Resolves with the first complete line, past or future, that matches. Throws with the output when the process ends or the time is over. */
  async line(pattern: RegExp, withinMs: number): Promise<RegExpExecArray> {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>()
    const fail = (how: string) => reject(this.failure(`${how} a line like ${pattern}`))
    const timer = setTimeout(fail, withinMs, `did not print within ${withinMs} ms`)
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

  /** Sends a signal. For SIGKILL it resolves when the process has exited, for SIGSTOP when it stands. Does nothing when the process has exited. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    if (!this.isRunning) return
    this.#process.kill(signal)
    if (signal === 'SIGKILL') await this.exited
    if (signal === 'SIGSTOP') while (this.isRunning && !this.#stands()) await sleep(1)
  }

  /** The kernel stops the threads one by one: another core may run one for a moment. Only Linux tells. */
  #stands(): boolean {
    const threads = `/proc/${this.#process.pid}/task`
    try {
      return readdirSync(threads).every((id) => /\) T/.test(readFileSync(`${threads}/${id}/stat`, 'utf8')))
    } catch {
      return true
    }
  }

  /** Sends SIGTERM, then SIGCONT for a stopped process, and SIGKILL after `withinMs`. Resolves with the exit. */
  async stop(withinMs: number): Promise<Exit> {
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), withinMs)
    await this.kill('SIGTERM')
    await this.kill('SIGCONT')
    const exit = await this.exited
    clearTimeout(timer)
    return exit
  }

  /** Lets this process end while the child runs, which then ends, too. */
  unref(): void {
    this.#process.unref()
    for (const stream of [this.#process.stdout, this.#process.stderr]) if (stream instanceof Socket) stream.unref()
  }

  /** An error with the output of the process. */
  failure(how: string, cause?: unknown): Error {
    return new Error(`${this.name} ${how}. Its output:\n${this.output.trim() || '(none)'}`, { cause })
  }

  #wake(): void {
    for (const look of this.#watchers) look()
  }
}
