import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { allOf, type Guarantee, none, slowest } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { noViolations } from '../checker.ts'
import { sumCounter } from '../counters.ts'
import { EFFECTS_ENV, type Effects, startEffects } from '../effects.ts'
import { now } from '../history.ts'
import { endsOf, openRuns, tally } from '../load.ts'
import { acting, paced } from '../prompts.ts'
import { gatewayFor } from '../sessions.ts'
import type { Ended, StreamClient } from '../stream-client.ts'
import { timeUntil } from '../time-until.ts'
import { type Member, World } from '../world.ts'

/** A worker is evicted after 4 s of silence. The freezes are clearly shorter or clearly longer. */
const SHORT_FREEZE_MS = [500, 2_500] as const
const LONG_FREEZE_MS = [5_500, 12_000] as const
const VERY_LONG_FREEZE_MS = [12_000, 30_000] as const
const QUICK_LONG_FREEZE_MS = [5_500, 6_500] as const

/** Two are frozen, and the others go on. */
const WORKERS = { short: 3, full: 4 }
const STREAMS = { short: 15, full: 120 }
/** Every third run calls a tool instead of sending text. */
const CALLS_EVERY = 3
/** Runs last longer than the freeze, so that a stale worker would have events to send and tools to call. */
const OUTLAST_MS = 3_000
const STALE_MS = 1_500
const MAX_CALLS = 180
const END_WITHIN_MS = 30_000
const REJOIN_WITHIN_MS = 5_000
/** On a busy machine the others notice later that a worker is frozen. It stays so until then. */
const EVICTED_WITHIN_MS = 60_000

/** Freezes two workers at a time: one for so long that the cluster evicts it, and one for less. */
export const freezeWorker: Scenario = {
  id: 'P2',
  promise: 'a frozen worker is treated as a dead one, and has no effect when it continues',
  run: measure,
}

type Round = { evicted: Evicted; paused: Frozen; others: (Ended | undefined)[] }

