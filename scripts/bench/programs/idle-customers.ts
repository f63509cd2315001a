import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStandalone } from '../../../services/standalone/standalone.ts'
import { openStandaloneStore } from '../../../services/wiring/open-store.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { loadConfig } from '../../../shared/platform/config/config.ts'
import { groupSettings } from '../../../shared/platform/config/groups.ts'
import { collectGarbage } from '../garbage.ts'

// Runs the standalone form in this process to measure its heap. Prints the heap before and after a number of
// customers with long histories have had a run each and are idle in the cache. Arguments: customers, past runs of each.
const [customers = 0, history = 0] = process.argv.slice(2).map(Number)
const PROMPT_CHARS = 20_000
const AT_ONCE = 16
const MIB = 2 ** 20
const RUNS_GONE_WITHIN_MS = 10_000
/** Ended runs are kept until they are recorded, behind their ends. */
const RECORDED_WITHIN_MS = 1_000

const dataDir = mkdtempSync(join(tmpdir(), 'agent-engine-bench-'))
process.once('exit', () => rmSync(dataDir, { recursive: true, force: true }))
const config = loadConfig(
  { DATA_DIR: dataDir, PORT: '0', OPS_PORT: '0', RATE_LIMIT_RPM: '0', RUN_RESUME_SECS: '0', MODEL_PROVIDER: 'demo' },
  'standalone',
)
const log = createLog({ level: 'error', secrets: [], write: () => {} })

await writeHistories()
const { url, closers } = await openStandalone(groupSettings(config), log)
await runAll(() => undefined) // Memory that runs without a customer leave behind does not count.
const none = await heapMiB()
await runAll(nameOf)
const idle = await heapMiB()
process.stdout.write(`${JSON.stringify({ none, idle })}\n`)
for (const closer of closers) await closer.close()
process.exit(0)

function nameOf(n: number): string {
  return `customer-${n}`
}

async function writeHistories(): Promise<void> {
  const store = await openStandaloneStore(config)
  await each(async (n) => {
    for (let past = 0; past < history; past++) {
      const input = `${n} ${past} ${'a long question '.repeat(PROMPT_CHARS / 16)}`
      await store?.ledger.append(DEFAULT_TENANT, nameOf(n), { run_id: `run_${n}_${past}`, input, output: input })
    }
  })
  await store?.close()
}

async function runAll(customerOf: (n: number) => string | undefined): Promise<void> {
  await each(async (n) => {
    const response = await fetch(`${url}/agent/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: '/say hello', customer_id: customerOf(n) }),
    })
    const text = await response.text()
    if (!text.includes('\nevent: done\n') || text.includes('customer_scope_fallback')) throw new Error(text)
  })
}

/** Calls `act` for each customer, 16 at a time. */
async function each(act: (n: number) => Promise<void>): Promise<void> {
  let next = 0
  const work = async () => {
    while (next < customers) await act(next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

/** The heap after a garbage collection, once all runs have ended and are recorded. */
async function heapMiB(): Promise<number> {
  const deadline = performance.now() + RUNS_GONE_WITHIN_MS
  while ((await countOpenRuns()) > 0) {
    if (performance.now() > deadline) throw new Error(`runs are still open after ${RUNS_GONE_WITHIN_MS} ms`)
  }
  await sleep(RECORDED_WITHIN_MS)
  collectGarbage()
  collectGarbage()
  return process.memoryUsage().heapUsed / MIB
}

async function countOpenRuns(): Promise<number> {
  const page = (await (await fetch(`${url}/runs`)).json()) as { runs: { ended_at: string | null }[] }
  return page.runs.filter(({ ended_at }) => ended_at === null).length
}
