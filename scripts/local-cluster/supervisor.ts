import { setTimeout as sleep } from 'node:timers/promises'
import type { Child, Exit } from '../local-services/child.ts'

/** A process that is to run: how it is started, and what tells that it is ready. */
export type Program<Member> = {
  name: string
  spawn(): Promise<Child>
  /** Resolves with what there is to say of it. Rejects when it is not ready in time, or has ended. */
  ready(child: Child): Promise<Member>
}

export type SupervisorOptions<Member> = {
  say: (line: string) => void
  restarts: boolean
  /** Someone has come or gone; in the order of the programs. */
  onChange: (members: readonly Member[]) => Promise<void>
  /** Nothing can go on: a process was refused its configuration. */
  onRefused: (failure: StartFailure) => void
  delays?: Delays
}

/** Between a death and the next start: doubled with each death, and from the start again after a life of `steadyMs`. */
export type Delays = { firstMs: number; maxMs: number; steadyMs: number }

const DELAYS: Delays = { firstMs: 500, maxMs: 10_000, steadyMs: 60_000 }
const EXIT_CONFIG = 78

/** A process that did not start: in its own words, and with the code that a launcher passes on (D3.3). */
export class StartFailure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Keeps programs running: one that dies is started again, at growing intervals while it keeps dying. */
export class Supervisor<Member> {
  readonly #options: SupervisorOptions<Member>
  readonly #delays: Delays
  readonly #order: string[] = []
  readonly #children = new Set<Child>()
  readonly #members = new Map<string, Member>()
  readonly #stopping = new AbortController()

  constructor(options: SupervisorOptions<Member>) {
    this.#options = options
    this.#delays = options.delays ?? DELAYS
  }

  /** Those that are ready, in the order of the programs. */
  get members(): Member[] {
    return this.#order.flatMap((name) => this.#members.get(name) ?? [])
  }

  /** Resolves when all are ready. Throws `StartFailure` for the first that is not; the others are for `stop`. */
  async start(programs: readonly Program<Member>[]): Promise<void> {
    this.#order.push(...programs.map(({ name }) => name))
    await Promise.all(programs.map((program) => this.#startFirst(program)))
  }

  /** SIGTERM to all at once, SIGKILL to who is not gone in time. */
  async stop(withinMs: number): Promise<void> {
    this.#stopping.abort()
    await Promise.all(Array.from(this.#children, (child) => child.stop(withinMs)))
  }

  async #startFirst(program: Program<Member>): Promise<void> {
    const child = await this.#spawn(program)
    try {
      this.#members.set(program.name, await program.ready(child))
    } catch (cause) {
      throw child.isRunning ? toFailure(cause) : failureOf(child, await child.exited, cause)
    }
    this.#keep(program, child).catch((cause: unknown) => this.#options.onRefused(toFailure(cause)))
  }

  async #keep(program: Program<Member>, first: Child): Promise<void> {
    const { firstMs, maxMs, steadyMs } = this.#delays
    let [child, bornAt, delayMs] = [first, performance.now(), firstMs]
    for (;;) {
      const exit = await child.exited
      this.#children.delete(child)
      if (this.#members.delete(program.name)) await this.#changed()
      if (this.#stopping.signal.aborted || !this.#mayRestart(program, child, exit)) return
      if (performance.now() - bornAt >= steadyMs) delayMs = firstMs
      this.#options.say(`${program.name} is started again in ${delayMs / 1000} s.`)
      await sleep(delayMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
      if (this.#stopping.signal.aborted) return
      delayMs = Math.min(2 * delayMs, maxMs)
      bornAt = performance.now()
      child = await this.#startAgain(program)
    }
  }

  #mayRestart({ name }: Program<Member>, child: Child, exit: Exit): boolean {
    const { say, restarts, onRefused } = this.#options
    const isRefused = exit.code === EXIT_CONFIG
    if (isRefused) onRefused(failureOf(child, exit))
    else say(`${name} has died (${exit.signal ?? exit.code}): ${lastLine(child)}`)
    return restarts && !isRefused
  }

  /** One that does not get ready is killed, and counts as dead like any other. */
  async #startAgain(program: Program<Member>): Promise<Child> {
    const child = await this.#spawn(program)
    try {
      this.#members.set(program.name, await program.ready(child))
      this.#options.say(`${program.name} is ready again (pid ${child.pid}).`)
      await this.#changed()
    } catch {
      await child.kill('SIGKILL')
    }
    return child
  }

  async #spawn(program: Program<Member>): Promise<Child> {
    const child = await program.spawn()
    this.#children.add(child)
    if (this.#stopping.signal.aborted) await child.kill('SIGKILL') // `stop` has not seen it.
    return child
  }

  async #changed(): Promise<void> {
    if (!this.#stopping.signal.aborted) await this.#options.onChange(this.members)
  }
}

/** Any failure as one to exit with. */
export function toFailure(cause: unknown): StartFailure {
  if (cause instanceof StartFailure) return cause
  return new StartFailure(cause instanceof Error ? cause.message : String(cause), 1)
}

function failureOf(child: Child, { code }: Exit, cause?: unknown): StartFailure {
  if (code === EXIT_CONFIG) return new StartFailure(child.output.trim(), code)
  return cause === undefined ? new StartFailure(`${child.name} has died (${code})`, 1) : toFailure(cause)
}

const lastLine = ({ output }: Child): string => output.trimEnd().split('\n').at(-1) || 'it said nothing'
