import { setTimeout as sleep } from 'node:timers/promises'
import { ensureMongod } from '../../../scripts/local-services/mongo-server.ts'
import { allOf, type Guarantee, noneOf } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'
import { startMongoInMemory } from '../../support/mongo-in-memory.ts'
import { until } from '../../support/until.ts'
import { createSessions } from '../sessions.ts'
import { World } from '../world.ts'
import { ClientRun, type Told } from './own-calls/client-run.ts'

/** `each`: how many runs there are of each kind, in sessions and as many without one. */
type Size = { workers: number; rounds: number; each: number }

const SHORT: Size = { workers: 2, rounds: 3, each: 1 }
const FULL: Size = { workers: 3, rounds: 12, each: 2 }

/** An answer in the pause is sent at some time within it. */
const IN_PAUSE_MS = 4_000
/** Problems of a round that are shown. */
const SHOWN = 20
const SETTLED_WITHIN_MS = 60_000

/** What a round kills: a worker, a gateway with it, or after it the next worker as soon as that has taken a run over. */
const KILLS = ['a worker', 'a worker and a gateway', 'two workers, one after the other'] as const

/** Kills processes while runs wait for their clients' calls, or read what a person tells them. */
export const ownCalls: Scenario = {
  id: 'P25',
  promise: 'with DURABILITY=runs no death loses or doubles what a client has answered or told a run',
  isFullOnly: true,
  run: ({ isFull, ...options }: ScenarioOptions) => measure(isFull ? FULL : SHORT, options),
}

async function measure(size: Size, { random, say }: Omit<ScenarioOptions, 'isFull'>): Promise<Guarantee[]> {
  await ensureMongod(say)
  await using mongo = await startMongoInMemory()
  const model = await startModelServer()
  const provider = { MODEL_PROVIDER: 'openai-compatible', MODEL: 'test-model', MODEL_BASE_URL: model.url }
  const env = { MONGODB_URL: mongo.url, DURABILITY: 'runs', DRAIN_SECS: '0', ...provider }
  const told: Told = { answers: 0, steers: 0, recovered: 0, unknown: 0, problems: [] }
  try {
    await using world = await World.open({ random, workers: size.workers, env })
    let known = 0
    for (let round = 1; round <= size.rounds; round++) {
      const kill = KILLS[(round - 1) % KILLS.length] as (typeof KILLS)[number]
      await new Round(world, model, { told, random: random.fork(`round ${round}`), name: `r${round}` }).run(size, kill)
      world.history.length = 0
      const { answers, steers, recovered, problems } = told
      for (const problem of problems.slice(known, known + SHOWN)) say(problem)
      known = problems.length
      say(
        `${round}, ${kill}: ${answers} answers, ${steers} texts, ${recovered} runs recovered, ${problems.length} wrong`,
      )
    }
  } finally {
    await model.close()
  }
  return [
    allOf('runs that another worker went on with', told.recovered, 1),
    noneOf(`answers, texts, histories and lists that are wrong, of ${told.answers + told.steers}`, told.problems),
  ]
}

/** Runs of every kind, and one fault. */
class Round {
  readonly #world: World
  readonly #model: ModelServer
  readonly #told: Told
  readonly #random: Random
  readonly #name: string
  readonly #released = Promise.withResolvers<void>()
  /** The runs whose model has read the results of their calls. */
  readonly #reached = new Set<string>()

