import { parseArgs } from 'node:util'
import { type Config, ConfigError, loadConfig } from '../../shared/config/config.ts'
import { StartFailure, toFailure } from './supervisor.ts'

export type ClusterOptions = { gateways: number; workers: number; restarts: boolean }

const USAGE = 'usage: scripts/cluster [--gateways N] [--workers N] [--executors N] [--no-restart]'
const EXIT_USAGE = 2
const EXIT_CONFIG = 78

/** Throws `StartFailure` with the usage. */
export function readOptions(args: string[]): ClusterOptions {
  const values = parse(args)
  return { gateways: countOf(values.gateways), workers: countOf(values.workers), restarts: !values['no-restart'] }
}

function parse(args: string[]) {
  const count = { type: 'string', default: '2' } as const
  const options = {
    gateways: count,
    workers: count,
    executors: count,
    'no-restart': { type: 'boolean', default: false },
  } as const
  try {
    return parseArgs({ args, options }).values
  } catch (cause) {
    throw new StartFailure(`${toFailure(cause).message}\n${USAGE}`, EXIT_USAGE)
  }
}

function countOf(raw: string): number {
  if (/^[1-9]\d{0,2}$/.test(raw)) return Number(raw)
  throw new StartFailure(`wanted a number from 1 to 999, not ${raw}\n${USAGE}`, EXIT_USAGE)
}

/** Stands in while the private Redis has no address yet. */
const ANY_REDIS = 'redis://127.0.0.1'

/** What each process will read, checked once, before anything is installed or started. Throws `StartFailure` with exit code 78. */
export function readConfig(env: Readonly<Record<string, string>>): Config {
  try {
    return loadConfig({ ...env, REDIS_URL: env['REDIS_URL'] ?? ANY_REDIS }, 'cluster')
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause
    throw new StartFailure(cause.problems.join('\n'), EXIT_CONFIG)
  }
}
