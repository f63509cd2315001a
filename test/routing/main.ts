import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Form } from '../../shared/platform/config/fields.ts'
import { type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { startMongoInMemory } from '../support/mongo-in-memory.ts'
import { type Product, startMembers, startStandalone } from '../support/product.ts'

const USAGE = `usage: npm run try:routing -- [--form standalone|cluster]

Lets the first of two models of a role fail for ten seconds, and prints what reached it while it rested and after which time it served runs again;
then lets one of fifty calls hang, with and without a second request, and prints the times to the first text. It takes three minutes.
`

const { values } = parseArgs({
  options: { form: { type: 'string', default: '' }, help: { type: 'boolean', default: false } },
})

const EVERY_MS = 250
const FAILS_MS = 10_000
const WATCHED_MS = 60_000
const HANGS_EVERY = 50
const RUNS = 400
const AT_ONCE = 8

const print = (line: string) => process.stdout.write(`${line}\n`)
const quantile = (sorted: readonly number[], part: number) =>
  Math.round(sorted[Math.ceil(part * sorted.length) - 1] ?? 0)

async function main(): Promise<void> {
  for (const form of ['standalone', 'cluster'] as const) {
    if (values.form && values.form !== form) continue
    const mongo = form === 'cluster' ? await startMongoInMemory() : undefined
    const env = {
      ...(mongo && { MONGODB_URL: mongo.url, MONGODB_DB: `try_${randomBytes(4).toString('hex')}` }),
      ...{ MASTER_KEY: randomBytes(32).toString('base64'), ALLOW_PRIVATE_URLS: 'true' },
    }
    const product = await (form === 'cluster' ? startMembers : startStandalone)(env)
    const first = await startModelServer()
    try {
      await failing(product, first, form)
      await hanging(product, first, form)
    } finally {
      await product.close()
      await first.close()
      await mongo?.stop()
    }
  }
}

async function route(product: Product, first: ModelServer, extra: object): Promise<void> {
  const instance = (name: string, url: string) =>
    product.call('PUT', `/config/instances/${name}`, { type: 'openai-compatible', url })
  await Promise.all([instance('first', first.url), instance('second', product.model.url)])
  const role = { instance: 'first', model: 'm', fallback_instance: 'second', fallback_model: 'm', ...extra }
  await product.call('PUT', '/config/engine', { routing: { main: role } })
  await sleep(2_000)
}

/** The time to the first text, and which of the two models has answered. */
async function run(product: Product): Promise<{ ms: number; text: string }> {
  const from = performance.now()
  const stream = await product.run({ prompt: 'hi' })
  const { data } = await stream.until('text_delta')
  const ms = performance.now() - from
  await stream.all()
  return { ms, text: String(data['text']) }
}

async function failing(product: Product, first: ModelServer, form: Form): Promise<void> {
  await route(product, first, {})
  product.model.otherwise(() => 'second')
  first.otherwise(() => ({ status: 503, type: 'server_error', message: 'down' }))
  const from = performance.now()
  const ended: { at: number; text: string; ms: number }[] = []
  const running: Promise<unknown>[] = []
  setTimeout(() => first.otherwise(() => 'first'), FAILS_MS)
  const requests: number[] = []
  for (let at = 0, seen = 0; at < WATCHED_MS; at = performance.now() - from, await sleep(EVERY_MS)) {
    running.push(run(product).then((each) => ended.push({ at, ...each })))
    if (first.requests.length > seen) requests.push(at)
    seen = first.requests.length
  }
  await Promise.all(running)
  const rest = requests.filter((at) => at > 5_000 && at < 25_000).length
  const back = ended.filter(({ text }) => text === 'first').map(({ at }) => at)
  const slow = ended.filter(({ ms }) => ms > 1_000).length
  print(`${form}: ${ended.length} runs, each answered; ${slow} took more than a second.`)
  print(
    `${form}: requests to the first model between second 5 and 25: ${rest}; it served again from second ${Math.round((back[0] ?? 0) / 1_000)} on, and ${back.length} runs of the rest.`,
  )
}

async function hanging(product: Product, first: ModelServer, form: Form): Promise<void> {
  first.otherwise(() => 'first')
  for (const hedge of [false, true]) {
    await route(product, first, { hedge })
    await Promise.all(Array.from({ length: 100 }, () => run(product)))
    // A call that hangs is answered after three seconds, as by a provider that has a bad moment.
    first.otherwise((_request, index) => (index % HANGS_EVERY === 0 ? [{ wait: 3_000 }, { text: 'first' }] : 'first'))
    const before = product.model.requests.length
    const times: number[] = []
    const lane = async () => {
      for (let at = 0; at < RUNS / AT_ONCE; at++) times.push((await run(product)).ms)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
    times.sort((one, other) => one - other)
    const [p50, p90, p99] = [0.5, 0.9, 0.99].map((part) => quantile(times, part))
    print(
      `${form}: hedge ${hedge}: first text p50 ${p50}, p90 ${p90}, p99 ${p99} ms; second requests: ${product.model.requests.length - before} of ${RUNS} runs.`,
    )
    first.otherwise(() => 'first')
  }
}

if (values.help) print(USAGE)
else await main()
