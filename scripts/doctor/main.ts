import { parseArgs } from 'node:util'
import { hideSettings, readSettings } from '../../services/wiring/secrets/hidden-environment.ts'
import { ConfigError, loadConfig } from '../../shared/platform/config/config.ts'
import { checkAccess } from './access.ts'
import { type Check, type Finding, type Patient, reasonOf } from './finding.ts'
import { checkIssuer, checkToken } from './issuer.ts'
import { checkMasterKey } from './keys.ts'
import { checkFolders, checkOpenFiles } from './machine.ts'
import { checkModels } from './models.ts'
import { checkMongo } from './mongo.ts'
import { checkStreaming, checkTrustedHops } from './public-url.ts'
import { checkClock, checkRedis } from './redis.ts'

const USAGE = `usage: npm run doctor -- [--url URL] [--help]

Looks for faults in the configuration and in what the processes use, and prints one line for each, with its cure. It reads the
environment of the processes (scripts/cluster --help), so run it where they run, as the same user. It is safe while they run: it writes
one document and one file, and deletes both. It sends one short request to the model of MODEL and one to that of FALLBACK_MODEL.

  --url URL      the address that clients use, with the base path: https://agents.example.com/api/v1. It gets ten requests, one of
                 which starts a short run. Without it, proxies and buffering are not checked.
  DOCTOR_TOKEN   an access token for this address, where one is required

Exit codes: 0 without a finding, 1 with one, 2 for a wrong argument, 78 when the configuration is wrong.
`
const EXIT_FINDING = 1
const EXIT_USAGE = 2
const EXIT_CONFIG = 78

const CHECKS: Record<string, Check> = {
  redis: checkRedis,
  mongodb: checkMongo,
  clock: checkClock,
  'master key': checkMasterKey,
  models: checkModels,
  issuer: checkIssuer,
  token: checkToken,
  access: checkAccess,
  'open files': checkOpenFiles,
  folders: checkFolders,
  proxies: checkTrustedHops,
  streaming: checkStreaming,
}

process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  const options = readOptions(args)
  if (typeof options === 'string') return printTo(process.stderr, options, EXIT_USAGE)
  if (options.help) return printTo(process.stdout, USAGE, 0)
  const patient = readPatient(options.url)
  if ('problems' in patient) {
    for (const problem of patient.problems) print('settings', { problem, cure: 'correct the variable' })
    return EXIT_CONFIG
  }
  let count = 0
  for (const [name, check] of Object.entries(CHECKS)) {
    if (!applies(name, patient)) continue
    const findings = await check(patient).catch((cause: unknown) => [unexplained(cause)])
    for (const finding of findings) print(name, finding)
    if (findings.length === 0) console.log(`ok       ${name}`)
    count += findings.length
  }
  console.log(count === 0 ? 'No fault was found.' : `${count} ${count === 1 ? 'fault was' : 'faults were'} found.`)
  return count === 0 ? 0 : EXIT_FINDING
}

function readOptions(args: string[]): { url?: string; help?: boolean } | string {
  try {
    const { values } = parseArgs({ args, options: { url: { type: 'string' }, help: { type: 'boolean', short: 'h' } } })
    if (values.url === undefined || /^https?:$/.test(URL.parse(values.url)?.protocol ?? '')) return values
    return `--url holds "${values.url}": wanted an address such as https://agents.example.com/api/v1\n`
  } catch (cause) {
    return `${reasonOf(cause)}\n${USAGE}`
  }
}

/** With REDIS_URL it is a cluster. */
function readPatient(url: string | undefined): Patient | { problems: readonly string[] } {
  try {
    const settings = readSettings(process.env)
    hideSettings(process, process.env, settings) // Programs of the processes' tools run beside it.
    const isCluster = Boolean(settings['REDIS_URL'])
    const config = loadConfig(settings, isCluster ? 'cluster' : 'standalone')
    return { config, isCluster, publicUrl: url?.replace(/\/+$/, ''), token: settings['DOCTOR_TOKEN'] || undefined }
  } catch (cause) {
    if (cause instanceof ConfigError) return cause
    throw cause
  }
}

/** The checks that apply: a standalone server has no Redis and no MongoDB, and some checks need an address. */
function applies(name: string, { isCluster, publicUrl, token, config }: Patient): boolean {
  if (['redis', 'mongodb', 'clock'].includes(name)) return isCluster
  if (['proxies', 'streaming'].includes(name)) return publicUrl !== undefined
  if (name === 'issuer') return config.oidcIssuer !== undefined
  if (name === 'models') return config.model !== undefined
  return name !== 'token' || token !== undefined
}

function unexplained(cause: unknown): Finding {
  return { problem: `the check failed: ${reasonOf(cause)}`, cure: 'report it with this line' }
}

function print(name: string, { problem, cure }: Finding): void {
  console.log(`PROBLEM  ${name}: ${problem}. Cure: ${cure}.`)
}

function printTo(stream: NodeJS.WriteStream, text: string, code: number): number {
  stream.write(text)
  return code
}
