import { parseArgs } from 'node:util'
import { hideSettings, readSettings } from '../../services/wiring/secrets/hidden-environment.ts'
import { ConfigError } from '../../shared/platform/config/config.ts'
import { examine, lineOf } from './examine.ts'
import { type Patient, reasonOf } from './finding.ts'
import { patientOf } from './patient.ts'

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

process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  const options = readOptions(args)
  if (typeof options === 'string') return printTo(process.stderr, options, EXIT_USAGE)
  if (options.help) return printTo(process.stdout, USAGE, 0)
  const patient = readPatient(options.url)
  if ('problems' in patient) {
    for (const problem of patient.problems) console.log(lineOf('settings', { problem, cure: 'correct the variable' }))
    return EXIT_CONFIG
  }
  return (await examine(patient, console.log)) === 0 ? 0 : EXIT_FINDING
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

function readPatient(url: string | undefined): Patient | { problems: readonly string[] } {
  try {
    const settings = readSettings(process.env)
    hideSettings(process, process.env, settings) // Programs of the processes' tools run beside it.
    return patientOf(settings, url)
  } catch (cause) {
    if (cause instanceof ConfigError) return cause
    throw cause
  }
}

function printTo(stream: NodeJS.WriteStream, text: string, code: number): number {
  stream.write(text)
  return code
}
