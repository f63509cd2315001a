import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Counts, FirstPorts } from './slots.ts'
import { EXIT_CONFIG, StartFailure } from './supervisor.ts'

/** The ports that follow from a setting. Without one (0: any free ports) there is no range. */
type Range = { setting: 'PORT' | 'OPS_PORT'; first: number; last: number; text: string }

const MAX_PORT = 65_535
const EXIT_FAILURE = 1

/** Refuses ports that do not fit, then those that are in use, before anything is started. Throws `StartFailure`. */
export async function checkPorts(counts: Counts, first: FirstPorts, host: string): Promise<void> {
  const ranges = rangesOf(counts, first)
  refuseMisfits(ranges)
  for (const range of ranges)
    for (let port = range.first; port <= range.last; port++)
      if (await isInUse(port, host)) throw new StartFailure(inUse(`${host}:${port}`, range), EXIT_FAILURE)
}

function rangesOf({ gateways, workers, executors }: Counts, { port, opsPort }: FirstPorts): Range[] {
  const rangeOf = (setting: Range['setting'], [first, count]: [number, number], who: string): Range => {
    const last = first + count - 1
    return { setting, first, last, text: `${who} take ${setting}, ${setting}+1 … (${first} to ${last})` }
  }
  return [
    rangeOf('PORT', [port, gateways], 'the gateways'),
    rangeOf('OPS_PORT', [opsPort, gateways + workers + executors], 'the ops listeners of all processes'),
  ].filter(({ first }) => first !== 0)
}

function refuseMisfits(ranges: readonly Range[]): void {
  for (const { setting, first, last, text } of ranges)
    if (last > MAX_PORT)
      throw new StartFailure(`${setting}=${first}: ${text}: wanted ${MAX_PORT - last + first} at most`, EXIT_CONFIG)
  const [own, ops] = ranges
  if (!own || !ops || own.last < ops.first || ops.last < own.first) return
  const cure = `set OPS_PORT to ${own.last + 1} or above, or to 0 for any free ports`
  throw new StartFailure(
    `OPS_PORT=${ops.first} meets PORT=${own.first}: ${own.text}, and ${ops.text}: ${cure}`,
    EXIT_CONFIG,
  )
}

const inUse = (place: string, { setting, text }: Range): string =>
  `${place} is in use: ${text}: set ${setting} so that all of them are free, or to 0 for any free ports`

/** An address that cannot be used for another reason is reported by the process that listens there. */
async function isInUse(port: number, host: string): Promise<boolean> {
  const server = createServer().listen(port, host)
  try {
    await once(server, 'listening')
  } catch (cause) {
    return cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE'
  }
  server.close()
  await once(server, 'close')
  return false
}
