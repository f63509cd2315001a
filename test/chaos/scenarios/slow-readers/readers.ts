import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { now } from '../../history.ts'

const TICK = /event: text_delta\ndata: {"text":"(\d+\.?\d*) "/g
const TRIES = 5
const RETRY_MS = 1_000

export type Ticking = { readers: number; ticks: number; everyMs: number }

/** Readers that keep up, all at the same time. Resolves with the age of each event at its arrival, in milliseconds. Throws when one is missing. */
export async function readTicks(url: string, { readers, ticks, everyMs }: Ticking): Promise<number[]> {
  const agent = new Agent({ keepAlive: true })
  const reading = Array.from({ length: readers }, async (_, i) => {
    await sleep((i * everyMs) / readers) // Staggered, so that the events are spread over time.
    return readOne(url, agent, `/ticks ${ticks} ${everyMs}`)
  })
  const ages = (await Promise.all(reading)).flat()
  agent.destroy()
  if (ages.length === readers * ticks) return ages
  throw new Error(`${ages.length} of ${readers * ticks} events arrived`)
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

/** Reads the streams of this prompt to their ends, as many at the same time. */
export async function readAll(url: string, prompt: string, readers: number): Promise<void> {
  const agent = new Agent()
  const read = async () => once((await post(url, agent, prompt)).resume(), 'end')
  await Promise.all(Array.from({ length: readers }, read))
}

/** Starts a run. Retries a 503: on a busy machine a worker may not confirm a run in time. */
async function post(url: string, agent: Agent, prompt: string): Promise<IncomingMessage> {
  for (let left = TRIES; ; left--) {
    const req = request(`${url}/agent/run`, { agent, method: 'POST', headers: { 'content-type': 'application/json' } })
    req.end(JSON.stringify({ prompt }))
    const [res]: IncomingMessage[] = await once(req, 'response')
    if (res?.statusCode === 200) return res
    res?.resume()
    if (res?.statusCode !== 503 || left === 1) throw new Error(`the run was refused with ${res?.statusCode}`)
    await sleep(RETRY_MS)
  }
}
