import { randomBytes } from 'node:crypto'
import { allOf, type Guarantee, none, noneOf, quantileOf, slowest } from '../../harness/guarantee.ts'
import { probeHealth } from '../../harness/health.ts'
import { errorsIn } from '../../harness/leftovers.ts'
import { LOOP_PROBE_PRELOAD, LoopProbe } from '../../harness/loop-probe.ts'
import { Product } from '../../harness/product.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { type Hostile, hostileCases, madeOf } from '../../platform/schemas/hostile.ts'
import { AUDIENCE, Issuer } from '../../support/issuer/issuer.ts'
import { newSigner } from '../../support/issuer/signer.ts'
import { type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'
import { answerHostile, attackWith, isSendable } from '../schemas/attack.ts'
import { ANYTHING, FlowClient, INSTANCE, type Timed } from '../schemas/flow-client.ts'
import { attackTemplates } from '../schemas/injection.ts'
import { loopDelays } from '../schemas/loop-delay.ts'

const SCHEMAS = 200
/** How many of the schemas one tenant sends in the short form, and then several tenants at the same time. */
const SHORT = { alone: 12, together: 3 }
/** The first one runs an ordinary flow, the others attack. */
const TENANTS = ['umbrella', 'acme', 'globex', 'initech']
const ORDINARY = { input_schema: ANYTHING, output_schema: ANYTHING }
const ANSWER_MS = 300
/** The model may be asked three times, and each answer is checked. */
const RUN_MS = 1_500
const DELAY_P99_MS = 50
/** As in P12. */
const STALL_MS = 250
const HEALTH_P99_MS = 100

/** Tenants store, publish and run flows whose schemas, values and templates are made to stop the process. */
export const schemas: Scenario = {
  id: 'P13',
  promise: 'no schema, value or template of a tenant stops the server or makes it fail',
  run,
}

async function run(options: ScenarioOptions): Promise<Guarantee[]> {
  const issuer = await Issuer.start([await newSigner('RS256', 'r1')])
  const model = await startModelServer()
  try {
    await using product = await Product.start({ env: settings(issuer.url), preload: LOOP_PROBE_PRELOAD })
    return await attack(options, { issuer, model, product })
  } finally {
    await model.close()
    await issuer.close()
  }
}

const settings = (issuer: string) => ({
  MASTER_KEY: randomBytes(32).toString('base64'),
  AUTH_MODE: 'enforced',
  OIDC_ISSUER: issuer,
  OIDC_AUDIENCE: AUDIENCE,
})

type Parts = { issuer: Issuer; model: ModelServer; product: Product }

async function attack({ isFull, random, say }: ScenarioOptions, parts: Parts): Promise<Guarantee[]> {
  const { model, product } = parts
  const cases = chooseCases(random, isFull)
  model.otherwise(answerHostile(cases))
  const [victim, alone, ...others] = await Promise.all(TENANTS.map((tenant) => openClient(tenant, parts)))
  if (!victim || !alone) throw new Error('there are at least two tenants')
  const probe = new LoopProbe(product)
  const [mark, from, health] = [probe.mark(), performance.now(), probeHealth(product)]
  await attackWith(cases, alone, 'hostile')
  const single = alone.answers.splice(0)
  say(`one tenant: ${tally(single)}`)
  const some = isFull ? cases : cases.slice(0, SHORT.together)
  const crowd = [alone, ...others]
  const ordinary = await besideRuns(victim, async () => {
    await Promise.all(crowd.map((client, n) => attackWith(random.fork(`${n}`).shuffle(some), client, 'hostile')))
  })
  const together = crowd.flatMap(({ answers }) => answers.splice(0))
  say(`${crowd.length} tenants at the same time: ${tally(together)}`)
  const stalls = probe.stalls(mark)
  const delays = loopDelays(stalls, performance.now() - from)
  const { kept, fresh } = await health.stop()
  const templates = await attackTemplates(alone, model)
  return [
    ...answerGuarantees({ single, together, templates: alone.answers }, cases.length),
    ...timeGuarantees({ single, together, count: crowd.length }),
    allOf('ordinary runs of another tenant meanwhile that are ok', ordinary.filter(isOk).length, ordinary.length),
    slowest('longest event-loop stall, own work only', [0, ...stalls.map(({ busyMs }) => busyMs)], STALL_MS),
    quantileOf('event-loop delay p99', delays, { part: 0.99, atMost: DELAY_P99_MS }),
    quantileOf('/health p99', [...kept.times, ...fresh.times], { part: 0.99, atMost: HEALTH_P99_MS }),
    none('/health not answered', kept.failures + fresh.failures),
    ...templates,
    noneOf(
      'errors in the log',
      errorsIn(product).filter((line) => !line.startsWith('{"stall"')),
    ),
  ]
}

function chooseCases(random: Random, isFull: boolean): Hostile[] {
  const all = hostileCases(random.seed, SCHEMAS)
  if (isFull) return all.map(madeOf).filter(isSendable)
  const chosen: Hostile[] = []
  for (const each of random.shuffle(all)) {
    const made = madeOf(each)
    if (isSendable(made)) chosen.push(made)
    if (chosen.length === SHORT.alone) break
  }
  return chosen
}

/** A tenant with a provider and an ordinary flow. */
async function openClient(tenant: string, { issuer, model, product }: Parts): Promise<FlowClient> {
  const headers = { authorization: `Bearer ${await issuer.token(tenant)}` }
  const client = new FlowClient(`http://127.0.0.1:${product.port}/v1`, headers)
  const body = { type: 'openai-compatible', url: model.url, key: 'k' }
  await client.prepare({ method: 'PUT', path: `/config/instances/${INSTANCE}`, body })
  await client.prepare({ method: 'PUT', path: '/flows/ordinary', body: ORDINARY })
  await client.prepare({ method: 'POST', path: '/flows/ordinary/publish' })
  return client
}

/** Runs the ordinary flow again and again while `work` goes on. */
async function besideRuns(victim: FlowClient, work: () => Promise<void>): Promise<Timed[]> {
  const over = new AbortController()
  const running = (async () => {
    while (!over.signal.aborted) await victim.run('an ordinary input', 'ordinary', { text: 'hello' })
  })()
  await work().finally(() => over.abort())
  await running
  return victim.answers
}

const isOk = ({ status, text }: Timed): boolean => status === 200 && text.includes('"verdict":"ok"')

type Answers = { single: readonly Timed[]; together: readonly Timed[] }

/** A hostile value as the model's answer is no failure of the request: its verdict is `invalid_output`. */
function answerGuarantees(
  { single, together, templates }: Answers & { templates: readonly Timed[] },
  cases: number,
): Guarantee[] {
  const all = [...single, ...together, ...templates]
  const late = all.filter(isLate)
  const wrong = all.filter((each) => each.status !== 200 && Math.floor(each.status / 100) !== 4 && !isLate(each))
  const refused = single.filter(({ status }) => status !== 200).length
  const share = (100 * late.length) / all.length
  return [
    { title: 'answers to schemas and values', value: all.length, unit: '', goal: { atLeast: 4 * cases } },
    { title: 'schemas and values refused', value: refused, unit: '', goal: { atLeast: cases / 2 } },
    noneOf('answers other than 200 and 4xx', wrong.map(shown)),
    {
      title: 'further answers, refused for lack of time',
      value: share,
      unit: ' %',
      goal: { atMost: 0 },
      detail: late.map(shown)[0] ?? '',
    },
  ]
}

/** A schema that is compiled in time on an idle machine may need longer on a busy one. */
const isLate = ({ status, text }: Timed): boolean =>
  (status === 503 || status === 502) && text.includes('cannot be compiled within')

const shown = ({ what, status, text }: Timed): string => `${what}: ${status} ${text.slice(0, 150)}`

function timeGuarantees({ single, together, count }: Answers & { count: number }): Guarantee[] {
  const times = (answers: readonly Timed[], isRun: boolean) =>
    answers.filter(({ kind, status }) => (kind === 'run' && status === 200) === isRun).map(({ ms }) => ms)
  return [
    slowest('longest answer to a schema or a refused value', times(single, false), ANSWER_MS),
    slowest('longest run, with up to three checked answers', times(single, true), RUN_MS),
    // Schemas are compiled one after the other.
    slowest(`longest answer to one of ${count} tenants`, times(together, false), count * ANSWER_MS),
    slowest(`longest run of one of ${count} tenants`, times(together, true), count * RUN_MS),
  ]
}

function tally(answers: readonly Timed[]): string {
  const counts = Map.groupBy(answers, ({ kind, status }) => `${kind} ${status}`)
  const slow = answers.toSorted((a, b) => b.ms - a.ms).slice(0, 3)
  const words = [...counts].map(([what, { length }]) => `${length} x ${what}`)
  return `${words.join(', ')}; slowest: ${slow.map(({ what, ms }) => `${what} ${ms.toFixed(0)} ms`).join(', ')}`
}
