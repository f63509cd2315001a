import { HashRing } from '../../../shared/cluster/members/hash-ring.ts'
import { lessLoadedOfTwo } from '../../../shared/cluster/members/workers.ts'
import { quantile } from '../statistics.ts'

export type Spread = {
  /** The load of the fullest worker, and of the one of a hundred that is exceeded by one percent, to the mean. */
  max: number
  p99: number
}

/** Sessions on a ring of workers, and what one worker more or less moves: the share of all sessions. */
export type Placement = Spread & { joinMoves: number; leaveMoves: number }

const FIRST_EPOCH = 1_700_000_000

/** Places sessions with the product's ring. */
export function placeSessions(workers: number, sessions: number): Placement {
  const members = Array.from({ length: workers }, (_, n) => FIRST_EPOCH + n)
  const ring = HashRing.of(members)
  const keys = Array.from({ length: sessions }, (_, n) => `tenant-${n % 100} sess_${(n * 2_654_435_761).toString(16)}`)
  const before = keys.map((key) => ring.ownerOf(key) ?? 0)
  const movedBy = (after: HashRing) => keys.filter((key, n) => after.ownerOf(key) !== before[n]).length / sessions
  const middle = members[Math.floor(workers / 2)] ?? FIRST_EPOCH
  return {
    ...spreadOf(members.map((member) => before.reduce((sum, owner) => sum + Number(owner === member), 0))),
    joinMoves: movedBy(HashRing.of([...members, FIRST_EPOCH + workers])),
    leaveMoves: movedBy(HashRing.of(members.filter((member) => member !== middle))),
  }
}

export type Arrivals = { gateways: number; workers: number; runs: number; random: () => number }

/** Every gateway learns the loads of the workers this often; between, it knows only of the runs that it has started itself. */
const ROUNDS = 40
/** In each round this part of the runs ends and begins again elsewhere. */
const TURNOVER = 0.1

/** Places one-shot runs as gateways do that each know the loads of a moment ago. */
export function placeRuns({ gateways, workers, runs, random }: Arrivals): Spread {
  const loads = Array.from({ length: workers }, () => 0)
  const placed: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const views = Array.from({ length: gateways }, () => loads.map((load, at) => ({ load, at })))
    const ending = Math.floor(placed.length * TURNOVER)
    for (let n = 0; n < ending; n++) {
      const [at = 0] = placed.splice(Math.floor(random() * placed.length), 1)
      loads[at] = (loads[at] ?? 0) - 1
    }
    const beginning = Math.min(runs - placed.length, Math.ceil(runs / ROUNDS) + ending)
    for (let n = 0; n < beginning; n++) {
      const worker = lessLoadedOfTwo(views[n % gateways] ?? [], random)
      if (!worker) continue
      worker.load++
      loads[worker.at] = (loads[worker.at] ?? 0) + 1
      placed.push(worker.at)
    }
  }
  return spreadOf(loads)
}

function spreadOf(loads: readonly number[]): Spread {
  const mean = loads.reduce((sum, load) => sum + load, 0) / loads.length
  return { max: Math.max(...loads) / mean, p99: quantile(loads, 0.99) / mean }
}
