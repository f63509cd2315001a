import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureMongod } from '../../../scripts/local-services/mongo-server.ts'
import { allOf, type Guarantee, noneOf, slowest } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { startMongoInMemory } from '../../support/mongo-in-memory.ts'
import { until } from '../../support/until.ts'
import { now } from '../history.ts'
import { paced } from '../prompts.ts'
import { createSessions } from '../sessions.ts'
import { World } from '../world.ts'
import { backgroundRun, type Ended, FollowedRun, flow, plan } from './deploy/work.ts'
import { EchoModel } from './flows/model.ts'
import { flowSettings, prepareFlow } from './flows/setup.ts'
import { nothingTold, RefusedClient, type Told } from './refusals/client.ts'

/** `each`: how many there are of each kind of work. A text and a call of Bash outlast `DRAIN_SECS`. `talking`: clients that send short messages meanwhile. */
type Size = {
  workers: number
  executors: number
  rounds: number
  each: number
  talking: number
  textSecs: number
  bashSecs: number
  drainSecs: number
}

const SHORT: Size = { workers: 2, executors: 1, rounds: 1, each: 2, talking: 4, textSecs: 6, bashSecs: 6, drainSecs: 3 }
const FULL: Size = {
  workers: 4,
  executors: 2,
  rounds: 20,
  each: 10,
  talking: 20,
  textSecs: 90,
  bashSecs: 100,
  drainSecs: 30,
}

const CLOSE_MS = 10_000
const NOTICED_MS = 250
const PAUSE_MS = 5_000
/** The exit of a process without a run that lives. */
const IDLE_MS = 2_000
/** So long before its end a worker leaves what is in the middle of a turn, as `HASTE_MS` of the product. */
const HASTE_MS = 5_000
const TALK_EVERY_MS = 1_000

/** Stops each process in turn with SIGTERM while all kinds of work go on, and starts its replacement. */
export const deploy: Scenario = {
  id: 'P23',
  promise: 'with DURABILITY=runs a deploy is a pause: it ends no run, flow or plan, and loses no approval',
  run: ({ isFull, ...options }: ScenarioOptions) => measure(isFull ? FULL : SHORT, options),
}

type Exit = { name: string; ms: number; code: number | null }
type Found = {
  works: Ended[]
  asked: FollowedRun[]
  replies: string[]
  exits: Exit[]
  told: Told
  histories: string[]
}

async function measure(size: Size, { random, say }: Omit<ScenarioOptions, 'isFull'>): Promise<Guarantee[]> {
  await ensureMongod(say)
  await using mongo = await startMongoInMemory()
  await using model = await EchoModel.start()
  const tools = { ENABLE_BASH: 'true', TOOL_PERMISSIONS: '{"Bash":"allow"}', DRAIN_SECS: String(size.drainSecs) }
  const env = { ...flowSettings(), MONGODB_URL: mongo.url, DURABILITY: 'runs', ...tools }
  await using world = await World.open({ random, workers: size.workers, executors: size.executors, env })
  await prepareFlow(
    world.gateways.map(({ url }) => url),
    model.url,
  )
  const found: Found = { works: [], asked: [], replies: [], exits: [], told: nothingTold(), histories: [] }
  for (let round = 1; round <= size.rounds; round++) {
    await rollOnce(world, { size, random: random.fork(`round ${round}`), found })
    world.history.length = 0
    say(
      `roll ${round}: ${found.works.length} works, exits ${found.exits.map(({ name, ms }) => `${name} ${(ms / 1000).toFixed(1)} s`).join(', ')}`,
    )
  }
  const idle = await stopIdle(world)
  return guaranteesOf(found, { idle, size, marks: effectsIn(world.dataDir) })
}

async function rollOnce(
  world: World,
  { size, random, found }: { size: Size; random: Random; found: Found },
): Promise<void> {
  const drainMs = size.drainSecs * 1_000
  let keptUntil = 0
  const { asking, works } = await begin(world, { size, random, keptUntil: () => keptUntil })
  await using talk = await Talk.begin(world, { size, random, told: found.told })
  for (const member of [...world.workers, ...world.executors, ...world.gateways]) {
    const withinMs = drainMs + CLOSE_MS
    if (member.role === 'worker') keptUntil = now() + drainMs - Math.min(HASTE_MS, drainMs / 3)
    const [exit] = await Promise.all([
      world.stop(member, { withinMs, noticedAfterMs: NOTICED_MS }),
      world.start(member.role),
    ])
    found.exits.push({ name: member.name, ...exit })
  }
  found.histories.push(...(await talk.wrongInHistories()))
  found.replies.push(...(await Promise.all(asking.map((run) => run.reply()))))
  found.asked.push(...asking)
  found.works.push(...(await Promise.all([...works, ...asking.map(({ ended }) => ended)])))
}

type Beginning = { size: Size; random: Random; keptUntil(): number }

