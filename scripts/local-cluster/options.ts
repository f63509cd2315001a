import { parseArgs } from 'node:util'
import { type Config, ConfigError, loadConfig } from '../../shared/platform/config/config.ts'
import { EXIT_CONFIG, StartFailure, toFailure } from './supervisor.ts'

export type ClusterOptions = { gateways: number; workers: number; executors: number; restarts: boolean }

export const USAGE = 'usage: scripts/cluster [--gateways N] [--workers N] [--executors N] [--no-restart] [--help]'
export const ABOUT = `Installs what is missing and runs the clustered form on this machine: gateways, workers and
executors as separate processes, and a Redis and a MongoDB unless REDIS_URL, REDIS_SENTINELS or
REDIS_CLUSTER, and MONGODB_URL, name some. A process that dies is started again.

The gateways take the ports PORT, PORT+1 …, and for operations every process takes one of
OPS_PORT, OPS_PORT+1 …: first the gateways, then the workers, then the executors.

  --gateways N   number of gateways (2)
  --workers N    number of workers (2)
  --executors N  number of executors, which run flows and plans (1); 0 for none
  --no-restart   leave dead processes dead`
const EXIT_USAGE = 2

/** Parses the arguments of scripts/cluster. Throws `StartFailure` with the usage. */
export function readOptions(args: string[]): ClusterOptions {
  const values = parse(args)
  return {
    gateways: countOf(values.gateways, 1),
    workers: countOf(values.workers, 1),
    executors: countOf(values.executors, 0),
    restarts: !values['no-restart'],
  }
}

function parse(args: string[]) {
  const count = (by: string) => ({ type: 'string', default: by }) as const
  const options = {
    gateways: count('2'),
    workers: count('2'),
    executors: count('1'),
    'no-restart': { type: 'boolean', default: false },
  } as const
  try {
    return parseArgs({ args, options }).values
  } catch (cause) {
    throw new StartFailure(`${toFailure(cause).message}\n${USAGE}`, EXIT_USAGE)
  }
}

function countOf(raw: string, least: 0 | 1): number {
  if (/^(0|[1-9]\d{0,2})$/.test(raw) && Number(raw) >= least) return Number(raw)
  throw new StartFailure(`${raw} is not a number from ${least} to 999\n${USAGE}`, EXIT_USAGE)
}

/** Placeholders: the Redis and the MongoDB that this script starts have no addresses yet. */
const OWN = { REDIS_URL: 'redis://127.0.0.1', MONGODB_URL: 'mongodb://127.0.0.1' }

/** Checks the configuration of all processes before anything is started. Throws `StartFailure` with exit code 78. */
export const readConfig = (env: Readonly<Record<string, string>>): Config =>
  refusing(() => loadConfig({ ...OWN, ...env }, 'cluster'))

/** Calls `read`, and turns a `ConfigError` into a `StartFailure` with exit code 78. */
export function refusing<T>(read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause
    throw new StartFailure(cause.problems.join('\n'), EXIT_CONFIG)
  }
}
