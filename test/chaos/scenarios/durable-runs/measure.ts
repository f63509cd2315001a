import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ensureMongod } from '../../../../scripts/local-services/mongo-server.ts'
import { allOf, type Guarantee, noneOf, quantileOf } from '../../../harness/guarantee.ts'
import type { ScenarioOptions } from '../../../harness/scenario.ts'
import { startMongoInMemory } from '../../../support/mongo-in-memory.ts'
import { type RedisGroup, startRedisGroup } from '../../../support/redis-group.ts'
import { now } from '../../history.ts'
import { createSessions } from '../../sessions.ts'
import { type Role, World, type WorldOptions } from '../../world.ts'
import { type Findings, noFindings, Talk } from './talk.ts'

export type Kills = {
  mode: 'sessions' | 'runs'
  /** Clients, each of which talks in a session of its own. */
  sessions: number
  /** Further clients, whose messages are one-shot runs. */
  oneShots: number
  /** Between two pieces of a run's text: a run takes some 24 times as long. */
  sleepMs: number
  workers: number
  /** For how long workers are killed, and how often. */
  forMs: number
  everyMs: number
  /** Kills a gateway and an executor each minute, too. */
  killsOthers: boolean
  /** Redis fails over once, to a replica that has all. */
  failsOver: boolean
}

const PAUSE_MS = 6_000
const MINUTE_MS = 60_000
const TOOLS = { ENABLE_BASH: 'true', TOOL_PERMISSIONS: '{"Bash":"allow"}' }

type Measuring = Omit<ScenarioOptions, 'isFull'> & Pick<WorldOptions, 'onOutput'>

/** Kills processes while clients talk in sessions, and replaces each. */
export async function measureKills(kills: Kills, { random, say, onOutput }: Measuring): Promise<Guarantee[]> {
  await ensureMongod(say)
  await using mongo = await startMongoInMemory()
  await using redis = kills.failsOver ? await openGroup() : undefined
  const env = { MONGODB_URL: mongo.url, DURABILITY: kills.mode, DRAIN_SECS: '0', ...TOOLS }
  const executors = kills.killsOthers ? 1 : 0
  const more = { ...(redis && { redisUrl: redis.group.url }), ...(onOutput && { onOutput }) }
  await using world = await World.open({ random, workers: kills.workers, executors, env, ...more })
  const ids = await createSessions(world, kills.sessions)
  const findings = noFindings()
  let isOver = false
  const clients = [...ids, ...Array.from({ length: kills.oneShots }, () => undefined)]
  const talks = clients.map((id, n) => new Talk(world, { id, n, ...kills }, findings).until(() => isOver))
  await killAll(world, kills, { random, group: redis?.group, say: (what) => say(`${what}: ${stateOf(findings)}`) })
  isOver = true
  await Promise.all(talks)
  return guaranteesOf(kills, findings, { marks: effectsIn(world.dataDir), say })
}

async function openGroup(): Promise<{ group: RedisGroup } & AsyncDisposable> {
  const group = await startRedisGroup()
  return { group, [Symbol.asyncDispose]: () => group.stop() }
}

type Killing = Pick<ScenarioOptions, 'random' | 'say'> & { group: RedisGroup | undefined }

/** Each fault has a clock of its own, so that it falls into any moment of the others. */
async function killAll(world: World, kills: Kills, { random, group, say }: Killing): Promise<void> {
  const { forMs, everyMs, killsOthers } = kills
  const begunAt = now()
  const replace = async (role: Role, among: World['workers']) => {
    await world.kill(random.pick(among))
    await world.start(role)
  }
  const killWorkers = async () => {
    for (let kill = 1; kill === 1 || now() - begunAt < forMs; kill++) {
      await sleep(everyMs - random.between(0, everyMs / 4))
      await replace('worker', world.workers)
      say(`kill ${kill}`)
      world.history.length = 0
    }
  }
  const killOthers = async () => {
    if (!killsOthers) return
    for (let minute = 0; minute * MINUTE_MS < forMs; minute++) {
      await sleep(begunAt + minute * MINUTE_MS + random.between(0, Math.min(MINUTE_MS, forMs) / 2) - now())
      await Promise.all([replace('gateway', world.gateways), replace('executor', world.executors)])
      say('a gateway and an executor were killed')
    }
  }
  const failOver = async () => {
    if (!group) return
    await sleep(forMs / 2)
    await group.synchronized()
    await group.failOver()
    say('Redis has failed over')
  }
  await Promise.all([killWorkers(), killOthers(), failOver()])
}

const stateOf = ({ messages, recovered, cut, unknown }: Findings): string =>
  `${messages} messages, ${recovered} runs recovered, ${cut} runs cut, ${unknown} starts unknown`

type Seen = { marks: readonly string[]; say(line: string): void }

function guaranteesOf({ mode }: Kills, findings: Findings, { marks, say }: Seen): Guarantee[] {
  const repeated = [...Map.groupBy(marks, (mark) => mark)].flatMap(([mark, all]) => (all.length > 1 ? [mark] : []))
  const { messages, pausesMs, recovered, cut, ended, lost, forgotten, changed, broken } = findings
  for (const what of [...ended, ...lost, ...forgotten, ...changed, ...broken, ...repeated].slice(0, 20)) say(what)
  const kept = [
    noneOf('sessions that were lost', lost),
    noneOf('answered messages that their sessions lack', forgotten),
    noneOf('events that were doubled or changed', changed),
    noneOf('streams with a hole, or another text', broken),
    noneOf(`effects that were repeated, of ${marks.length}`, repeated),
  ]
  if (mode === 'sessions') {
    const cutsAre = 'runs that ended otherwise than with done, or were lost with a kept session'
    return [allOf('runs that the deaths of workers cut', cut, 1), noneOf(cutsAre, ended), ...kept]
  }
  return [
    allOf('messages that were answered', messages - ended.length, messages),
    allOf('runs that another worker went on with', recovered, 1),
    noneOf('streams that a death has ended', ended),
    ...kept,
    quantileOf('pause until another worker goes on, p99', pausesMs, { part: 0.99, atMost: PAUSE_MS }),
  ]
}

/** The lines of the files that the tools of sessions have written. The folder of a one-shot run goes with the run. */
function effectsIn(folder: string): string[] {
  const files = globSync('workspaces/*/sess_*/effects.txt', { cwd: folder })
  return files.flatMap((file) => readFileSync(join(folder, file), 'utf8').trim().split('\n'))
}
