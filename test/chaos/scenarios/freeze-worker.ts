import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Guarantee } from '../../harness/guarantee.ts'
import type { Random } from '../../harness/seed.ts'
import { EFFECTS_ENV, type Effects, startEffects } from '../effects.ts'
import { allOf, none, slowest, violations } from '../figures.ts'
import { now } from '../history.ts'
import { endsOf, openRuns, tally } from '../load.ts'
import { acting, paced } from '../prompts.ts'
import type { Scenario, ScenarioOptions } from '../scenario.ts'
import { gatewayFor } from '../sessions.ts'
import type { Ended, StreamClient } from '../stream-client.ts'
import { type Member, World } from '../world.ts'
import { counted } from './counters.ts'

/** Shorter is no death, and longer always one (T_dead); what lies between may be either. */
const NAP_MS = [500, 2_500] as const
const DEATH_MS = [5_500, 12_000] as const
const LONG_DEATH_MS = [12_000, 30_000] as const
const SHORT_DEATH_MS = [5_500, 6_500] as const

const STREAMS = 120
/** Every third run acts on the world instead of talking. */
const ACTS_EVERY = 3
/** Runs outlast the freeze by this: a ghost would have something to say and to do. */
const OUTLAST_MS = 3_000
const GHOST_MS = 1_500
const MAX_ACTS = 180
const PATIENCE_MS = 30_000
const BACK_WITHIN_MS = 5_000

/** Two workers are frozen at a time: one for so long that it is dead, and comes back as a ghost, and one for less. */
export const freezeWorker: Scenario = {
  id: 'P2',
  promise: 'a frozen worker is the same as a dead one, and its ghost is harmless',
  run: measure,
}

type Round = { dead: Death; napped: Frozen; others: (Ended | undefined)[] }

