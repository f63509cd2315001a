import { openStandaloneStore } from '../../../services/wiring/open-store.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { DAY_MS } from '../../../shared/kernel/time.ts'
import { loadConfig } from '../../../shared/platform/config/config.ts'
import { groupSettings } from '../../../shared/platform/config/groups.ts'
import type { RunUsage } from '../../../shared/tenancy/usage/port.ts'
import { UsageRecorder } from '../../../shared/tenancy/usage/recorder.ts'
import type { EndedRun } from '../../../shared/work/runs/records/store.ts'

/** Fills the store of a new `DATA_DIR` with as many runs as a busy tenant has in a month. */
export async function storeRuns(dataDir: string, count: number): Promise<void> {
  const config = loadConfig({ DATA_DIR: dataDir }, 'standalone')
  const { runRecords, close } = await openStandaloneStore(groupSettings(config).store)
  const now = Date.now()
  await runRecords.add(Array.from({ length: count }, (_, i) => endedRun(i, now - i * 1_000)))
  await close()
}

/** Some titles need a second line, so that not all rows have one height. */
function endedRun(number: number, startedAt: number): EndedRun {
  const record = {
    run_id: `run_${String(number).padStart(32, '0')}`,
    kind: 'message',
    status: number % 20 === 0 ? 'failed' : 'done',
    title: `Run number ${number}${' of a very long title'.repeat(number % 7 === 0 ? 5 : 0)}`,
    started_at: new Date(startedAt).toISOString(),
    ended_at: new Date(startedAt + 900).toISOString(),
    model: 'test-model',
    subject: 'somebody',
    event_count: 10,
    input_tokens: 1_200,
    output_tokens: 80,
    cost_usd: 0.01,
  } as const
  return { tenant: DEFAULT_TENANT, record, keptDays: 30 }
}

/** Run in the page: asks for the next page, and waits until it is shown. Returns whether there is another one. */
export const SHOW_MORE = `new Promise((resolve) => {
  const button = () => [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Show more')
  const observer = new MutationObserver(() => {
    observer.disconnect()
    requestAnimationFrame(() => resolve(button() !== undefined))
  })
  observer.observe(document.querySelector('.runs'), { attributeFilter: ['aria-rowcount'] })
  button().click()
})`

/** Counts what runs of the last days have used, `days` with the runs of each, the oldest first: the last is today (UTC). */
export async function storeUsage(dataDir: string, days: readonly (readonly Partial<RunUsage>[])[]): Promise<void> {
  const config = loadConfig({ DATA_DIR: dataDir }, 'standalone')
  const { usage, close } = await openStandaloneStore(groupSettings(config).store)
  let now = new Date()
  const recorder = new UsageRecorder({ store: usage, log: createLog({ level: 'error' }), now: () => now })
  const today = Date.now()
  for (const [i, runs] of days.entries()) {
    now = new Date(today - (days.length - 1 - i) * DAY_MS)
    for (const run of runs) recorder.add(DEFAULT_TENANT, { ...ENDED, ...run })
  }
  await recorder.close()
  await close()
}

const ENDED: RunUsage = {
  ...{ kind: 'run', model: 'small', hasFailed: false, isInvalid: false, input_tokens: 1_000, cache_read_tokens: 0 },
  ...{ cache_write_tokens: 0, output_tokens: 200, cost_usd: 1, ms: 2_000 },
}
