import { parseArgs } from 'node:util'
import { COLLECTIONS } from '../../../../services/wiring/collections.ts'
import { createLedger } from '../../../../shared/agent/customers/store/ledger.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { openSqliteStore } from '../../../../shared/platform/store/sqlite/sqlite.ts'

// Appends runs of several customers to the ledger in --file until it is killed, and prints one line for each acknowledged run.
const { file = '' } = parseArgs({ options: { file: { type: 'string' } } }).values
const ledger = createLedger(await openSqliteStore({ file, collections: COLLECTIONS }))
const CUSTOMERS = 8

await Promise.all(
  Array.from({ length: CUSTOMERS }, async (_, c) => {
    for (let n = 1; ; n++) {
      const run_id = `run_${c}_${n}`
      const seq = await ledger.append(DEFAULT_TENANT, `c${c}`, { run_id, input: 'in', output: 'out'.repeat(100) })
      process.stdout.write(`acknowledged c${c} ${run_id} ${seq}\n`)
    }
  }),
)
