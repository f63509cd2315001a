import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { BASE_PATH, type ScaleCluster } from './cluster.ts'

/** A stream that is being read. `events` counts its frames. */
export type Reading = { events: number; hasEnded: boolean; text: string; ended: Promise<void>; close(): void }

const FRAME = Buffer.from('\nevent: ')
/** A stream's end, by which a complete run is known. */
const DONE = 'event: done\n'
const KEPT_CHARS = 400

/** Sends requests to all gateways of a cluster in turn, and counts events without parsing them. */
export class ScaleClient implements Disposable {
  readonly #ports: readonly number[]
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
  #sent = 0

  constructor({ ports }: Pick<ScaleCluster, 'ports'>) {
    this.#ports = ports
  }

  /** Opens a stream. Throws when it is refused. */
  async open(path: string, body: object): Promise<Reading> {
    const { req, res } = await this.#send(path, body)
    if (res.statusCode !== 200) throw new Error(`${path} answered ${res.statusCode}`)
    const reading: Reading = {
      events: 0,
      hasEnded: false,
      text: '',
      ended: Promise.resolve(),
      close: () => void req.destroy(),
    }
    res.on('data', (bytes: Buffer) => {
      for (let at = bytes.indexOf(FRAME); at >= 0; at = bytes.indexOf(FRAME, at + 1)) reading.events++
      reading.text = (reading.text + bytes.toString('latin1')).slice(-KEPT_CHARS)
    })
    res.on('error', () => undefined)
    const { promise, resolve } = Promise.withResolvers<void>()
    res.once('close', () => {
      reading.hasEnded = true
      resolve()
    })
    reading.ended = promise
    return reading
  }

  /** Reads a run to its end. Throws when it is refused or fails. */
  async run(path: string, body: object): Promise<void> {
    const reading = await this.open(path, body)
    await reading.ended
    if (!reading.text.includes(DONE)) throw new Error(`${path} ended with ${reading.text.slice(-200)}`)
  }

  async json(path: string, body: object): Promise<Record<string, unknown>> {
    const { res } = await this.#send(path, body)
    let text = ''
    for await (const chunk of res) text += String(chunk)
    if ((res.statusCode ?? 500) >= 300) throw new Error(`${path} answered ${res.statusCode}: ${text.slice(0, 200)}`)
    return JSON.parse(text) as Record<string, unknown>
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }

  async #send(path: string, body: object): Promise<{ req: ClientRequest; res: IncomingMessage }> {
    const text = JSON.stringify(body)
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
    const port = this.#ports[this.#sent++ % this.#ports.length]
    const req = request({
      host: '127.0.0.1',
      port,
      method: 'POST',
      path: BASE_PATH + path,
      agent: this.#agent,
      headers,
    })
    req.on('error', () => undefined) // A stream that is closed, or the wait for the response fails.
    req.end(text)
    const [res]: IncomingMessage[] = await once(req, 'response')
    if (!res) throw new Error(`${path} did not answer`)
    return { req, res }
  }
}

/** Calls `work` from this many callers at a time, each again and again until the time is over. Resolves with how often. */
export async function closedLoop(
  work: () => Promise<unknown>,
  { callers, ms }: { callers: number; ms: number },
): Promise<number> {
  const deadline = performance.now() + ms
  let count = 0
  const caller = async () => {
    while (performance.now() < deadline) {
      await work()
      count++
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return count
}

/** Calls `work` `count` times, this many at a time. */
export async function times(count: number, atOnce: number, work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const caller = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, caller))
}
