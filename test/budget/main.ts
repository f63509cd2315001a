import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect, parseArgs } from 'node:util'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { Received } from '../support/model-server/model-server.ts'
import { startMongoInMemory } from '../support/mongo-in-memory.ts'
import { startMembers, startStandalone } from '../support/product.ts'
import { DOORS, type Door } from './doors.ts'
import { type Engine, startKillable } from './killable.ts'

const USAGE = `usage: npm run try:budget -- [--form standalone|cluster] [--only PATTERN] [--count 60]

Starts so many model calls at once through each door, with a budget for five calls, and prints a row for each: the calls that reached the provider,
the tokens used, the budget, those that waited while five calls were at work, and those that were refused. It exits with 1 where the budget was
exceeded by more than one call, or where a call neither reached the provider nor ended with budget_exhausted. It takes minutes.
`

const { values } = parseArgs({
  options: {
    form: { type: 'string', default: '' },
    only: { type: 'string', default: '' },
    count: { type: 'string', default: '60' },
    help: { type: 'boolean', default: false },
  },
})

const CALLS = 5
const OUTPUT = 1_000
const FREE = { input: 1, output: 1 }
/** Longer than a process may have an old limit, or an old sum of what the others have spent. */
const KNOWN_MS = 3_000
const QUIET_MS = 3_000

/** What one burst has led to. `waiting`: calls that had neither reached the provider nor been refused while the first were at work. */
type Row = {
  door: string
  form: Form
  started: number
  reached: number
  used: number
  budget: number
  waiting: number
  refused: number
}

async function main(): Promise<boolean> {
  const count = Number(values.count)
  let isAllAsMeant = true
  print('| door | form | started | reached the provider | used | budget | waited | refused | |')
  print('|---|---|---|---|---|---|---|---|---|')
  for (const form of ['standalone', 'cluster'] as const) {
    if (values.form && values.form !== form) continue
    const mongo = form === 'cluster' ? await startMongoInMemory() : undefined
    for (const door of DOORS.filter(({ name }) => new RegExp(values.only).test(name)))
      isAllAsMeant = (await tryDoor(door, { form, mongoUrl: mongo?.url, count })) && isAllAsMeant
    await mongo?.stop()
  }
  return isAllAsMeant
}

async function tryDoor(
  door: Door,
  { form, mongoUrl, count }: { form: Form; mongoUrl: string | undefined; count: number },
) {
  const env = {
    ...(mongoUrl && { MONGODB_URL: mongoUrl, MONGODB_DB: `try_${randomBytes(4).toString('hex')}` }),
    MASTER_KEY: randomBytes(32).toString('base64'),
    ...{ ALLOW_PRIVATE_URLS: 'true', SCHEDULE_LEAST_SECS: '1', DIALECTS: 'all' },
    RUNS_PER_WORKER: String(2 * count),
  }
  const start = form === 'cluster' ? startMembers : startStandalone
  const product = await (door.isDeadly ? startKillable(form, env) : start(env))
  try {
    const { dearest, otherEnd, ...row } = await burst(product, { door, form, count })
    const problem = problemOf(row, dearest)
    if (problem) process.stderr.write(`${otherEnd.slice(-600)}\n`)
    print(`| ${[...Object.values(row), problem].join(' | ')} |`)
    return problem === ''
  } catch (cause) {
    const logged = product.log.filter((line) => line.includes('"level":"error"')).slice(-3)
    process.stderr.write(`${door.name}, ${form}: ${inspect(cause)}\n${logged.join('\n')}\n`)
    return false
  } finally {
    await product.close()
  }
}

function problemOf({ started, reached, used, budget, refused }: Row, dearest: number): string {
  if (used > budget + dearest) return 'above the budget by more than one call'
  if (reached === 0) return 'nothing began'
  return reached + refused < started ? 'some ended otherwise' : ''
}

async function burst(
  product: Engine,
  { door, form, count }: { door: Door; form: Form; count: number },
): Promise<Row & { dearest: number; otherEnd: string }> {
  const answer = door.answer ?? (() => 'ok')
  let gate: Promise<void> = Promise.resolve()
  let [paid, dearest] = [0, 0]
  product.model.otherwise(async (request) => {
    if (isOfBurst(request)) await gate
    const given = answer(request)
    if (typeof given !== 'string' && !Array.isArray(given)) return given
    if (!isOfBurst(request)) return { steps: typeof given === 'string' ? [{ text: given }] : given, usage: FREE }
    const usage = { input: Math.ceil(JSON.stringify(request.body).length / 4), output: OUTPUT }
    paid++
    dearest = Math.max(dearest, usage.input + usage.output)
    return { steps: typeof given === 'string' ? [{ text: given }] : given, usage }
  })
  await product.call('PUT', '/config/instances/main', { type: 'openai-compatible', url: product.model.url })
  await sleep(KNOWN_MS)
  await door.prepare?.(product, count)
  await sleep(KNOWN_MS)
  const atFirst = await usedTokens(product)
  paid = 0
  const warm = await door.burst(product, 1)
  if (paid === 0) throw new Error(`no call was paid: ${warm[0]?.slice(-500)}`)
  await sleep(KNOWN_MS)
  const before = await usedTokens(product)
  const budget = Math.ceil((CALLS * (before - atFirst)) / paid)
  await product.call('PUT', '/config/limits', { tokens_per_day: before + budget })
  await sleep(KNOWN_MS)

  const held = Promise.withResolvers<void>()
  gate = held.promise
  const from = product.model.requests.length
  const reached = () => product.model.requests.slice(from).filter(isOfBurst).length
  const bursting = door.burst(product, count)
  await quiet(reached)
  const waiting = count - reached()
  held.resolve()
  const ends = await bursting
  await sleep(KNOWN_MS)
  const used = (await usedTokens(product)) - before
  const refused = ends.filter((text) => /budget|rate_limit_error/.test(text)).length
  const row = { door: door.name, form, started: count, reached: reached(), used, budget, waiting, refused }
  return { ...row, dearest, otherEnd: ends.find((text) => !/budget|done|ok|yes/.test(text)) ?? '' }
}

/** The request that starts the sub-agents is not held, and costs hardly anything: what they cost is looked at. */
const isOfBurst = ({ prompt }: Received) => !prompt.startsWith('Start ')

/** The figure of the gateway that knows most. */
async function usedTokens(product: Engine): Promise<number> {
  const read = async () => (await product.call('GET', '/config/limits')).body as { used: { tokens: number } }
  return Math.max(...(await Promise.all([read(), read()])).map(({ used }) => used.tokens))
}

/** Resolves when at least one has come, and no more for a while. */
async function quiet(count: () => number): Promise<void> {
  for (let seen = -1, since = performance.now(); performance.now() - since < QUIET_MS || seen < 1; await sleep(50)) {
    if (count() === seen) continue
    seen = count()
    since = performance.now()
  }
}

const print = (line: string) => void process.stdout.write(`${line}\n`)

if (values.help) print(USAGE)
else process.exitCode = (await main()) ? 0 : 1
