import { setTimeout as sleep } from 'node:timers/promises'
import type { Guarantee } from '../../harness/guarantee.ts'
import type { Random } from '../../harness/seed.ts'
import { allOf, quantileOf, slowest, violations } from '../figures.ts'
import { now } from '../history.ts'
import { endsOf, openRuns, readAgain, tally } from '../load.ts'
import { paced } from '../prompts.ts'
import type { Scenario, ScenarioOptions } from '../scenario.ts'
import { createSessions, gatewayFor } from '../sessions.ts'
import type { Ended, StreamClient } from '../stream-client.ts'
import { World } from '../world.ts'

type Size = { rounds: number; streams: number; sessions: number }

const SHORT: Size = { rounds: 2, streams: 120, sessions: 16 }
const FULL: Size = { rounds: 40, streams: 200, sessions: 40 }

/** A run outlasts the death of another's worker: 6.5 s, in frames of some 200 bytes. */
const PROMPT = paced({ count: 65, everyMs: 100 })
const PATIENCE_MS = 20_000
const READ_AGAIN = 10

/** A worker dies under live streams, again and again; each time another takes its place. */
export const killWorker: Scenario = {
  id: 'P1',
  promise: 'a dead worker never leaves a silent stream, and the streams of the others lose nothing',
  run: measure,
}

async function measure({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await using world = await World.open({ random })
  const rounds: Round[] = []
  for (let n = 1; n <= size.rounds; n++) {
    const round = await killUnderLoad(world, size, random.fork(`round ${n}`))
    rounds.push(round)
    world.endRound()
    say(`round ${n}: ${round.victim}'s streams: ${tally(round.lost)}; the others': ${tally(round.others)}`)
  }
  return judge(rounds, world, isFull)
}

type Round = {
  victim: string
  killedAt: number
  lost: (Ended | undefined)[]
  others: (Ended | undefined)[]
  /** Of the dead worker's sessions: found to be gone, and made anew at once. */
  sessions: { lost: number; gone: number; madeAnew: number }
}

async function killUnderLoad(world: World, { streams, sessions }: Size, random: Random): Promise<Round> {
  const opened = await openRuns(world, streams, () => PROMPT)
  const ids = await createSessions(world, sessions)
  await sleep(random.between(0, 500))
  // Newcomers get no runs for a while after three deaths in a minute: who dies is one of those that have some.
  const victim = random.pick(world.workers.filter((worker) => opened.some(({ run }) => world.ownerOf(run) === worker)))
  const isLost = ({ run, isOver }: StreamClient) => !isOver && world.ownerOf(run) === victim
  const { lost = [], others = [] } = Object.groupBy(opened, (stream) => (isLost(stream) ? 'lost' : 'others'))
  const killedAt = now()
  await world.kill(victim)
  const replaced = world.start('worker')
  const lostEnds = await endsOf(lost, PATIENCE_MS)
  const found = await lookFor(world, ids)
  const otherEnds = await endsOf(others, PATIENCE_MS)
  await readAgain(world, random.shuffle(others).slice(0, READ_AGAIN))
  await replaced
  return { victim: victim.name, killedAt, lost: lostEnds, others: otherEnds, sessions: found }
}

/** Of each session there is one, or none and then it can be made. */
async function lookFor(world: World, ids: readonly string[]): Promise<Round['sessions']> {
  const found = await Promise.all(
    ids.map(async (id, n) => {
      const before = await world.ask(gatewayFor(world, n), { path: `/sessions/${id}` })
      const again = await world.ask(gatewayFor(world, n + 1), { path: '/sessions', body: { session_id: id } })
      return { before: before.status, again: again.status }
    }),
  )
  const lost = found.filter(({ before }) => before !== 200)
  return {
    lost: lost.length,
    gone: lost.filter(({ before }) => before === 404).length,
    madeAnew: lost.filter(({ again }) => again === 201).length,
  }
}

function judge(rounds: readonly Round[], world: World, isFull: boolean): Guarantee[] {
  const lost = rounds.flatMap((round) => round.lost)
  const others = rounds.flatMap((round) => round.others)
  const told = rounds.flatMap(({ killedAt, lost: ends }) => timesOf(ends, killedAt))
  const sessions = (what: keyof Round['sessions']) => rounds.reduce((sum, round) => sum + round.sessions[what], 0)
  const done = others.filter((ended) => ended?.terminal?.event === 'done')
  return [
    allOf('streams of the dead told worker_lost', told.length, lost.length),
    // The streams of one death end together: a median wants many deaths.
    ...(isFull ? [quantileOf('from the kill to worker_lost, p50', told, { part: 0.5, atMost: 4200 })] : []),
    slowest('from the kill to worker_lost, longest', told, 5000),
    allOf('streams of the others done', done.length, others.length),
    allOf('sessions of the dead 404', sessions('gone'), sessions('lost')),
    allOf('and made anew at once', sessions('madeAnew'), sessions('lost')),
    violations(world.check()),
  ]
}

const timesOf = (ends: readonly (Ended | undefined)[], killedAt: number): number[] =>
  ends.flatMap((ended) => (ended?.terminal?.code === 'worker_lost' ? [ended.terminal.t - killedAt] : []))
