import { setTimeout as sleep } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import type { MongoSet } from '../../../../../scripts/local-services/mongo.ts'
import type { Random } from '../../../../harness/seed.ts'
import { now } from '../../../history.ts'
import type { Member, World } from '../../../world.ts'
import type { Clocks } from './clock.ts'
import { type Kind, type PlannedFault, planFaults, type Target } from './plan.ts'
import { type Window, Windows } from './windows.ts'

export type NemesisDeps = { world: World; mongo: MongoSet; clocks: Clocks; random: Random; say: (line: string) => void }

type Injection = { kind: Kind; until: Promise<void> }

/** Injects the faults of a seed, each on a process that has no fault at the time. */
export class Nemesis {
  readonly windows = new Windows()
  readonly #deps: NemesisDeps
  readonly #faults: Generator<PlannedFault>
  readonly #busy = new Set<string>()
  readonly #startedAt = now()
  #injected = 0

  constructor(deps: NemesisDeps) {
    this.#deps = deps
    this.#faults = planFaults(deps.random, deps.clocks.canShift)
  }

  /** A time as seconds since the beginning, as in the lines about faults. */
  timeOf(t: number): string {
    return `${((t - this.#startedAt) / 1_000).toFixed(1)} s`
  }

  /** Resolves when the time is over and all faults have ended. Rejects when one cannot be injected or ended. */
  async run(forMs: number): Promise<void> {
    const deadline = now() + forMs
    const running: Promise<void>[] = []
    for (;;) {
      const fault = this.#faults.next().value as PlannedFault
      if (now() + fault.waitMs > deadline) break
      await sleep(fault.waitMs)
      running.push(this.#inject(fault))
    }
    await Promise.all(running)
  }

  async #inject(fault: PlannedFault): Promise<void> {
    const { target } = fault
    const member = target === 'redis' || target === 'mongo' ? undefined : this.#memberFor(target, fault)
    const name = member?.name ?? target
    if ((!member && target !== 'redis' && target !== 'mongo') || this.#busy.has(name)) return
    this.#busy.add(name)
    const from = now()
    const window: Window = { target, name, kind: fault.kind, from, until: Number.POSITIVE_INFINITY }
    this.windows.all.push(window)
    const { kind, until } = member ? this.#onMember(member, fault) : this.#onServer(fault)
    window.kind = kind
    this.#say(window, fault)
    await until
    window.until = now()
    this.#busy.delete(name)
  }

  /** A process without a fault; the last gateway is not chosen while another one starts. */
  #memberFor(target: Target, { pick }: PlannedFault): Member | undefined {
    const { gateways, workers, executors } = this.#deps.world
    const all = target === 'gateway' ? gateways : target === 'worker' ? workers : executors
    if (all.length < 2) return undefined
    const free = all.filter(({ name }) => !this.#busy.has(name))
    return free[Math.floor(pick * free.length)]
  }

  #onMember(member: Member, { kind, forMs, delayMs, shiftSecs }: PlannedFault): Injection {
    const { world, clocks } = this.#deps
    const { proc, proxy, role, name } = member
    const during = async (begin: () => unknown, end: () => unknown) => {
      await begin()
      await sleep(forMs)
      await end()
    }
    const restart = async () => {
      await world.kill(member)
      await world.start(role)
    }
    const reset = async () => void proxy?.reset('all', 4_096)
    const faults: Partial<Record<Kind, () => Promise<void>>> = {
      kill: restart,
      freeze: () =>
        during(
          () => proc.kill('SIGSTOP'),
          () => proc.kill('SIGCONT'),
        ),
      partition: () =>
        during(
          () => proxy?.mode({ blackhole: 'both' }),
          () => proxy?.mode(),
        ),
      latency: () =>
        during(
          () => proxy?.mode({ latencyMs: delayMs, jitterMs: delayMs / 2 }),
          () => proxy?.mode(),
        ),
      clock: () =>
        during(
          () => clocks.shift(name, shiftSecs),
          () => clocks.shift(name, 0),
        ),
      reset,
    }
    return { kind, until: faults[kind]?.() ?? Promise.resolve() }
  }

  #onServer({ target, kind, forMs }: PlannedFault): Injection {
    return { kind, until: target === 'redis' ? this.#onRedis(kind, forMs) : this.#onMongo(kind, forMs) }
  }

  async #onRedis(kind: Kind, forMs: number): Promise<void> {
    const { world } = this.#deps
    if (kind === 'kill') await world.killRedis()
    else await world.redis.kill('SIGSTOP')
    await sleep(forMs)
    if (kind === 'kill') await world.redis.restart()
    else await world.redis.kill('SIGCONT')
  }

  /** Ends when all members have joined again, behind a primary. */
  async #onMongo(kind: Kind, forMs: number): Promise<void> {
    const { mongo } = this.#deps
    const primary = await mongo.primary()
    if (kind === 'step-down') await stepDown(primary.host)
    else await primary.kill(kind === 'kill' ? 'SIGKILL' : 'SIGSTOP')
    await sleep(forMs)
    if (kind === 'kill') await primary.restart()
    if (kind === 'freeze') await primary.kill('SIGCONT')
    await mongo.settled()
  }

  #say({ name, kind, from }: Window, { forMs, delayMs, shiftSecs }: PlannedFault): void {
    const detail = { latency: `, ${delayMs} ms each way`, clock: ` by ${shiftSecs} s` }[kind as string] ?? ''
    const lasts = kind === 'reset' || (kind === 'kill' && name.includes(' ')) ? '' : ` for ${forMs} ms`
    this.#deps.say(`${this.timeOf(from)}, fault ${++this.#injected}: ${kind} ${name}${lasts}${detail}`)
  }
}

/** The primary closes connections when it steps down, which is no failure. */
async function stepDown(host: string): Promise<void> {
  const client = new MongoClient(`mongodb://${host}/?directConnection=true`, { serverSelectionTimeoutMS: 2_000 })
  try {
    await client.db('admin').command({ replSetStepDown: 10, secondaryCatchUpPeriodSecs: 5 })
  } finally {
    await client.close()
  }
}
