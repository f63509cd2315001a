import { type Guarantee, noneOf } from '../../../harness/guarantee.ts'
import { check } from '../../checker.ts'
import type { Memory, Violation } from '../../history.ts'
import { gatewayFor } from '../../sessions.ts'
import type { FlowAnswer } from '../flows/call.ts'
import { flowGuarantees } from '../flows/judge.ts'
import type { FlowLoad } from '../flows/load.ts'
import { readRecords } from '../flows/records.ts'
import { planGuarantees } from '../plans/judge.ts'
import type { PlanLoad } from '../plans/load.ts'
import { availabilityRow, refusals, unaffected } from './availability.ts'
import type { Bed } from './bed.ts'
import type { Windows } from './faults/windows.ts'
import { invariantRows, SOAK_LIMITS } from './invariants.ts'
import { honoured, livesOf } from './judge.ts'
import type { Ledgers } from './ledgers.ts'
import type { Seen } from './load/part.ts'

/** The results of one part. Without `seen`, its clients hang. */
export type Findings = {
  seen: Seen | undefined
  violations: Violation[]
  streams: number
  calls: number
  replies: number
  forged: number
  ledgers: Ledgers
}

export type Report = {
  bed: Bed
  windows: Windows
  flows: FlowLoad
  plans: PlanLoad
  samples: Memory[]
  parts: readonly Findings[]
}

const RECORDS_WITHIN_MS = 40_000

/** The rows of a soak: its invariants, the loads, and the availability. */
export async function reportOf(report: Report): Promise<Guarantee[]> {
  const { bed, windows, samples, parts } = report
  const seen = parts.flatMap((part) => part.seen ?? [])
  const violations = parts.flatMap((part) => part.violations)
  const outside = check([...samples, ...bed.secrets.leaks], SOAK_LIMITS)
  const probes = seen.map((each) => unaffected([...each.probes, ...livesOf(each)], windows))
  return [
    ...invariantRows([...violations, ...outside], countsOf(report, seen)),
    noneOf(
      'N1 parts whose clients did not end',
      parts.filter((part) => !part.seen).map((_, n) => `part ${n + 1}`),
    ),
    noneOf(
      'N2 ledger entries without a matching run',
      parts.flatMap(({ ledgers }) => ledgers.strays),
    ),
    ...honoured(seen, { model: bed.steps, windows }),
    ...planRows(report),
    ...(await flowRows(report)),
    availabilityRow(probes),
    ...hostilityRows(report, seen),
  ]
}

/** The hostile tenant was set limits, and nobody else. */
function hostilityRows({ windows, flows, plans }: Report, seen: readonly Seen[]): Guarantee[] {
  const met = seen.map(({ hostility }) => hostility)
  const sum = (of: 'attacks' | 'refusals') => met.reduce((all, each) => all + each[of], 0)
  const probes = seen.flatMap((each) => [...each.probes, ...livesOf(each)])
  const calls = flows.answers.filter(({ status }) => status === 429).map(({ traceId }) => `a flow: 429 ${traceId}`)
  const detail = `in ${sum('attacks')} attacks`
  return [
    { title: 'limits that the hostile tenant met', value: sum('refusals'), unit: '', goal: { atLeast: 1 }, detail },
    noneOf('refusals of other tenants', [
      ...refusals(probes, windows),
      ...calls,
      ...plans.refusals.filter((each) => each.includes(': 429 ')),
    ]),
  ]
}

/** How much stands behind each invariant. */
function countsOf({ bed, samples, parts, plans }: Report, seen: readonly Seen[]): Record<string, string> {
  const sum = (of: (part: Findings) => number) => parts.reduce((all, part) => all + of(part), 0)
  const streams = `of ${sum((part) => part.streams)} streams`
  const intrusions = seen.reduce((all, each) => all + each.intrusions, 0)
  const forged = sum((part) => part.forged)
  return {
    N1: streams,
    N2: `of ${sum(({ ledgers }) => ledgers.entries)} entries`,
    N3: `of ${sum((part) => part.calls)} tool calls and ${plans.plans.length} plans`,
    N4: `of ${intrusions - forged} requests`,
    N5: streams,
    N6: `of ${sum((part) => part.replies)} replies`,
    N7: `in ${Math.round(bed.secrets.searched / 1_000)} kB`,
    N9: `in ${samples.length} samples, largest ${Math.round(Math.max(0, ...samples.map(({ rssMiB }) => rssMiB)))} MiB`,
    N10: `of ${forged} requests`,
  }
}

/** Times are not judged: faults come together. */
const isUntimed = ({ unit }: Guarantee) => unit === ''
const named = (what: string) => (row: Guarantee) => ({ ...row, title: `${what}: ${row.title}` })

function planRows({ bed, windows, plans }: Report): Guarantee[] {
  const load = { plans: plans.plans, refusals: [] }
  const { steps } = bed
  // A tool call is refused where its executor is cut off, which is right.
  const model = {
    startsOf: (token: string) => steps.startsOf(token),
    answersOf: (token: string) => steps.answersOf(token),
    writesOf: (token: string) => steps.writesOf(token),
    refusedTools: [],
  }
  return planGuarantees({ load, model, faults: windows.noticed() }, 0)
    .filter((row) => isUntimed(row) && 'atMost' in row.goal)
    .map(named('plans'))
}

async function flowRows({ bed: { world, tenants, echoes }, windows, flows }: Report): Promise<Guarantee[]> {
  const records = await readRecords(gatewayFor(world, 0).url, RECORDS_WITHIN_MS, tenants.owner)
  const isKilled = (gateway: string, from: number, to: number) =>
    windows.all.some((each) => each.name === gateway && each.kind === 'kill' && each.from <= to && each.until >= from)
  // Before a flow is found in the store there is no execution, so its refusal has no trace id (D6.5).
  const isEarly = ({ traceId, status, gateway, from, to }: FlowAnswer) =>
    traceId === '' && status === 503 && windows.touches(from, to, { names: [gateway], targets: ['redis', 'mongo'] })
  const { unserved, differences, replays } = flows
  const load = { unserved, differences, replays, answers: flows.answers.filter((answer) => !isEarly(answer)) }
  return flowGuarantees({ load, records, model: echoes, faults: [], isKilled }).filter(isUntimed).map(named('flows'))
}
