import { setTimeout as sleep } from 'node:timers/promises'
import { allOf, type Guarantee, none, noneOf } from '../../../harness/guarantee.ts'
import type { Random } from '../../../harness/seed.ts'
import { ModelServer } from '../../../support/model-server/model-server.ts'
import { ask } from '../../ask.ts'
import { now } from '../../history.ts'
import { nothingTold, RefusedClient, type Told } from './client.ts'
import { TenantEvents } from './tenant-events.ts'

/** A fault of a store, which is injected for so long. */
export type StoreFault = { what: string; forMs: number; inject(): Promise<void> | void; heal(): Promise<void> | void }

export type Form = { name: string; urlOf: () => string; faults: readonly StoreFault[] }

export type RefusalSize = { clients: number; tries: number }

/** A model that counts the calls for each token. */
export class CountingModel implements AsyncDisposable {
  readonly #server = new ModelServer({ record: false })
  readonly calls = new Map<string, number>()

  static async start(): Promise<CountingModel> {
    const model = new CountingModel()
    model.#server.otherwise(({ prompt }) => {
      model.calls.set(prompt, (model.calls.get(prompt) ?? 0) + 1)
      return 'ok'
    })
    await model.#server.listen(0)
    return model
  }

  get env(): Record<string, string> {
    return {
      ...{ MODEL_PROVIDER: 'openai-compatible', MODEL: 'test-model', MODEL_API_KEY: 'none' },
      MODEL_BASE_URL: this.#server.url,
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server.close()
  }
}

type Measuring = { form: Form; model: CountingModel; size: RefusalSize; random: Random; say(line: string): void }

const CALM_MS = 500
const PAIRED_WITHIN_MS = 20_000

/** Injects the faults one after the other while clients start runs and send messages, until there were so many of these. */
export async function measureRefusals({ form, model, size, random, say }: Measuring): Promise<Guarantee[]> {
  const told = nothingTold()
  const { urlOf } = form
  await using events = await TenantEvents.open(urlOf)
  const clients = await Promise.all(
    Array.from({ length: size.clients }, (_, n) =>
      RefusedClient.open({ n, urlOf, random: random.fork(`${n}`), told, hasPlans: true }),
    ),
  )
  let isOver = false
  const talking = clients.map((client) => client.until(() => isOver))
  for (let round = 0; round === 0 || told.tries < size.tries; round++) {
    for (const fault of form.faults) {
      await fault.inject()
      await sleep(fault.forMs)
      await fault.heal()
      say(`${form.name}, ${fault.what} for ${fault.forMs} ms: ${tell(told)}`)
      await sleep(CALM_MS)
    }
  }
  isOver = true
  await Promise.all(talking)
  const until = now() + PAIRED_WITHIN_MS
  const areTold = () => told.accepted.every(({ run }) => events.ended.has(run)) && events.unpaired.length === 0
  while (now() < until && !areTold()) await sleep(CALM_MS)
  const plans = await notDone(urlOf, told.plans)
  const histories = (await Promise.all(clients.map((client) => client.wrongInHistory()))).flat()
  return guaranteesOf(form.name, { told, histories, plans, calls: model.calls, events })
}

const STARTS = 200

/** Begins so many runs with keys at the same time right after each fault has begun: the model is called once for each, whatever was answered before. */
export async function measureStarts({ form, model, random, say }: Measuring): Promise<Guarantee[]> {
  const guarantees: Guarantee[] = []
  for (const [n, fault] of form.faults.entries()) {
    const told = nothingTold()
    const tokens = Array.from({ length: STARTS }, (_, i) => `start-${n}-${i}.`)
    await fault.inject()
    const healed = sleep(fault.forMs).then(() => fault.heal())
    await Promise.all(
      tokens.map((token, i) => RefusedClient.start(token, { n: i, ...form, random: random.fork(token), told })),
    )
    await healed
    say(`${form.name}, ${fault.what}, ${STARTS} starts with keys: ${tell(told)}`)
    const wrong = tokens.filter((token) => model.calls.get(token) !== 1)
    const ends = told.accepted.filter(({ end }) => end !== 'done').map(({ token, end }) => `${token} ${end}`)
    const title = (what: string) => `${form.name}, ${fault.what}, ${STARTS} starts with keys: ${what}`
    guarantees.push(
      allOf(title('accepted'), told.accepted.length, STARTS),
      noneOf(title('that did not reach the model once'), wrong),
      noneOf(title('never accepted, or that did not end with done'), [...told.wrong, ...ends]),
    )
  }
  return guarantees
}

/** The plans that are not done when none of them is queued or running any more. */
async function notDone(urlOf: () => string, plans: Told['plans']): Promise<string[]> {
  const until = now() + PAIRED_WITHIN_MS
  const statusOf = async (id: string) => {
    for (;;) {
      const { body } = await ask(urlOf(), { path: `/plans/${id}` })
      const { status = 'no answer' } = (body ?? {}) as { status?: string }
      if (!['queued', 'running', 'no answer'].includes(status) || now() > until) return status
      await sleep(CALM_MS)
    }
  }
  const statuses = await Promise.all(plans.map(async ({ id }) => `${id} ${await statusOf(id)}`))
  return statuses.filter((each) => !each.endsWith(' done'))
}

const tell = ({ tries, accepted, refused }: Told): string =>
  `${tries} tries, ${accepted.length} accepted, refused ${JSON.stringify(Object.fromEntries(refused))}`

type Found = {
  told: Told
  histories: string[]
  plans: string[]
  calls: ReadonlyMap<string, number>
  events: Pick<TenantEvents, 'started' | 'unpaired'>
}

function guaranteesOf(name: string, { told, histories, plans, calls, events }: Found): Guarantee[] {
  const all = [...told.accepted, ...told.plans]
  const accepted = new Set(all.map(({ token }) => token))
  const planned = new Map(told.plans.map(({ token, id }) => [token, id]))
  const runs = new Set(told.accepted.map(({ run }) => run))
  const known = [...calls].filter(([token]) => token.startsWith(`token-`))
  const wrongCalls = [
    ...known
      .filter(([token, count]) => count !== 1 || !accepted.has(token))
      .map(([token, count]) => `${token} ${planned.get(token) ?? ''} ${count}`),
    ...all.filter(({ token }) => !calls.has(token)).map(({ token }) => `${token} 0`),
  ]
  const undone = told.accepted
    .filter(({ end }) => end !== 'done')
    .map(({ token, run, end }) => `${token} ${run} ${end}`)
  const refusals = [...told.refused.values()].reduce((sum, count) => sum + count, 0)
  const title = (what: string) => `${name}: ${what}`
  return [
    allOf(title('refusals, as the faults should cause'), refusals, 1),
    noneOf(title('requests that were never accepted, or refused otherwise than with 503'), told.wrong),
    noneOf(
      title(`prompts that did not reach the model once for the run or plan that was accepted, of ${accepted.size}`),
      wrongCalls,
    ),
    noneOf(title('accepted runs that did not end with done'), undone),
    noneOf(title(`accepted plans that are not done, of ${told.plans.length}`), plans),
    noneOf(title('histories with other messages than those that were accepted, in their order'), histories),
    noneOf(title('runs whose begin or end was not announced'), events.unpaired),
    none(title('announced runs that nobody was told of'), events.started.difference(runs).size),
  ]
}