async function measure({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  await using world = await World.open({ random, env: EFFECTS_ENV })
  await using effects = await startEffects((entry) => world.record(entry))
  const rounds: Round[] = []
  for (const deathMs of isFull ? fullDeaths(random) : [random.between(...SHORT_DEATH_MS)]) {
    const round = await freezeTwo(world, effects, { deathMs, napMs: random.between(...NAP_MS), random })
    rounds.push(round)
    world.endRound()
    const { dead, napped, others } = round
    say(`${dead.name} frozen for ${dead.forMs} ms: its streams: ${tally(dead.ends)}`)
    say(
      `${napped.name} frozen for ${napped.forMs} ms: its streams: ${tally(napped.ends)}; the others': ${tally(others)}`,
    )
  }
  say(`${await counted(world.gateways, 'stale_frames_dropped')} frames of ghosts were dropped by gateways`)
  return judge(rounds, world, effects)
}

const fullDeaths = (random: Random) =>
  Array.from({ length: 16 }, (_, n) => {
    const [least, most] = n % 6 === 5 ? LONG_DEATH_MS : DEATH_MS
    return random.between(least, most)
  })

type Plan = { deathMs: number; napMs: number; random: Random }

async function freezeTwo(world: World, effects: Effects, { deathMs, napMs, random }: Plan): Promise<Round> {
  await world.learnEpochs()
  const streams = await openLoad(world, effects, deathMs + OUTLAST_MS)
  const patienceMs = deathMs + PATIENCE_MS
  const [first, second] = random.shuffle(world.workers)
  if (!first || !second) throw new Error('two workers are needed')
  const [dead, napped] = await Promise.all([
    freezeToDeath(world, { member: first, forMs: deathMs, streams: streamsOf(world, first, streams), patienceMs }),
    freeze({ member: second, forMs: napMs, streams: streamsOf(world, second, streams), patienceMs }),
  ])
  const others = streams.filter(({ run }) => world.ownerOf(run) !== first && world.ownerOf(run) !== second)
  return { dead, napped, others: await endsOf(others, patienceMs) }
}

const streamsOf = (world: World, member: Member, streams: readonly StreamClient[]) =>
  streams.filter(({ run, isOver }) => !isOver && world.ownerOf(run) === member)

async function openLoad(world: World, effects: Effects, forMs: number): Promise<StreamClient[]> {
  const acts = Math.min(MAX_ACTS, Math.ceil(forMs / 150))
  const marks = new Map<number, string>()
  const streams = await openRuns(world, STREAMS, (n) => {
    if (n % ACTS_EVERY > 0) return paced({ count: Math.ceil(forMs / 100), everyMs: 100 })
    const mark = randomUUID() // Another one when it is sent again: a run that was refused late may have acted already.
    marks.set(n, mark)
    return acting({ tool: 'WebFetch', inputs: effects.inputs(mark, acts), everyMs: forMs / acts })
  })
  for (const [n, stream] of streams.entries()) effects.belong(marks.get(n) ?? '', stream)
  return streams
}

type Freezing = { member: Member; forMs: number; streams: readonly StreamClient[]; patienceMs: number }
type Frozen = { name: string; forMs: number; frozenAt: number; thawedAt: number; ends: (Ended | undefined)[] }

async function freeze({ member, forMs, streams, patienceMs }: Freezing): Promise<Frozen> {
  const frozenAt = now()
  await member.proc.kill('SIGSTOP')
  await sleep(forMs)
  await member.proc.kill('SIGCONT')
  const thawedAt = now()
  return { name: member.name, forMs, frozenAt, thawedAt, ends: await endsOf(streams, patienceMs) }
}

/** `followed` are the answers to those who ask for its runs afterwards. */
type Death = Frozen & { backInMs: number; followed: number[] }

async function freezeToDeath(world: World, freezing: Freezing): Promise<Death> {
  const isFrozen = freeze(freezing)
  await sleep(freezing.forMs)
  const backInMs = await untilBack(world, freezing.member)
  const frozen = await isFrozen
  const followed = await Promise.all(
    freezing.streams.slice(0, 10).map(async ({ run }, n) => {
      return (await world.ask(gatewayFor(world, n), { path: `/runs/${run}/events` })).status
    }),
  )
  await sleep(GHOST_MS) // The time for a ghost to act.
  return { ...frozen, backInMs, followed }
}

/** Until the thawed has found out, and is a member again under a new epoch. */
async function untilBack(world: World, member: Member): Promise<number> {
  const since = now()
  while (now() - since < 2 * BACK_WITHIN_MS) {
    if (await world.isMember(member)) return now() - since
    await sleep(50)
  }
  return Number.POSITIVE_INFINITY
}

function judge(rounds: readonly Round[], world: World, effects: Effects): Guarantee[] {
  const lost = rounds.flatMap(({ dead }) => dead.ends)
  const told = rounds.flatMap(({ dead: { ends, frozenAt } }) =>
    ends.flatMap((ended) => (ended?.terminal?.code === 'worker_lost' ? [ended.terminal.t - frozenAt] : [])),
  )
  const others = rounds.flatMap((round) => [...round.others, ...round.napped.ends])
  const followed = rounds.flatMap(({ dead }) => dead.followed)
  const found = world.check()
  const ghosts = found.filter(({ rule }) => rule === 'N3').length
  return [
    allOf('streams of the frozen told worker_lost', told.length, lost.length),
    slowest('from the freeze to worker_lost, longest', told, 5_000),
    allOf('streams of the others, short naps included, done', others.filter(isDone).length, others.length),
    none('tools started by ghosts', ghosts, `of ${effects.count} calls`),
    allOf('runs of ghosts that are 404', followed.filter((status) => status === 404).length, followed.length),
    slowest(
      'until the thawed is a member again, longest',
      rounds.map(({ dead }) => dead.backInMs),
      BACK_WITHIN_MS,
    ),
    violations(found),
  ]
}

const isDone = (ended: Ended | undefined) => ended?.terminal?.event === 'done'
