import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { readTail } from '../../../harness/read-tail.ts'
import { now } from '../../history.ts'

const TICK = /event: text_delta\ndata: {"text":"(\d+\.?\d*) "/g
/** A machine that is busy with other things makes workers miss their second: then it is tried again. */
const TRIES = 5
const AGAIN_MS = 1_000
const WITHIN_MS = 20_000

export type Ticking = { readers: number; ticks: number; everyMs: number }

/** Readers that keep up, all at once: how old each event was when it came, in milliseconds. Throws when some do not come. */
export async function readTicks(url: string, { readers, ticks, everyMs }: Ticking): Promise<number[]> {
  const agent = new Agent({ keepAlive: true })
  const reading = Array.from({ length: readers }, async (_, i) => {
    await sleep((i * everyMs) / readers) // Else all events would come in the same moment.
    return readOne(url, agent, `/ticks ${ticks} ${everyMs}`)
  })
  const ages = (await Promise.all(reading)).flat()
  agent.destroy()
  if (ages.length === readers * ticks) return ages
  throw new Error(`${ages.length} of ${readers * ticks} events came`)
}

async function readOne(url: string, agent: Agent, prompt: string): Promise<number[]> {
  const res = await post(url, agent, prompt)
  const ages: number[] = []
  let rest = ''
  res.setEncoding('latin1').on('data', (chunk: string) => {
    const at = now()
    const text = rest + chunk
    const whole = text.lastIndexOf('\n\n') + 1
    for (const [, time] of text.slice(0, whole).matchAll(TICK)) ages.push(at - Number(time))
    rest = text.slice(whole)
  })
  await once(res, 'end')
  return ages
}

/** Readers that keep up with whatever this prompt makes, all at once. */
export async function readAll(url: string, prompt: string, readers: number): Promise<void> {
  const agent = new Agent()
  const read = async () => once((await post(url, agent, prompt)).resume(), 'end')
  await Promise.all(Array.from({ length: readers }, read))
}

async function post(url: string, agent: Agent, prompt: string): Promise<IncomingMessage> {
  for (let tries = 1; ; tries++) {
    const req = request(`${url}/agent/run`, { agent, method: 'POST', headers: { 'content-type': 'application/json' } })
    req.end(JSON.stringify({ prompt }))
    const [res]: IncomingMessage[] = await once(req, 'response')
    if (res?.statusCode === 200) return res
    res?.resume()
    if (res?.statusCode !== 503 || tries === TRIES) throw new Error(`no run: ${res?.statusCode}`)
    await sleep(AGAIN_MS)
  }
}

/** A client that asks for a run, reads up to the run's id and then nothing more, unless it is told to. */
export class NeverReader {
  readonly runId: string
  readonly #socket: Socket

  private constructor(socket: Socket, runId: string) {
    this.#socket = socket
    this.runId = runId
  }

  static async open(url: string, prompt: string): Promise<NeverReader> {
    for (let tries = 1; ; tries++) {
      const socket = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('latin1')
      socket.on('error', () => {}) // Being cut off is what it is here for.
      const first = once(socket, 'data', { signal: AbortSignal.timeout(WITHIN_MS) })
      socket.write(requestFor(url, prompt))
      const [head] = (await first) as [string]
      socket.pause()
      const runId = /^x-run-id: (run_\w+)\r$/im.exec(head)?.[1]
      if (runId !== undefined) return new NeverReader(socket, runId)
      socket.destroy()
      if (tries === TRIES || !head.startsWith('HTTP/1.1 503')) throw new Error(`no run: ${head.slice(0, 200)}`)
      await sleep(AGAIN_MS)
    }
  }

  /** Reads what there is after all, to the end of the stream or of the connection, and tells the last of it. */
  readOn(): Promise<string> {
    this.#socket.setTimeout(WITHIN_MS, () => this.#socket.destroy())
    return readTail(this.#socket)
  }

  leave(): void {
    this.#socket.destroy()
  }
}

function requestFor(url: string, prompt: string): string {
  const body = JSON.stringify({ prompt })
  const head = `POST ${new URL(url).pathname}/agent/run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n`
  return `${head}Content-Length: ${body.length}\r\n\r\n${body}`
}
