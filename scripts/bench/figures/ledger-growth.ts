import { createLedger, LEDGER } from '../../../shared/agent/customers/store/ledger.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import type { Store } from '../../../shared/platform/store/port.ts'
import type { Bench } from '../bench.ts'
import type { Figure, Measured } from '../figure.ts'
import { median } from '../statistics.ts'
import { type BenchStore, measureInStores } from '../stores.ts'

const SHORT = 100
const READ = 10
const AT_ONCE = 100
const WARM_UP = 200

/** Whether reading a customer's last entries takes longer with a long ledger: in SQLite, and in the MongoDB of MONGODB_URL if set. */
export const ledgerGrowth: Figure = {
  name: 'ledger-growth',
  title: `last ${READ} ledger entries of 100,000 to those of ${SHORT}`,
  goal: { atMost: 1.3 },
  unit: 'x',
  measure: (bench) => measureInStores(bench, compare),
}

/** Reads both ledgers alternately, so that other work on the machine affects both. */
async function compare({ name, store, long }: BenchStore, bench: Bench): Promise<Measured> {
  await fill(store, 'long', long)
  await fill(store, 'short', SHORT)
  const ledger = createLedger(store)
  const times: Record<'short' | 'long', number[]> = { short: [], long: [] }
  for (let round = -WARM_UP; round < bench.pick(2000, 1000); round += 1) {
    for (const customer of ['short', 'long'] as const) {
      const start = performance.now()
      await ledger.last(TENANT, customer, READ)
      if (round >= 0) times[customer].push(performance.now() - start)
    }
    bench.signal.throwIfAborted()
  }
  const [short, longer] = [median(times.short), median(times.long)]
  const detail = `${name} ${(1000 * short).toFixed(0)} us of ${SHORT}, ${(1000 * longer).toFixed(0)} us of ${long}`
  return { value: longer / short, detail }
}

async function fill(store: Store, customer_id: string, count: number): Promise<void> {
  const entries = store.collection(LEDGER)
  const input = 'a question of some length, as customers ask them '.repeat(4)
  const put = (seq: number) =>
    entries.insert(TENANT, {
      customer_id,
      seq,
      run_id: `run_${seq}`,
      input,
      output: input,
      timestamp: '2026-11-22T10:00:00.000Z',
    })
  for (let seq = 1; seq <= count; seq += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - seq + 1) }, (_, i) => put(seq + i)))
  }
}