  constructor(world: World, model: ModelServer, { told, random, name }: { told: Told; random: Random; name: string }) {
    this.#world = world
    this.#model = model
    this.#told = told
    this.#random = random
    this.#name = name
    model.requests.length = 0
    model.otherwise(({ body }) => this.#answer(body['messages'] as Message[]))
  }

  async run({ each }: Size, kill: (typeof KILLS)[number]): Promise<void> {
    const runs = await this.#begin(each)
    const all = Object.values(runs).flat()
    await Promise.all(runs.two.map((run) => run.answer(0)))
    const [acked, steered, rivals] = [runs.acked, [...runs.steered, ...runs.both], runs.rivals]
    const first = this.#random.pick([...acked, ...steered])
    const told = new Map(acked.map((run) => [run, run.answer(0)]))
    for (const run of steered) told.set(run, run.steer())
    for (const run of rivals)
      told.set(
        run,
        Promise.all([run.answer(0), run.answer(0)]).then(() => {}),
      )
    await told.get(first) // The kill comes right behind this 200 or 202, while the others are under way.
    const killed = await this.#kill(kill, all)
    const late = [...runs.pending, ...runs.both].map((run) => this.#inPause(() => run.answer(0)))
    const second = runs.two.map((run) => this.#inPause(() => run.answer(1)))
    await Promise.all([...told.values(), ...late, ...second, ...all.map((run) => run.checkList())])
    await until(() => all.every((run) => this.#reached.has(run.mark)), SETTLED)
    await until(() => all.every((run) => !killed.has(run.owner) || run.isRecovered), SETTLED)
    await Promise.all(all.map((run) => run.answerAgain()))
    this.#released.resolve()
    await Promise.all(all.map((run) => run.check(this.#model.requests)))
  }

  async #inPause(act: () => Promise<void>): Promise<void> {
    await sleep(this.#random.between(0, IN_PAUSE_MS))
    await act()
  }

  /** Resolves when all wait for their client, or give an answer that does not end. */
  async #begin(each: number) {
    const sessions = await createSessions(this.#world, 6 * each)
    const begin = (kind: string, calls: number) =>
      Array.from({ length: 2 * each }, (_, n) => {
        const session = n % 2 === 0 ? sessions.pop() : undefined
        const mark = `mark-${this.#name}-${kind}-${n}.`
        return new ClientRun(this.#world, { mark, calls, session, random: this.#random.fork(mark), told: this.#told })
      })
    const runs = {
      ...{ pending: begin('pending', 1), acked: begin('acked', 1), two: begin('two', 2), rivals: begin('rivals', 1) },
      ...{ steered: begin('steered', 0), both: begin('both', 1) },
    }
    const isReady = (run: ClientRun) => run.isWaiting && (run.callCount > 0 || this.#reached.has(run.mark))
    await until(() => Object.values(runs).flat().every(isReady), { ...SETTLED, what: 'all runs to wait' })
    return runs
  }

  /** Returns the names of the killed workers. */
  async #kill(what: (typeof KILLS)[number], runs: readonly ClientRun[]): Promise<ReadonlySet<string>> {
    const world = this.#world
    const busy = world.workers.filter(({ name }) => runs.some(({ owner }) => owner === name))
    const first = this.#random.pick(busy)
    const gateway = what === KILLS[1] ? [world.kill(this.#random.pick(world.gateways))] : []
    await Promise.all([world.kill(first), ...gateway])
    const started = [world.start('worker'), ...(gateway.length > 0 ? [world.start('gateway')] : [])]
    const killed = new Set([first.name])
    if (what === KILLS[2]) {
      await until(() => runs.some((run) => run.isRecovered), { ...SETTLED, what: 'a run to be recovered' })
      const next = this.#random.pick(world.workers.filter(({ name }) => busy.some((each) => each.name === name)))
      killed.add(next.name)
      await world.kill(next)
      started.push(world.start('worker'))
    }
    await Promise.all(started)
    return killed
  }

  /** The model calls all of a run's tools at once, and then gives an answer that ends when the round lets it. */
  #answer(messages: readonly Message[]) {
    const text = JSON.stringify(messages)
    const [mark = '', count = 0] = /(mark-[\w-]+\.) (\d)/.exec(text)?.slice(1) ?? []
    const results = messages.filter(({ role }) => role === 'tool')
    if (results.length < Number(count))
      return Array.from({ length: Number(count) }, (_, n) => ({ tool: 'own_tool', input: { n }, id: `${mark}${n}` }))
    this.#reached.add(mark)
    return [{ text: 'I read it. ' }, { hold: this.#released.promise }, { text: 'The end.' }]
  }
}

type Message = { role: string; content: unknown }

const SETTLED = { what: 'all runs to go on', withinMs: SETTLED_WITHIN_MS, everyMs: 50 }
