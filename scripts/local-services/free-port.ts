import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Below every system's range of outgoing ports: a client that keeps calling a dead port of that range may connect to itself
// in the end, and hold the port that its server wants back.
const FIRST = 20_000
const LAST = 31_999
const TRIES = 50

/** A loopback port that was free a moment ago, for a server that has to come back on the same one. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = randomInt(FIRST, LAST + 1)
    if (await isFree(port)) return port
  }
  throw new Error(`${TRIES} ports between ${FIRST} and ${LAST} are taken`)
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
