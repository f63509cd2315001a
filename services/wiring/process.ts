import { flushCompileCache } from 'node:module'
import { type Config, ConfigError, loadConfig } from '../../shared/config/config.ts'
import type { Form } from '../../shared/config/fields.ts'
import { createLog, type Log, type LogFields } from '../../shared/log.ts'
import { type Closer, createShutdown } from '../../shared/shutdown.ts'

const EXIT_CONFIG = 78
/** What closing may take beyond DRAIN_SECS. */
const EXIT_MS = 10_000

/** What a process has opened: how it is closed, and what it says of itself when it is ready. */
export type Opened = { closers: Closer[]; ready: LogFields }

/** A process from its configuration to its end: a wrong one exits 78 (D1.3), SIGTERM and SIGINT close what was opened. */
export async function runProcess(form: Form, open: (config: Config, log: Log) => Promise<Opened>): Promise<void> {
  const config = readConfig(form)
  if (!config) return
  const log = createLog({ level: config.logLevel, secrets: config.secrets })
  for (const warning of config.warnings) log.warn(warning)
  try {
    const { closers, ready } = await open(config, log)
    onEnd(closers, config.drainMs, log)
    log.info('listening', ready)
    flushCompileCache() // Else it is written at the end, and a process that is killed leaves none.
  } catch (cause) {
    log.error('the start failed', { cause: cause instanceof Error ? cause.message : cause })
    process.exit(1)
  }
}

/** Tells every mistake at once, before anything is opened. */
function readConfig(form: Form): Config | undefined {
  try {
    return loadConfig(process.env, form)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${error.problems.join('\n')}\n`)
    process.exitCode = EXIT_CONFIG
    return undefined
  }
}

function onEnd(closers: Closer[], drainMs: number, log: Log): void {
  const exit = (code: number) => process.exit(code)
  const shutdown = createShutdown({ closers, deadlineMs: drainMs + EXIT_MS, log, exit })
  for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => shutdown.signal(name))
  process.on('uncaughtException', (cause) => shutdown.crash(cause))
  process.on('unhandledRejection', (cause) => shutdown.rejection(cause))
}
