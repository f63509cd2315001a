import { setTimeout as sleep } from 'node:timers/promises'
import { ensureMongod } from '../../../scripts/local-services/mongo-server.ts'
import { allOf, type Guarantee, none, slowest } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { startMongoInMemory } from '../../support/mongo-in-memory.ts'
import { noViolations } from '../checker.ts'
import { now } from '../history.ts'
import { describeEnd, endsOf, tally } from '../load.ts'
import { gatewayFor } from '../sessions.ts'
import type { Ended, StreamClient } from '../stream-client.ts'
import { type Member, World } from '../world.ts'
import { openRun, openRuns } from './ledger/crowd.ts'
import { type CustomerEntry, readLedgers, toHistory } from './ledger/ledgers.ts'

type Size = { gateways: number; workers: number; rounds: number; runs: number; frozenMs: number }

const SHORT: Size = { gateways: 1, workers: 2, rounds: 1, runs: 30, frozenMs: 6_000 }
const FULL: Size = { gateways: 2, workers: 3, rounds: 8, runs: 200, frozenMs: 10_000 }

const CUSTOMERS = 12
/** Time from the start of the runs to the freeze. */
const UNTIL_FREEZE_MS = 1_000
/** The continued worker cannot reach Redis at first: only its own clock can tell it that its lease has expired. */
const ISOLATED_MS = 1_500
const OUTLAST_MS = 1_000
/** Limit from the freeze to `worker_lost`. */
const LOST_WITHIN_MS = 5_000
/** On a busy machine the gateways notice it later. The worker stays frozen until then. */
const NOTICED_WITHIN_MS = 60_000
const END_WITHIN_MS = 60_000

/** Freezes a worker while it records customers' runs, until other workers have taken over, and continues it. */
export const ledgerFence: Scenario = {
  id: 'P2',
  promise: 'a frozen worker that continues after its eviction writes nothing into a ledger',
  isFullOnly: true, // `contract/ledger.ts` has the same of a process that is paused within its check.
  run,
}

async function run({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await ensureMongod(say)
  await using set = await startMongoInMemory()
  await using world = await World.open({
    random,
    gateways: size.gateways,
    workers: size.workers,
    hasProxies: true,
    env: { MONGODB_URL: set.url },
  })
  const rounds: Round[] = []
  for (let n = 1; n <= size.rounds; n++) {
    const round = await freezeOne(world, { size, random: random.fork(`round ${n}`), name: `fence-${n}` })
    rounds.push(round)
    say(
      `${round.victim} frozen: its streams: ${tally(round.lost)}; other workers': ${tally(round.others)}; ${round.ledgers}`,
    )
  }
  return guaranteesOf(rounds, world)
}

type Plan = { size: Size; random: Random; name: string }
type Round = {
  victim: string
  frozenAt: number
  lost: (Ended | undefined)[]
  others: (Ended | undefined)[]
  later: Ended[]
  /** Description for the progress line. */
  ledgers: string
}

async function freezeOne(world: World, { size, random, name }: Plan): Promise<Round> {
  const { runs, frozenMs } = size
  await world.refreshEpochs()
  const customers = Array.from({ length: CUSTOMERS }, (_, n) => `${name}-${n}`)
  const streams = await openRuns(world, { runs, customers, crowdMs: UNTIL_FREEZE_MS, longMs: frozenMs, random })
  await sleep(UNTIL_FREEZE_MS)
  const victim = busiest(world, streams)
  const isLost = isLiveOn(world, victim)
  const { lost = [], others = [] } = Object.groupBy(streams, (stream) => (isLost(stream) ? 'lost' : 'others'))
  const frozenAt = now()
  await victim.proc.kill('SIGSTOP')
  const lostEnds = await endsOf(lost, NOTICED_WITHIN_MS)
  await sleep(Math.max(0, frozenAt + frozenMs - now()))
  const before = { at: now(), entries: await read(world, customers) }
  await continueIsolated(victim)
  const otherEnds = await endsOf(others, END_WITHIN_MS)
  await sleep(OUTLAST_MS) // Time in which an evicted worker would write.
  const later = await Promise.all(customers.map(async (customer, n) => (await openRun(world, { n, customer })).ended))
  const entries = await read(world, customers)
  world.history.push(...toHistory(entries, before))
  const ledgers = `${before.entries.length} entries before it continued, ${entries.length} in the end`
  return { victim: victim.name, frozenAt, lost: lostEnds, others: otherEnds, later, ledgers }
}

async function continueIsolated({ proc, proxy }: Member): Promise<void> {
  await proxy?.mode({ blackhole: 'both' })
  await proc.kill('SIGCONT')
  await sleep(ISOLATED_MS)
  await proxy?.mode()
}

const read = (world: World, customers: readonly string[]): Promise<CustomerEntry[]> =>
  readLedgers(gatewayFor(world, 0).url, customers)

const isLiveOn = (world: World, member: Member) => (stream: StreamClient) =>
  !stream.hasEnded && world.ownerOf(stream.run) === member

/** The worker with the most runs. */
function busiest(world: World, streams: readonly StreamClient[]): Member {
  const load = (member: Member) => streams.filter(isLiveOn(world, member)).length
  const [most] = world.workers.toSorted((a, b) => load(b) - load(a))
  if (!most) throw new Error('there is no worker')
  return most
}

function guaranteesOf(rounds: readonly Round[], world: World): Guarantee[] {
  const lost = rounds.flatMap((round) => round.lost)
  const reported = rounds.flatMap(({ lost: ends, frozenAt }) => timesOf(ends, frozenAt))
  // Their last events had been sent before the freeze.
  const sent = lost.filter(isDone).length
  const others = rounds.flatMap((round) => [...round.others, ...round.later])
  const found = world.check()
  return [
    allOf('streams of the frozen worker that ended with worker_lost', reported.length, lost.length - sent),
    slowest('from the freeze to worker_lost, longest', reported, LOST_WITHIN_MS),
    allOf('streams of other workers and later ones done', others.filter(isDone).length, others.length),
    none('entries written by the evicted worker', found.filter(({ rule }) => rule === 'extra-effect').length),
    noViolations(found),
  ]
}

const isDone = (ended: Ended | undefined) => ended !== undefined && describeEnd(ended) === 'done'

const timesOf = (ends: readonly (Ended | undefined)[], from: number): number[] =>
  ends.flatMap((ended) => (ended?.terminal?.code === 'worker_lost' ? [ended.terminal.t - from] : []))
