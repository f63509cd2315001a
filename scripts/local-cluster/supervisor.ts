import { setTimeout as sleep } from 'node:timers/promises'
import type { Child, Exit } from '../local-services/child.ts'

/** A process to run: how to start it and how to see that it is ready. */
export type Program<Member> = {
  name: string
  spawn(): Promise<Child>
  /** Resolves with the member's description when it is ready. Rejects when it ends before, or is not ready in time. */
  ready(child: Child): Promise<Member>
}

export type StagedProgram<Member> = Program<Member> & { stage?: 1 | 2 }

export type SupervisorOptions<Member> = {
  say: (line: string) => void
  restarts: boolean
  /** Called when a member became ready or ended. The members are in the order of the programs. */
  onChange: (members: readonly Member[]) => Promise<void>
  /** Called when a member ended, except by `stop`. */
  onEnded: (member: Member) => Promise<void>
  /** Called when a process refused its configuration, so that restarting it is useless. */
  onRefused: (failure: StartFailure) => void
  delays?: Delays
}

/**
 * The delay between an exit and the next start. It doubles with each exit, and is `firstMs` again after a process ran for
 * `steadyMs`.
 */
export type Delays = { firstMs: number; maxMs: number; steadyMs: number }

const DELAYS: Delays = { firstMs: 500, maxMs: 10_000, steadyMs: 60_000 }
/** The exit code of a process whose configuration is wrong. */
export const EXIT_CONFIG = 78

/** A process failed to start. The message is the output of the process, the exit code is the one to exit with (D3.3). */
export class StartFailure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Keeps programs running. A process that exits is started again, after a delay that grows while it keeps exiting. */
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

  /** The ready members, in the order of the programs. */
  get members(): Member[] {
    return this.#order.flatMap((name) => this.#members.get(name) ?? [])
  }

  /**
   * Resolves when all are ready. Those of the first stage are ready before those of the second start. Throws `StartFailure` for the
   * first that fails; the caller then stops the others with `stop`.
   */
  async start(programs: readonly StagedProgram<Member>[]): Promise<void> {
    this.#order.push(...programs.map(({ name }) => name))
    for (const stage of [1, 2]) {
      const staged = programs.filter((program) => (program.stage ?? 1) === stage)
      await Promise.all(staged.map((program) => this.#startFirst(program)))
    }
  }

  /** Sends SIGTERM to all processes, and SIGKILL to those that are still running after `withinMs`. */
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
    let [child, startedAt, delayMs] = [first, performance.now(), firstMs]
    for (;;) {
      const exit = await child.exited
      this.#children.delete(child)
      await this.#removeMember(program.name)
      if (this.#stopping.signal.aborted || !this.#mayRestart(program, child, exit)) return
      if (performance.now() - startedAt >= steadyMs) delayMs = firstMs
      this.#options.say(`${program.name} restarts in ${delayMs / 1000} s.`)
      await sleep(delayMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
      if (this.#stopping.signal.aborted) return
      delayMs = Math.min(2 * delayMs, maxMs)
      startedAt = performance.now()
      child = await this.#restart(program)
    }
  }

  #mayRestart({ name }: Program<Member>, child: Child, exit: Exit): boolean {
    const { say, restarts, onRefused } = this.#options
    const isRefused = exit.code === EXIT_CONFIG
    if (isRefused) onRefused(failureOf(child, exit))
    else say(`${name} exited (${exit.signal ?? exit.code}): ${lastLine(child)}`)
    return restarts && !isRefused
  }

  /** A process that does not become ready is killed, which then counts as an exit. */
  async #restart(program: Program<Member>): Promise<Child> {
    const child = await this.#spawn(program)
    try {
      this.#members.set(program.name, await program.ready(child))
      this.#options.say(`${program.name} is ready again (pid ${child.pid}).`)
      await this.#notifyChange()
    } catch {
      await child.kill('SIGKILL')
    }
    return child
  }

  async #spawn(program: Program<Member>): Promise<Child> {
    const child = await program.spawn()
    this.#children.add(child)
    if (this.#stopping.signal.aborted) await child.kill('SIGKILL') // `stop` ran while the process was being spawned.
    return child
  }

  async #removeMember(name: string): Promise<void> {
    const member = this.#members.get(name)
    if (!member) return
    this.#members.delete(name)
    if (!this.#stopping.signal.aborted) await this.#options.onEnded(member)
    await this.#notifyChange()
  }

  async #notifyChange(): Promise<void> {
    if (!this.#stopping.signal.aborted) await this.#options.onChange(this.members)
  }
}

/** Converts any thrown value. The exit code is 1 unless it is a `StartFailure` already. */
export function toFailure(cause: unknown): StartFailure {
  if (cause instanceof StartFailure) return cause
  return new StartFailure(cause instanceof Error ? cause.message : String(cause), 1)
}

function failureOf(child: Child, { code }: Exit, cause?: unknown): StartFailure {
  if (code === EXIT_CONFIG) return new StartFailure(child.output.trim(), code)
  return cause === undefined ? new StartFailure(`${child.name} exited (${code})`, 1) : toFailure(cause)
}

const lastLine = ({ output }: Child): string => output.trimEnd().split('\n').at(-1) || 'no output'
