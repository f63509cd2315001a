import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Priority } from '../../../shared/agent/providers/port.ts'
import { parseTenant, type TenantId } from '../../../shared/kernel/tenant.ts'
import { Child } from './child.ts'
import type { Call, GateGiven, Outcome } from './gate.ts'
import { LIMIT, MODEL_MS, type ProviderGiven, type Tally } from './provider.ts'

const USAGE = `usage: npm run bench:fair -- [--redis URL] [--window] [--turns] [--secs 60]

Shares a provider that allows a million tokens a minute among 200 tenants with 50 customers each, one of them hostile, with batches that saturate it: the
calls with turns, and the same without them unless --turns is given. With --redis four gates share the room over that Redis, else there is one; each is a
process of its own. With --window the provider counts by the minute, else all the time. --secs is how long each of the two is measured, behind 30 seconds
to warm up.
`

const { values: options } = parseArgs({
  options: {
    secs: { type: 'string', default: '60' },
    redis: { type: 'string' },
    window: { type: 'boolean', default: false },
    turns: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const TENANTS = 200
const CUSTOMERS = 50
const GATES = options.redis === undefined ? 1 : 4
/** Calls that each tenant has at work or waiting; the hostile one has many times as many. */
const EACH = 4
const HOSTILE = 1_000
const INTERACTIVE_PER_SEC = 10
const WARM_MS = 30_000
const MS = 1_000 * Number(options.secs)

const NAMES = Array.from({ length: TENANTS }, (_, at) => parseTenant(`t${at}`) as TenantId)
const HOST = NAMES[0] as TenantId

class Figures {
  readonly tokensOf = new Map<TenantId, number>()
  readonly customersOf = new Map<string, number>()
  readonly waits: number[] = []
  tally: Tally = { calls: 0, refused: 0, tokens: 0 }
  failed = 0
  asked = 0

  note({ tenant, customer, priority }: Call, { textMs, tokens, failed, asked }: Outcome): void {
    this.asked += asked
    this.failed += Number(failed)
    if (textMs !== undefined && priority === 'interactive') this.waits.push(textMs - MODEL_MS)
    this.tokensOf.set(tenant, (this.tokensOf.get(tenant) ?? 0) + tokens)
    if (tenant === HOST) this.customersOf.set(customer, (this.customersOf.get(customer) ?? 0) + tokens)
  }
}

const random = (below: number) => Math.floor(Math.random() * below)

/** Each call goes to one of the gates by chance, as a balancer in front of them sends it. */
async function measure(hasTurns: boolean): Promise<Figures> {
  const figures = new Figures()
  const upstream = new Child('provider.ts', { isWindow: options.window } satisfies ProviderGiven)
  const given: GateGiven = {
    ...{ url: `http://127.0.0.1:${await upstream.ask<number>('port')}/v1`, redis: options.redis, hasTurns },
    model: `m-${process.pid}-${Date.now()}`,
  }
  const gates = Array.from({ length: GATES }, () => new Child('gate.ts', given))
  const stop = new AbortController()
  let isWarm = false
  const call = async (tenant: TenantId, priority: Priority) => {
    const asked: Call = { tenant, customer: `c${random(CUSTOMERS)}`, priority }
    const outcome = await (gates[random(GATES)] as Child).ask<Outcome>(asked)
    if (isWarm && !stop.signal.aborted) figures.note(asked, outcome)
    if (outcome.failed) await sleep(100)
  }
  const keep = async (tenant: TenantId) => {
    while (!stop.signal.aborted) await call(tenant, 'batch')
  }
  for (const tenant of NAMES) for (let at = 0; at < (tenant === HOST ? HOSTILE : EACH); at++) void keep(tenant)
  const interactive = setInterval(
    () => void call(NAMES[1 + random(TENANTS - 1)] ?? HOST, 'interactive'),
    1_000 / INTERACTIVE_PER_SEC,
  )
  await sleep(WARM_MS)
  await upstream.ask('count')
  isWarm = true
  await sleep(MS)
  stop.abort()
  clearInterval(interactive)
  figures.tally = await upstream.ask<Tally>('count')
  for (const child of [...gates, upstream]) child.close()
  return figures
}

/** Jain's index: 1 where all have the same. */
function jain(values: readonly number[]): number {
  const sum = values.reduce((all, each) => all + each, 0)
  const squares = values.reduce((all, each) => all + each * each, 0)
  return squares === 0 ? 0 : sum ** 2 / (values.length * squares)
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN
}

function show(title: string, { tally, tokensOf, customersOf, waits, failed, asked }: Figures): void {
  const equals = NAMES.slice(1).map((tenant) => tokensOf.get(tenant) ?? 0)
  const mean = equals.reduce((sum, each) => sum + each, 0) / equals.length
  process.stdout.write(
    [
      title,
      `  upstream 429         ${((100 * tally.refused) / Math.max(1, tally.calls)).toFixed(3)} % of ${tally.calls} calls`,
      `  use of the quota     ${((100 * tally.tokens) / (LIMIT * (MS / 60_000))).toFixed(1)} %`,
      `  Jain, equal tenants  ${jain(equals).toFixed(3)}`,
      `  hostile : equal      ${((tokensOf.get(HOST) ?? 0) / Math.max(1, mean)).toFixed(2)}`,
      `  Jain, its customers  ${jain([...customersOf.values()]).toFixed(3)}`,
      `  interactive wait     p50 ${quantile(waits, 0.5).toFixed(0)} ms, p99 ${quantile(waits, 0.99).toFixed(0)} ms to the first text, without the model's ${MODEL_MS} ms, of ${waits.length}`,
      `  failed calls         ${failed}`,
      `  asked of the rooms   ${(asked / Math.max(1, tally.calls)).toFixed(2)} a call`,
      '',
    ].join('\n'),
  )
}

if (options.help) process.stdout.write(USAGE)
else {
  show('with turns', await measure(true))
  if (!options.turns) show('without', await measure(false))
}