async function measure({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const form = isFull ? 'full' : 'short'
  await using world = await World.open({ random, env: EFFECTS_ENV, workers: WORKERS[form] })
  await using effects = await startEffects((entry) => world.record(entry))
  const rounds: Round[] = []
  for (const longMs of isFull ? longFreezes(random) : [random.between(...QUICK_LONG_FREEZE_MS)]) {
    const shortMs = random.between(...SHORT_FREEZE_MS)
    const count = STREAMS[form]
    const round = await freezeTwo(world, effects, { count, longMs, shortMs, random })
    rounds.push(round)
    world.endRound()
    const { evicted, paused, others } = round
    say(`${evicted.name} frozen for ${evicted.forMs} ms: its streams: ${tally(evicted.ends)}`)
    say(
      `${paused.name} frozen for ${paused.forMs} ms: its streams: ${tally(paused.ends)}; other workers': ${tally(others)}`,
    )
  }
  say(`${await sumCounter(world.gateways, 'stale_frames_dropped')} frames of evicted workers were dropped by gateways`)
  return guaranteesOf(rounds, world, effects)
}

const longFreezes = (random: Random) =>
  Array.from({ length: 16 }, (_, n) => {
    const [least, most] = n % 6 === 5 ? VERY_LONG_FREEZE_MS : LONG_FREEZE_MS
    return random.between(least, most)
  })

type Plan = { count: number; longMs: number; shortMs: number; random: Random }

async function freezeTwo(world: World, effects: Effects, { count, longMs, shortMs, random }: Plan): Promise<Round> {
  await world.refreshEpochs()
  const streams = await openLoad(world, effects, { count, forMs: longMs + OUTLAST_MS })
  const withinMs = longMs + END_WITHIN_MS
  const [first, second] = random.shuffle(world.workers)
  if (!first || !second) throw new Error('two workers are needed')
  const [evicted, paused] = await Promise.all([
    freezeUntilEvicted(world, { member: first, forMs: longMs, streams: streamsOf(world, first, streams), withinMs }),
    freeze({ member: second, forMs: shortMs, streams: streamsOf(world, second, streams), withinMs }),
  ])
  const others = streams.filter(({ run }) => world.ownerOf(run) !== first && world.ownerOf(run) !== second)
  return { evicted, paused, others: await endsOf(others, withinMs) }
}

const streamsOf = (world: World, member: Member, streams: readonly StreamClient[]) =>
  streams.filter(({ run, hasEnded }) => !hasEnded && world.ownerOf(run) === member)

type Load = { count: number; forMs: number }

async function openLoad(world: World, effects: Effects, { count, forMs }: Load): Promise<StreamClient[]> {
  const calls = Math.min(MAX_CALLS, Math.ceil(forMs / 150))
  const marks = new Map<number, string>()
  const streams = await openRuns(world, count, (n) => {
    if (n % CALLS_EVERY > 0) return paced({ count: Math.ceil(forMs / 100), everyMs: 100 })
    const mark = randomUUID() // A new one for each attempt: a run that was refused late may have called the tool already.
    marks.set(n, mark)
    return acting({ tool: 'WebFetch', inputs: effects.inputs(mark, calls), everyMs: forMs / calls })
  })
  for (const [n, stream] of streams.entries()) effects.assign(marks.get(n) ?? '', stream)
  return streams
}

type Freezing = {
  member: Member
  forMs: number
  streams: readonly StreamClient[]
  withinMs: number
  /** The freeze lasts until this has resolved. */
  until?: () => Promise<unknown>
  onThawed?: () => void
}
type Frozen = { name: string; forMs: number; frozenAt: number; thawedAt: number; ends: (Ended | undefined)[] }

async function freeze({ member, forMs, streams, withinMs, until, onThawed }: Freezing): Promise<Frozen> {
  const frozenAt = now()
  await member.proc.kill('SIGSTOP')
  await sleep(forMs)
  await until?.()
  await member.proc.kill('SIGCONT')
  const thawedAt = now()
  onThawed?.()
  return { name: member.name, forMs, frozenAt, thawedAt, ends: await endsOf(streams, withinMs) }
}

/** `statuses`: answers to requests for its runs after the eviction. */
type Evicted = Frozen & { rejoinedInMs: number; statuses: number[] }

async function freezeUntilEvicted(world: World, freezing: Freezing): Promise<Evicted> {
  const until = () => timeUntil(async () => !(await world.isMember(freezing.member)), EVICTED_WITHIN_MS)
  const { promise: thawed, resolve: onThawed } = Promise.withResolvers<void>()
  const freezingEnds = freeze({ ...freezing, until, onThawed })
  await thawed
  const rejoinedInMs = await measureRejoin(world, freezing.member)
  const frozen = await freezingEnds
  const statuses = await Promise.all(
    freezing.streams.slice(0, 10).map(async ({ run }, n) => {
      return (await world.ask(gatewayFor(world, n), { path: `/runs/${run}/events` })).status
    }),
  )
  await sleep(STALE_MS) // Time in which a stale worker would call its tools.
  return { ...frozen, rejoinedInMs, statuses }
}

/** Time until the worker is a member again under a new epoch. */
const measureRejoin = (world: World, member: Member): Promise<number> =>
  timeUntil(() => world.isMember(member), EVICTED_WITHIN_MS)

function guaranteesOf(rounds: readonly Round[], world: World, effects: Effects): Guarantee[] {
  const lost = rounds.flatMap(({ evicted }) => evicted.ends)
  const reported = rounds.flatMap(({ evicted: { ends, frozenAt } }) =>
    ends.flatMap((ended) => (ended?.terminal?.code === 'worker_lost' ? [ended.terminal.t - frozenAt] : [])),
  )
  const others = rounds.flatMap((round) => [...round.others, ...round.paused.ends])
  const statuses = rounds.flatMap(({ evicted }) => evicted.statuses)
  const found = world.check()
  const staleCalls = found.filter(({ rule }) => rule === 'extra-effect').length
  return [
    allOf('streams of the evicted worker that ended with worker_lost', reported.length, lost.length),
    slowest('from the freeze to worker_lost, longest', reported, 5_000),
    allOf('streams of other workers, shortly frozen ones included, done', others.filter(isDone).length, others.length),
    none('tools started by the evicted worker', staleCalls, `of ${effects.count} calls`),
    allOf(
      'runs of the evicted worker that are 404',
      statuses.filter((status) => status === 404).length,
      statuses.length,
    ),
    slowest(
      'from its continuation to its membership, longest',
      rounds.map(({ evicted }) => evicted.rejoinedInMs),
      REJOIN_WITHIN_MS,
    ),
    noViolations(found),
  ]
}

const isDone = (ended: Ended | undefined) => ended?.terminal?.event === 'done'
