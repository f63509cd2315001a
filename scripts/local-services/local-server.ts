import type { Child } from './child.ts'

/** A server process of our own, in a place where it can be killed and started again. */
export class LocalServer {
  readonly #launch: () => Promise<Child>
  #child: Child

  constructor(child: Child, launch: () => Promise<Child>) {
    this.#child = child
    this.#launch = launch
  }

  /** Changes with every restart. */
  get pid(): number {
    return this.#child.pid
  }

  get isRunning(): boolean {
    return this.#child.isRunning
  }

  /** The end of what it wrote, for error messages. */
  get output(): string {
    return this.#child.output
  }

  /** Resolves once the signal is sent; SIGKILL, once the server is dead. */
  kill(signal: NodeJS.Signals): Promise<void> {
    return this.#child.kill(signal)
  }

  /** Starts it again in the same place; one that still runs is killed first. */
  async restart(): Promise<void> {
    await this.#child.kill('SIGKILL')
    this.#child = await this.#launch()
  }

  /** SIGTERM, and SIGKILL when it is not gone in time. */
  protected async end(withinMs: number): Promise<void> {
    await this.#child.stop(withinMs)
  }
}
