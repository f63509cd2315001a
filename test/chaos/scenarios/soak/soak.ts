import { setTimeout as sleep } from 'node:timers/promises'
import type { Guarantee } from '../../../harness/guarantee.ts'
import { check } from '../../checker.ts'
import type { Memory, Violation } from '../../history.ts'
import { ofKind } from '../../history.ts'
import { tallyAnswers } from '../flows/judge.ts'
import { FlowLoad } from '../flows/load.ts'
import { tallyPlans } from '../plans/judge.ts'
import { PlanLoad } from '../plans/load.ts'
import { unaffected } from './availability.ts'
import { type Bed, openBed, type SoakOptions } from './bed.ts'
import { Nemesis } from './faults/nemesis.ts'
import { SOAK_LIMITS } from './invariants.ts'
import { livesOf } from './judge.ts'
import { type Ledgers, readPart } from './ledgers.ts'
import { FLOW_CALLERS, loadCluster, type PartDeps, type Seen } from './load/part.ts'
import { watchMemory } from './memory.ts'
import { type Findings, reportOf } from './report.ts'

/** The history is checked and forgotten after each part, so that an hour needs no more memory than a part. */
const PART_MS = 120_000
const LONGEST_FLOW_MS = 1_500
/** Longer than a plan may take. Clients that have not ended by then hang. */
const ENDED_WITHIN_MS = 150_000
const MS_PER_MIN = 60_000

/** Injects random faults into random processes under load, and looks for broken invariants. */
export async function soak(options: SoakOptions): Promise<Guarantee[]> {
  await using bed = await openBed(options)
  const { world, mongo, clocks, tenants } = bed
  const { minutes, random, say } = options
  const nemesis = new Nemesis({ world, mongo, clocks, random: random.fork('nemesis'), say })
  const flows = new FlowLoad(world, { callers: FLOW_CALLERS, maxMs: LONGEST_FLOW_MS }, random.fork('flows'))
  const urlOf: ConstructorParameters<typeof PlanLoad>[0] = (of) => of.pick(world.gateways).url
  const plans = new PlanLoad(urlOf, { name: 'plan', random: random.fork('plans'), headers: tenants.owner })
  const stop = new AbortController()
  const memory = watchMemory(world, stop.signal)
  const parts = await runParts({ ...bed, flows, plans }, { nemesis, minutes, options })
  stop.abort()
  const samples: Memory[] = await memory
  return await reportOf({ bed, windows: nemesis.windows, flows, plans, samples, parts })
}

type Running = { nemesis: Nemesis; minutes: number; options: SoakOptions }

/** Runs one part after the other until the time is over or clients hang. */
async function runParts(deps: PartDeps & Bed, { nemesis, minutes, options }: Running): Promise<Findings[]> {
  const parts: Findings[] = []
  const until = performance.now() + minutes * MS_PER_MIN
  for (let n = 1; performance.now() < until; n++) {
    const forMs = Math.min(PART_MS, until - performance.now())
    const part = await runPart(deps, { nemesis, n, forMs, options })
    parts.push(part)
    const { seen, violations } = part
    options.say(
      `part ${n}: ${part.streams} streams, ${seen?.sessions.length} sessions, ${violations.length} violations`,
    )
    options.say(`flows: ${tallyAnswers(deps.flows.answers)}`)
    options.say(`plans: ${tallyPlans(deps.plans)}`)
    for (const { rule, what } of violations.slice(0, SHOWN)) options.say(`${rule}: ${what}`)
    const { failed } = unaffected(seen ? [...seen.probes, ...livesOf(seen)] : [], nemesis.windows)
    for (const { route, names, from, to, word } of failed.slice(0, SHOWN))
      options.say(`at ${nemesis.timeOf(from)} to ${nemesis.timeOf(to)}, ${names.join(' and ')}: ${route}: ${word}`)
    if (!seen) break
  }
  return parts
}

const SHOWN = 10

async function runPart(
  deps: PartDeps & Bed,
  part: { nemesis: Nemesis; n: number; forMs: number; options: SoakOptions },
): Promise<Findings> {
  const { world, tenants } = deps
  const stop = new AbortController()
  const random = part.options.random.fork(`part ${part.n}`)
  const loading = loadCluster(deps, `part-${part.n}`, { random, signal: stop.signal })
  await part.nemesis.run(part.forMs).finally(() => stop.abort())
  const seen = await endOf(loading)
  const ledgers: Ledgers = seen ? await readPart(world, seen.customers, tenants.owner) : { entries: 0, strays: [] }
  const violations: Violation[] = check(world.history, SOAK_LIMITS)
  const streams = ofKind(world.history, 'opened').length
  const calls = ofKind(world.history, 'tool').length
  const replies = ofKind(world.history, 'reply').length
  const forged = ofKind(world.history, 'answer').length
  world.history.length = 0
  return { seen, violations, streams, calls, replies, forged, ledgers }
}

/** `undefined`: clients hang. */
async function endOf(loading: Promise<Seen>): Promise<Seen | undefined> {
  const timer = new AbortController()
  const late = sleep(ENDED_WITHIN_MS, undefined, { signal: timer.signal }).catch(() => undefined)
  try {
    return await Promise.race([loading, late])
  } finally {
    timer.abort()
  }
}
