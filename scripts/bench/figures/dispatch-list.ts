import { newTraceId } from '../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { Store } from '../../../shared/platform/store/port.ts'
import type { Dispatch, DispatchQuery } from '../../../shared/work/flows/port.ts'
import { DISPATCHES, toDoc } from '../../../shared/work/flows/store/dispatch-documents.ts'
import { StoredDispatches } from '../../../shared/work/flows/store/dispatches.ts'
import type { Bench } from '../bench.ts'
import type { Figure, Measured } from '../figure.ts'
import { median } from '../statistics.ts'
import { type BenchStore, measureInStores } from '../stores.ts'

const SHORT = 1_000
const LIMIT = 50
const AT_ONCE = 100
const WARM_UP = 50
/** As many records of the rare flow and of the rare status as fill a page, in both lists. */
const RARE = 100
const START = Date.parse('2026-11-22T10:00:00Z')
const FOREVER = '2100-01-01T00:00:00.000Z'

/** Whether a page of the history takes longer with a long history: in SQLite, and in the MongoDB of MONGODB_URL if set. */
export const dispatchList: Figure = {
  name: 'dispatch-list',
  title: `a page of ${LIMIT} dispatches of 100,000 to one of ${SHORT}`,
  goal: { atMost: 1.5 },
  unit: 'x',
  measure: (bench) => measureInStores(bench, compare),
}

/** The pages that are compared, for a history of `count` records. */
const pagesOf = (count: number): Record<string, Partial<DispatchQuery>> => ({
  first: {},
  last: { untilMs: START + LIMIT },
  middle: { untilMs: START + count / 2 },
  flow: { flow: 'rare' },
  status: { status: 'error' },
  both: { flow: 'rare', status: 'error' },
})

/** Reads pages of both histories alternately, so that other work on the machine affects both. The result is that of the slowest kind of page. */
async function compare({ name, store, long }: BenchStore, bench: Bench): Promise<Measured> {
  const histories = [SHORT, long].map((count) => ({ tenant: `t_${count}` as TenantId, pages: pagesOf(count), count }))
  for (const { tenant, count } of histories) await fill(store, tenant, { count, bench })
  const dispatches = new StoredDispatches(store)
  const ratios: [string, number, number][] = []
  for (const page of Object.keys(pagesOf(SHORT))) {
    const times: number[][] = [[], []]
    for (let round = -WARM_UP; round < bench.pick(500, 300); round += 1) {
      for (const [i, { tenant, pages }] of histories.entries()) {
        const start = performance.now()
        await dispatches.list(tenant, { kind: 'run', limit: LIMIT, ...pages[page] })
        if (round >= 0) times[i]?.push(performance.now() - start)
      }
      bench.signal.throwIfAborted()
    }
    const [short = 0, longer = 0] = times.map(median)
    ratios.push([page, short, longer])
  }
  const shown = ratios.map(([page, short, longer]) => `${page} ${toUs(short)}/${toUs(longer)}`).join(', ')
  const value = Math.max(...ratios.map(([, short, longer]) => longer / short))
  return { value, detail: `${name} us of ${SHORT}/${long}: ${shown}` }
}

const toUs = (ms: number): string => (1000 * ms).toFixed(0)

async function fill(store: Store, tenant: TenantId, { count, bench }: { count: number; bench: Bench }): Promise<void> {
  const records = store.collection(DISPATCHES)
  const every = count / RARE
  const put = (i: number) => {
    const isRare = i % every === 0
    return records.insert(tenant, toDoc(newRecord(i, isRare ? 'rare' : 'usual', isRare ? 'error' : 'ok')))
  }
  for (let i = 0; i < count; i += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, j) => put(i + j)))
    bench.signal.throwIfAborted()
  }
}

const newRecord = (i: number, name: string, status: 'ok' | 'error'): Dispatch => ({
  trace_id: newTraceId(),
  kind: 'run',
  subject: 'anonymous',
  flow: { name, uid: 'flow_0', version: 1 },
  provider_instance: 'main',
  model: 'a-model-of-today',
  fallback: null,
  served_instance: 'main',
  idempotency_key: null,
  status,
  error: null,
  started_at: new Date(START + i).toISOString(),
  ended_at: new Date(START + i + 900).toISOString(),
  duration_ms: 900,
  turns: 1,
  input_tokens: 1_000,
  output_tokens: 200,
  cost_usd: 0.01,
  executor: 1,
  keeps_payloads: true,
  expires_at: FOREVER,
})
