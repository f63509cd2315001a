import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { COMPILE_CACHE } from '../../scripts/node-options.ts'

type User = { uid?: number; gid?: number }

/** A process of the product or of a script: its output line by line, and its exit code. */
export class Child {
  readonly process: ChildProcess
  readonly lines: string[] = []
  readonly exited: Promise<number | null>
  readonly #waiting: { pattern: RegExp; resolve: (line: string) => void; reject: (error: Error) => void }[] = []

  /** `user` is another user to run as, for which this process must be root's. */
  constructor(command: string, args: string[], env: Record<string, string>, user: User = {}) {
    this.process = spawn(command, args, {
      env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
      ...user,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.exited = once(this.process, 'close').then(([code]) => {
      for (const { pattern, reject } of this.#waiting)
        reject(new Error(`ended (${code}) without ${pattern}: ${this.lines.join('\n')}`))
      return code as number | null
    })
    for (const stream of [this.process.stdout, this.process.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', (line) => this.#add(line))
    }
  }

  /** Resolves with the first line that matches, whether it has been written already or not. */
  line(pattern: RegExp): Promise<string> {
    const known = this.lines.find((line) => pattern.test(line))
    if (known !== undefined) return Promise.resolve(known)
    return new Promise((resolve, reject) => this.#waiting.push({ pattern, resolve, reject }))
  }

  /** Sends the signal and resolves with the exit code. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.process.kill(signal)
    return this.exited
  }

  #add(line: string): void {
    this.lines.push(line)
    for (const waiter of this.#waiting.splice(0)) {
      if (waiter.pattern.test(line)) waiter.resolve(line)
      else this.#waiting.push(waiter)
    }
  }
}