/** Begins all kinds of work, each of them in sessions and by itself. Resolves when all of it is under way. */
async function begin(world: World, { size, random, keptUntil }: Beginning) {
  const { each, textSecs, bashSecs } = size
  const sessions = await createSessions(world, 4 * each)
  const follow = (what: string, prompt: string, session?: string) =>
    new FollowedRun(world, {
      ...{ what, random: random.fork(`${what} ${session}`), session, keptUntil },
      body: { prompt, client_tools: [{ name: 'own_tool' }] },
    })
  const both = (what: string, promptOf: (mark: string) => string) =>
    Array.from({ length: each }, (_, n) => {
      const mark = `${what}_${n}_${Math.floor(random.between(0, 1e9))}`
      return [follow(what, promptOf(mark), sessions.pop()), follow(`one-shot ${what}`, promptOf(`${mark}_alone`))]
    }).flat()
  const text = paced({ count: textSecs * 5, everyMs: 200 })
  const asking = [
    ...both('ask', (mark) => `/say before\n/tool Write {"path":"${mark}.txt","content":"x"}\n/say behind`),
    ...both('own call', (mark) => `/say before\n/tool own_tool {"mark":"${mark}"}\n/say behind`),
  ]
  const running = [
    ...both('text', () => text),
    ...both('bash', (mark) => `/tool Bash {"command":"echo ${mark} >> effects.txt; sleep ${bashSecs}"}\n/say behind`),
  ]
  const count = Array.from({ length: each }, (_, n) => n)
  const unread = count.flatMap((n) => [
    backgroundRun(world, random.fork(`background ${n}`), text),
    plan(world, random.fork(`plan ${n}`), paced({ count: 5, everyMs: 200 })),
    flow(world, random.fork(`flow ${n}`), { token: `t${n}_${Math.floor(random.between(0, 1e9))}`, ms: textSecs * 500 }),
  ])
  await until(() => asking.every(({ asks }) => asks.length > 0), { what: 'all to ask' })
  await until(() => running.every(({ frames }) => frames.length > 3), { what: 'all to run' })
  return { asking, works: [...running.map(({ ended }) => ended), ...unread] }
}

/** Clients that send short messages, and again what was refused. */
class Talk implements AsyncDisposable {
  readonly #clients: readonly RefusedClient[]
  readonly #talking: Promise<void>
  #isOver = false

  private constructor(clients: readonly RefusedClient[]) {
    this.#clients = clients
    this.#talking = Promise.all(clients.map((client) => client.until(() => this.#isOver, TALK_EVERY_MS))).then(() => {})
  }

  static async begin(world: World, { size, random, told }: { size: Size; random: Random; told: Told }): Promise<Talk> {
    const urlOf = () => random.pick(world.gateways).url
    const open = (n: number) => RefusedClient.open({ n, urlOf, random: random.fork(`talk ${n}`), told })
    return new Talk(await Promise.all(Array.from({ length: size.talking }, (_, n) => open(n))))
  }

  /** Ends the talk, and compares. */
  async wrongInHistories(): Promise<string[]> {
    await this[Symbol.asyncDispose]()
    return (await Promise.all(this.#clients.map((client) => client.wrongInHistory()))).flat()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await this.#talking
  }
}

/** The exits of workers that have nothing to do, while another one stays. */
async function stopIdle(world: World): Promise<Exit[]> {
  const exits: Exit[] = []
  for (const member of world.workers.slice(0, -1))
    exits.push({ name: member.name, ...(await world.stop(member, { withinMs: CLOSE_MS, noticedAfterMs: NOTICED_MS })) })
  return exits
}

function guaranteesOf(
  { works, asked, replies, exits, told, histories }: Found,
  { idle, size, marks }: { idle: Exit[]; size: Size; marks: string[] },
): Guarantee[] {
  const bad = works.filter(({ end }) => end !== 'ok').map(({ what, end }) => `${what}: ${end}`)
  const refused = replies.filter((reply) => reply !== 'ok')
  const repeated = [...Map.groupBy(marks, (mark) => mark)].flatMap(([mark, all]) => (all.length > 1 ? [mark] : []))
  const all = [...exits, ...idle]
  return [
    allOf('works that ended as without the deploys', works.length - bad.length, works.length),
    noneOf('works that a deploy has ended or changed', bad),
    noneOf('approvals and answers of clients that were lost', refused),
    noneOf(
      'approvals and calls of clients that were asked twice',
      asked.filter(({ asks }) => asks.length !== 1).map(({ asks }) => asks.join(' ')),
    ),
    noneOf(`effects that were repeated, of ${marks.length}`, repeated),
    slowest(
      'pause of a stream, longest',
      works.map(({ pauseMs }) => pauseMs),
      PAUSE_MS,
    ),
    noneOf(`short messages and runs that were refused, of ${told.tries}`, refusalsIn(told)),
    noneOf('those that were never accepted, or refused otherwise than with 503', told.wrong),
    noneOf('histories with other messages than those that were accepted, in their order', histories),
    allOf('processes that ended with code 0', all.filter(({ code }) => code === 0).length, all.length),
    slowest(
      'from SIGTERM to the exit, longest',
      exits.map(({ ms }) => ms),
      size.drainSecs * 1_000 + CLOSE_MS,
    ),
    slowest(
      'the same of a worker without runs',
      idle.map(({ ms }) => ms),
      IDLE_MS,
    ),
  ]
}

const refusalsIn = ({ refused }: Told): string[] => [...refused].flatMap(([code, count]) => Array(count).fill(code))

/** The lines that the tools of sessions have written. The folder of a one-shot run goes with the run. */
function effectsIn(folder: string): string[] {
  const files = globSync('workspaces/*/sess_*/effects.txt', { cwd: folder })
  return files.flatMap((file) => readFileSync(join(folder, file), 'utf8').trim().split('\n'))
}
