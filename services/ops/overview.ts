import { withDeadline } from '../../shared/kernel/async/deadline.ts'
import type { CounterName } from '../../shared/kernel/metrics.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { TenantsPage, TenantView } from '../../shared/tenancy/usage/tenants.ts'
import { JOB_KINDS, type QueueMonitor } from '../../shared/work/queue/port.ts'
import { listMembers, type MemberView, type ReadMembers } from './members.ts'
import { countJobs } from './queues.ts'
import type { MetricsRegistry } from './registry.ts'
import type { ReadTenants } from './tenants.ts'

/** The figures of the first page of the ops listener. A part is `null` where it cannot be read. */
export type Overview = {
  form: Form
  members: readonly MemberView[] | null
  queues: readonly Awaited<ReturnType<typeof countJobs>>[] | null
  /** The tenants that have spent most today. `null` also in a worker or an executor, which cannot ask the other processes. */
  tenants: { most_spent: readonly TenantView[]; count: number; has_more: boolean; incomplete: boolean } | null
  /** Counted in this process since its start, the most frequent first. */
  failures: readonly { code: string; count: number }[]
  /** Counted in this process since its start. */
  faults: Readonly<Record<Fault, number>>
}

export type Fault = (typeof FAULTS)[number]

const FAULTS = [
  'gaps_asked',
  'gaps_repaired',
  'gaps_lost',
  'streams_lost',
  'slow_consumers',
  'stale_frames_dropped',
  'fence_refusals',
  'run_records_lost',
] as const satisfies readonly CounterName[]

/** The sources of the figures. A starting process may not have all of them yet. */
export type Sources = { members?: ReadMembers; tenants?: ReadTenants; queue?: QueueMonitor }

export type OverviewDeps = {
  form: Form
  metrics: Pick<MetricsRegistry, 'counter' | 'divided'>
  sources: Readonly<Sources>
}

const WITHIN_MS = 3_000
const MOST_TENANTS = 200
const SHOWN_TENANTS = 10
/** The figures of tenants need a request to every process and to the store, so they are read at most once in this time. */
const TENANTS_MS = 15_000

/** Reads the state of the deployment as this process knows it. Never rejects. */
export function createOverview({ form, metrics, sources }: OverviewDeps): () => Promise<Overview> {
  const readTenants = remembering(TENANTS_MS, () => tenantsOf(sources.tenants))
  return async () => {
    const { members, queue } = sources
    const [shownMembers, queues, tenants] = await Promise.all([
      orNull(listMembers(members)),
      orNull(queue ? Promise.all(JOB_KINDS.map((kind) => countJobs(queue, kind))) : Promise.reject(missing())),
      orNull(readTenants()),
    ])
    const failures = [...metrics.divided('runs_ended')]
      .filter(([code, count]) => code !== 'ok' && count > 0)
      .map(([code, count]) => ({ code, count }))
      .toSorted((one, other) => other.count - one.count)
    const faults = Object.fromEntries(FAULTS.map((name) => [name, metrics.counter(name)])) as Overview['faults']
    return { form, members: shownMembers, queues, tenants, failures, faults }
  }
}

const missing = () => new Error('this process does not know it')

const orNull = <T>(read: Promise<T>): Promise<T | null> =>
  withDeadline(read, WITHIN_MS, () => new Error('it is not read in time')).catch(() => null)

async function tenantsOf(read: ReadTenants | undefined): Promise<NonNullable<Overview['tenants']>> {
  if (!read) throw missing()
  const page: TenantsPage = await read({ after: '', limit: MOST_TENANTS })
  const most_spent = page.tenants
    .toSorted((one, other) => other.usd_today - one.usd_today || other.tokens_today - one.tokens_today)
    .slice(0, SHOWN_TENANTS)
  return { most_spent, count: page.tenants.length, has_more: page.next !== null, incomplete: page.isIncomplete }
}

/** Reads again when the last answer is older than `ms`, or has failed. */
function remembering<T>(ms: number, read: () => Promise<T>): () => Promise<T> {
  let last: { at: number; answer: Promise<T> } | undefined
  return () => {
    if (last && performance.now() - last.at < ms) return last.answer
    const answer = read()
    last = { at: performance.now(), answer }
    answer.catch(() => {
      if (last?.answer === answer) last = undefined
    })
    return answer
  }
}
