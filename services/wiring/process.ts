import { flushCompileCache } from 'node:module'
import { basename, dirname } from 'node:path'
import packageFile from '../../package.json' with { type: 'json' }
import { createLog, type Log, type LogFields } from '../../shared/kernel/log.ts'
import { type Closer, createShutdown } from '../../shared/kernel/shutdown.ts'
import { type Config, ConfigError, loadConfig } from '../../shared/platform/config/config.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import { groupSettings, type Settings } from '../../shared/platform/config/groups.ts'
import { openTracing } from './open-tracing.ts'
import { findImportsByName } from './quick-imports.ts'
import { hideSettings, readSettings } from './secrets/hidden-environment.ts'

/** The major version in package.json's `engines`; a test keeps the two equal. */
export const MIN_NODE = 24

/** The product's version. */
export const VERSION = packageFile.version

const STARTED_AT = new Date().toISOString()

/** This process, and a check for others on its machine. */
export const ownProcess = {
  pid: process.pid,
  /** Its facts for operators. A gateway has no capacity. */
  asMember: (capacity?: number) => ({
    pid: process.pid,
    about: { version: VERSION, since: STARTED_AT, ...(capacity !== undefined && { capacity }) },
  }),
  isAlive(pid: number): boolean {
    try {
      return process.kill(pid, 0)
    } catch (cause) {
      return cause instanceof Error && 'code' in cause && cause.code === 'EPERM'
    }
  },
}

const EXIT_FAILURE = 1
const EXIT_CONFIG = 78
/** Time for the closers beyond DRAIN_SECS, for all of them together. */
const CLOSE_MS = 10_000

/** An opened process: how to close its parts, and the fields of its `listening` log line. */
export type Opened = { closers: Closer[]; ready: LogFields }

/**
 * Runs a process from its configuration to its end. Exit codes: 0 after a clean shutdown, 1 when the start fails or something did
 * not close, 78 when the configuration is wrong (D1.3a). SIGTERM and SIGINT close what `open` opened. It gets
 * the settings in groups, one for each part: nothing else has the whole configuration.
 */
export async function runProcess(form: Form, open: (settings: Settings, log: Log) => Promise<Opened>): Promise<void> {
  const config = isNodeNewEnough() ? readConfig(form) : undefined
  if (!config) return
  findImportsByName()
  if (usesPrograms(config)) hideSettings(process, process.env, config.variables)
  Object.assign(process.env, config.variables) // In memory only, for packages that read variables themselves.
  process.stdout.on('error', loseLines)
  const log = createLog({
    level: config.logLevel,
    secrets: config.secrets,
    atExit: (flush) => process.once('exit', flush),
  })
  for (const warning of config.warnings) log.warn(warning)
  try {
    const tracing = await openTracing(process.env, roleOf(process.argv[1]), log)
    const { closers, ready } = await open(groupSettings(config), log)
    closeOnSignals([...closers, ...tracing], config.drainMs, log)
    // Logged at every LOG_LEVEL: a supervisor waits for this line, and reads the addresses in it.
    createLog({ level: 'info', secrets: config.secrets }).info('listening', ready)
    flushCompileCache() // Node itself writes the cache only at exit, which a killed process never reaches.
  } catch (cause) {
    log.error('the start failed', { cause: cause instanceof Error ? cause.message : cause })
    process.exit(cause instanceof ConfigError ? EXIT_CONFIG : EXIT_FAILURE)
  }
}

/** When the log's reader has left, or the disk is full, the lines are lost but the process continues. */
const loseLines = () => {}

/** Whether tools of this process may start programs, which run as its user. */
export const usesPrograms = ({ isBashEnabled, mcpConfig }: Pick<Config, 'isBashEnabled' | 'mcpConfig'>): boolean =>
  isBashEnabled || mcpConfig !== undefined

/** The role of the process: the folder of its entry point. */
const roleOf = (entry = ''): string => basename(dirname(entry))

/** For a start without the scripts, which check this too. Node below 22.18 cannot load TypeScript and fails before this line. */
function isNodeNewEnough(): boolean {
  if (Number.parseInt(process.version.slice(1), 10) >= MIN_NODE) return true
  process.stderr.write(
    `agent-engine needs Node ${MIN_NODE} or newer and this is ${process.version}: run scripts/start, or install it from https://nodejs.org\n`,
  )
  process.exitCode = EXIT_FAILURE
  return false
}

/** Prints every problem of the configuration at once, before anything is opened. */
function readConfig(form: Form): Config | undefined {
  try {
    return loadConfig(readSettings(process.env), form)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${error.problems.join('\n')}\n`)
    process.exitCode = EXIT_CONFIG
    return undefined
  }
}

function closeOnSignals(closers: Closer[], drainMs: number, log: Log): void {
  const exit = (code: number) => process.exit(code)
  const shutdown = createShutdown({ closers, deadlineMs: drainMs + CLOSE_MS, log, exit })
  for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => shutdown.signal(name))
  process.on('uncaughtException', (cause) => shutdown.crash(cause))
  process.on('unhandledRejection', (cause) => shutdown.rejection(cause))
}
