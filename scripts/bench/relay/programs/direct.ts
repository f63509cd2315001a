import { createServer } from 'node:http'
import express, { type Request, type Response } from 'express'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { createMemoryBroker } from '../../../../shared/cluster/memory.ts'
import { createMemoryPermissionStore } from '../../../../shared/cluster/permissions/memory-store.ts'
import { type AgentEvent, isTerminal } from '../../../../shared/kernel/events.ts'
import { Player, type Sink } from '../source/player.ts'
import { readScript } from '../source/script.ts'
import { createSyntheticInbox } from '../source/synthetic-inbox.ts'
import { BARE_PATH } from '../target.ts'
import { answerCalls } from './answer.ts'
import { appOn } from './app.ts'
import { openBare } from './bare.ts'

const KEEPALIVE_MS = 15_000

/** One process that creates the events and sends them: with minimal code under /bare, and with the product's code under its path. */
const player = new Player()
const bare = express().post(BARE_PATH, (req, res) => {
  void openBare(req, res).then((prompt) => {
    const gone = new AbortController()
    res.once('close', () => gone.abort())
    player.play(readScript(prompt), new ResponseSink(req, res), gone.signal)
  })
})
const app = appOn(createMemoryBroker(createSyntheticInbox(), createMemoryPermissionStore()), KEEPALIVE_MS)
const server = createServer((req, res) => (req.url?.startsWith(BARE_PATH) ? bare(req, res) : app(req, res)))
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  const address = server.address()
  answerCalls({ port: typeof address === 'object' ? (address?.port ?? 0) : 0 })
})

/** Writes `per_write` events at a time to a response. */
class ResponseSink implements Sink {
  readonly #res: Response
  readonly #perWrite: number
  #seq = 0
  #text = ''
  #count = 0

  constructor(req: Request, res: Response) {
    this.#res = res
    this.#perWrite = Number(req.query['per_write'] ?? 1)
  }

  append(event: AgentEvent): void {
    this.#text += renderFrame(++this.#seq, event)
    const isLast = isTerminal(event)
    if (++this.#count < this.#perWrite && !isLast) return
    this.#res.write(this.#text)
    this.#text = ''
    this.#count = 0
    if (isLast) this.#res.end()
  }

  get isBackpressured(): boolean {
    return this.#res.writableNeedDrain
  }

  waitForDrain(): Promise<void> {
    return new Promise((resolve) => this.#res.once('drain', resolve).once('close', resolve))
  }
}
