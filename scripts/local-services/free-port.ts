import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the range of outgoing ports of every system. A client that keeps connecting to a closed port within that range may
// connect to itself and occupy the port that its server needs after a restart.
const FIRST = 20_000
const LAST = 31_999
const TRIES = 50

/** A loopback port that was free a moment ago, for a server that must restart on the same port. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = randomInt(FIRST, LAST + 1)
    if (await isFree(port)) return port
  }
  throw new Error(`no free port after ${TRIES} attempts between ${FIRST} and ${LAST}`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
