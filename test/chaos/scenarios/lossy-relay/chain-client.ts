import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { now } from '../../history.ts'
import type { Member, World } from '../../world.ts'
import { ChainReader } from './chain-reader.ts'

export type ChainRequest = {
  name: string
  /** Index of the first gateway. */
  first: number
  count: number
  /** Pieces at a time, and the time between them. */
  pieces: number
  everyMs: number
}

/** The part of a `World` that a client needs. */
export type ChainWorld = Pick<World, 'record'> & { gateways: readonly Pick<Member, 'name' | 'url'>[] }

const CONNECTIONS = 10
const RETRY_MS = 100

/** Reads one chain to its end. When a stream is cut, it resumes through the next gateway with the last number it has. */
export class ChainClient {
  readonly reader: ChainReader
  /** How each attempt but the last ended: an error code, the status of a refusal, or `reset`. */
  readonly cuts: string[] = []
  connections = 0
  readonly #world: ChainWorld
  readonly #request: ChainRequest
  #run = ''
  #refusal = ''

  constructor(world: ChainWorld, chained: ChainRequest) {
    this.#world = world
    this.#request = chained
    this.reader = new ChainReader(chained.name, chained.count)
  }

  async read(): Promise<void> {
    const { gateways } = this.#world
    while (this.connections < CONNECTIONS) {
      const gateway = gateways[(this.#request.first + this.connections++) % gateways.length]
      if (gateway) await this.#readThrough(gateway)
      if (this.reader.terminal?.event === 'done') return
      this.cuts.push(this.reader.terminal?.code ?? (this.#refusal || 'reset'))
      await sleep(RETRY_MS)
    }
  }

  async #readThrough({ name: gateway, url }: Pick<Member, 'name' | 'url'>): Promise<void> {
    const stream = `${this.#request.name} ${this.connections}`
    const after = this.reader.lastSeq
    this.reader.resume()
    try {
      const res = await this.#open(url)
      if (!res) return
      const isAgain = this.#run !== ''
      this.#run ||= String(res.headers['x-run-id'])
      this.#record({ kind: 'opened', stream, gateway, ...(isAgain && { after }) })
      res.setEncoding('latin1').on('data', (text: string) => this.reader.read(text))
      const isEnded = await once(res, 'end').then(
        () => true,
        () => false,
      )
      this.#recordFrames(stream, after)
      this.#record({ kind: 'closed', stream, how: isEnded ? 'ended' : 'reset' })
    } catch {
      // No answer: `read` tries the next gateway.
    }
  }

  async #open(url: string): Promise<IncomingMessage | undefined> {
    const { name, count, pieces, everyMs } = this.#request
    const body = JSON.stringify({ prompt: `/chain ${name} ${count} ${pieces} ${everyMs}` })
    const req = this.#run
      ? request(`${url}/runs/${this.#run}/events`, { agent: false, headers: { 'last-event-id': this.reader.lastSeq } })
      : request(`${url}/agent/run`, { agent: false, method: 'POST', headers: JSON_TYPE })
    req.end(this.#run ? undefined : body)
    const [res]: IncomingMessage[] = await once(req, 'response')
    this.#refusal = res?.statusCode === 200 ? '' : `status ${res?.statusCode}`
    if (res?.statusCode === 200) return res
    res?.resume()
    return undefined
  }

  /** Records all frames of a connection as one entry, since the reader has checked them one by one. */
  #recordFrames(stream: string, after: number): void {
    const { lastSeq, terminal } = this.reader
    const upTo = terminal && !terminal.repeats ? Math.min(lastSeq, terminal.seq - 1) : lastSeq
    if (upTo > after) this.#record({ kind: 'frame', stream, seq: after + 1, lastSeq: upTo, event: 'many' })
    if (!terminal) return
    const { seq, event, code, repeats } = terminal
    const marks = { isTerminal: true, ...(code && { code }), ...(repeats && { repeats }) }
    this.#record({ kind: 'frame', stream, seq, event, ...marks })
  }

  #record(entry: object): void {
    this.#world.record({ t: now(), run: this.#run, ...entry } as Parameters<World['record']>[0])
  }
}

const JSON_TYPE = { 'content-type': 'application/json' }
