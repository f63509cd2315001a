import type { Random } from '../../../../harness/seed.ts'

export type Target = 'gateway' | 'worker' | 'executor' | 'redis' | 'mongo'
export type Kind = 'kill' | 'freeze' | 'partition' | 'latency' | 'reset' | 'clock' | 'step-down'

/** A fault that a seed determines. `pick` chooses among the running processes of its kind. */
export type PlannedFault = {
  waitMs: number
  target: Target
  kind: Kind
  pick: number
  /** How long it lasts. A kill lasts until the process has been started again, which waits as long for Redis and MongoDB. */
  forMs: number
  /** Of a latency, in each direction. */
  delayMs: number
  /** Of a shifted clock. */
  shiftSecs: number
}

const PROCESS: readonly Kind[] = ['kill', 'freeze', 'partition', 'latency', 'reset', 'clock']
/** Each target as often as it has processes, so that every process is hit equally often. */
const TARGETS: readonly (readonly [Target, readonly Kind[]])[] = [
  ['gateway', PROCESS],
  ['gateway', PROCESS],
  ['worker', PROCESS],
  ['worker', PROCESS],
  ['worker', PROCESS],
  ['executor', PROCESS],
  ['executor', PROCESS],
  ['redis', ['kill', 'freeze']],
  ['mongo', ['kill', 'freeze', 'step-down']],
]
const WAIT_MS = [5_000, 15_000] as const
const FOR_MS = [2_000, 10_000] as const
const DELAY_MS = [20, 150] as const
const SHIFTS_SECS = [-3_600, -600, -65, 65, 600, 3_600]

/** The faults of a seed, one after the other, without end. */
export function* planFaults(random: Random, canShift = true): Generator<PlannedFault> {
  for (let n = 1; ; n++) {
    const of = random.fork(`fault ${n}`)
    const [target, kinds] = of.pick(TARGETS)
    yield {
      waitMs: of.between(...WAIT_MS),
      target,
      kind: of.pick(kinds.filter((kind) => canShift || kind !== 'clock')),
      pick: of.next(),
      forMs: of.between(...FOR_MS),
      delayMs: of.between(...DELAY_MS),
      shiftSecs: of.pick(SHIFTS_SECS),
    }
  }
}
