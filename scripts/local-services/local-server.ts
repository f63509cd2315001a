import type { Child } from './child.ts'

/** A private server process that can be killed and restarted with the same port and folder. */
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

  /** The end of its output, for error messages. */
  get output(): string {
    return this.#child.output
  }

  /** Sends a signal. For SIGKILL it resolves when the server has exited. */
  kill(signal: NodeJS.Signals): Promise<void> {
    return this.#child.kill(signal)
  }

  /** Lets this process end while the server runs, which then ends, too. */
  unref(): void {
    this.#child.unref()
  }

  /** Starts the server again with the same port and folder. Kills it first when it is running. */
  async restart(): Promise<void> {
    await this.#child.kill('SIGKILL')
    this.#child = await this.#launch()
  }

  /** Sends SIGTERM, and SIGKILL after `withinMs`. */
  protected async end(withinMs: number): Promise<void> {
    await this.#child.stop(withinMs)
  }
}
