import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openClusterStore, openStandaloneStore, SQLITE_FILE } from '../services/wiring/open-store.ts'
import { hideSettings, readSettings } from '../services/wiring/secrets/hidden-environment.ts'
import { createLog } from '../shared/kernel/log.ts'
import { type Config, ConfigError, loadConfig } from '../shared/platform/config/config.ts'
import { createKeyring, type Keyring } from '../shared/tenancy/secrets/keyring.ts'
import { rewrapAll } from '../shared/tenancy/tenant-config/rewrap.ts'

const USAGE = `usage: scripts/rewrap-keys [--help]

Wraps every stored secret of every tenant under the primary master key, so that a former master key can be removed. It is
safe while servers run, may be run again at any time, and then changes only what is not under the primary key yet. It prints
counts per tenant and never a key.

Reads the environment of the servers:
  MASTER_KEY           the new, primary key
  MASTER_KEY_PREVIOUS  the former keys, comma-separated
  MONGODB_URL, MONGODB_DB
                       the database of a cluster
  DATA_DIR             without MONGODB_URL: the folder of the standalone form's database [./data]

A rotation without a failed run:
  1. Restart every process with the old key as MASTER_KEY and the new one in MASTER_KEY_PREVIOUS.
     (Optional when no key is stored during step 2: a process that does not know the new key cannot read what is sealed with it.)
  2. Restart every process with the new key as MASTER_KEY and the old one in MASTER_KEY_PREVIOUS.
  3. Run scripts/rewrap-keys with the environment of step 2.
  4. Restart every process without MASTER_KEY_PREVIOUS, and delete the old key. Backups taken before step 3 still need it.

Exit codes: 0 when every record is under the primary key, 1 when a record could not be wrapped or the store could not be read,
78 when the configuration is wrong.
`
const EXIT_FAILURE = 1
const EXIT_CONFIG = 78

const { values: options } = parseArgs({ options: { help: { type: 'boolean', short: 'h', default: false } } })
process.exitCode = options.help ? printUsage() : await main()

function printUsage(): number {
  process.stdout.write(USAGE)
  return 0
}

async function main(): Promise<number> {
  const config = readConfig()
  if (!config) return EXIT_CONFIG
  const { masterKey, masterKeysPrevious, mongodbUrl, dataDir } = config
  if (!masterKey) return refuse('MASTER_KEY is not set: it is the key that all records will be under', EXIT_CONFIG)
  const file = join(dataDir, SQLITE_FILE)
  if (mongodbUrl === undefined && !existsSync(file)) {
    return refuse(`there is no ${file}: set MONGODB_URL, or DATA_DIR as the server has it`, EXIT_CONFIG)
  }
  try {
    return await rewrapStore(config, createKeyring(masterKey, masterKeysPrevious))
  } catch (cause) {
    return refuse(
      `the store could not be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      EXIT_FAILURE,
    )
  }
}

/** The configuration of the standalone form asks for no Redis, which this does not use. */
function readConfig(): Config | undefined {
  try {
    const settings = readSettings(process.env)
    hideSettings(process, process.env, settings) // Servers of this user, with their tools' programs, run beside it.
    return loadConfig(settings, 'standalone')
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause
    refuse(cause.problems.join('\n'), EXIT_CONFIG)
    return undefined
  }
}

async function rewrapStore(config: Config, keyring: Keyring): Promise<number> {
  const log = createLog({ level: 'error', secrets: config.secrets })
  const store = await (config.mongodbUrl === undefined ? openStandaloneStore(config) : openClusterStore(config, log))
  if (!store) throw new Error('there is none')
  const total = { tenants: 0, rewrapped: 0, current: 0, failures: 0 }
  try {
    for await (const { tenant, rewrapped, current, failures } of rewrapAll(store.tenantConfigs, keyring)) {
      say(`tenant ${tenant}: ${rewrapped} wrapped, ${current} already under ${keyring.primary.id}`)
      for (const failure of failures) say(`tenant ${tenant}: ${failure}`)
      total.tenants += 1
      total.rewrapped += rewrapped
      total.current += current
      total.failures += failures.length
    }
  } finally {
    await store.close()
  }
  say(
    `${total.tenants} tenants: ${total.rewrapped} records wrapped, ${total.current} already under ${keyring.primary.id}`,
  )
  if (total.failures > 0) return refuse(`${total.failures} records need a key that is missing: see above`, EXIT_FAILURE)
  say('No record needs another master key.')
  return 0
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function refuse(message: string, code: number): number {
  process.stderr.write(`${message}\n`)
  return code
}
