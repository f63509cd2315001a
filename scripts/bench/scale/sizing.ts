import type { PerPart } from './cluster.ts'

/** The measured costs of the processes: CPU in milliseconds, memory in KiB and MiB. */
export type Costs = {
  /** For 1,000 events of a stream. */
  events: PerPart
  /** For a run of a few events. */
  run: PerPart
  session: PerPart
  stream: PerPart
  /** Resident memory of a process that has just started, and CPU of one that does nothing, in milliseconds a second. */
  baseMib: PerPart
  restCpu: PerPart
}

/** A user who is at work sends a message each `everySecs`, and reads an answer of `events` over `answerSecs`. */
export type Habits = { everySecs: number; events: number; answerSecs: number }

export const HABITS: Habits = { everySecs: 60, events: 200, answerSecs: 10 }

/** How much of a core a process may use, so that there is room for bursts and for the work of one that has died. */
const BUSY = 0.5
const MS_PER_SEC = 1_000
const KIB_PER_MIB = 1_024
/** Room for garbage, buffers and what tools do. */
const SPARE_MIB = 128

export type Need = {
  users: number
  streams: number
  runsPerSec: number
  eventsPerSec: number
  gateways: number
  workers: number
  /** Memory of one process. */
  gatewayMib: number
  workerMib: number
  /** Cores that Redis uses; it has one. */
  redisCores: number
  redisMib: number
}

/** The processes that so many users at work need; of gateways and workers one more than the load, so that one may be away. */
export function sizeFor(users: number, costs: Costs, habits: Habits = HABITS): Need {
  const runsPerSec = users / habits.everySecs
  const eventsPerSec = runsPerSec * habits.events
  const streams = runsPerSec * habits.answerSecs
  const coresOf = (part: keyof PerPart) =>
    ((eventsPerSec / 1_000) * (costs.events[part] ?? 0) + runsPerSec * (costs.run[part] ?? 0)) / MS_PER_SEC
  const countOf = (part: 'gateway' | 'worker') => 1 + Math.max(1, Math.ceil(coresOf(part) / BUSY))
  const [gateways, workers] = [countOf('gateway'), countOf('worker')]
  const mibOf = (part: 'gateway' | 'worker', count: number) => {
    const held = (streams * (costs.stream[part] ?? 0) + users * (costs.session[part] ?? 0)) / KIB_PER_MIB
    return (costs.baseMib[part] ?? 0) + held / Math.max(1, count - 1) + SPARE_MIB
  }
  return {
    ...{ users, streams, runsPerSec, eventsPerSec, gateways, workers },
    gatewayMib: mibOf('gateway', gateways),
    workerMib: mibOf('worker', workers),
    redisCores: coresOf('redis'),
    redisMib: (costs.baseMib.redis ?? 0) + (users * (costs.session.redis ?? 0)) / KIB_PER_MIB,
  }
}

/** The most users that this many gateways and workers serve, in the cheapest proportion. */
export function usersOf(processes: number, costs: Costs, habits: Habits = HABITS): number {
  let [low, high] = [0, 1e9]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    const { gateways, workers } = sizeFor(middle, costs, habits)
    if (gateways + workers <= processes) low = middle
    else high = middle
  }
  return low
}
