import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Bench } from '../bench.ts'
import type { Figure, Measured } from '../figure.ts'

const CUSTOMERS = 256
/** Ledger entries of each: as many as a run receives as background. */
const HISTORY = 10
const PROGRAM = join(import.meta.dirname, '../programs/idle-customers.ts')

/** Heap that a full cache of idle customers occupies after a garbage collection. */
export const idleCustomers: Figure = {
  name: 'idle-customers',
  title: `heap of ${CUSTOMERS} idle cached customers`,
  goal: { atMost: 16 },
  unit: ' MiB',
  measure,
}

async function measure({ signal }: Bench): Promise<Measured> {
  const args = [PROGRAM, String(CUSTOMERS), String(HISTORY)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { signal, env: {} })
  const { none, idle } = JSON.parse(stdout) as { none: number; idle: number }
  return { value: idle - none, detail: `${none.toFixed(1)} MiB before them, ${idle.toFixed(1)} MiB with them` }
}
