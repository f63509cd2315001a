import { createServer, type ServerResponse } from 'node:http'
import { createKeepalive, type KeepaliveTarget } from '../../../../services/gateway/streams/keepalive.ts'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { LoopDelay } from '../loop-delay.ts'
import { TURN_START } from '../source/prepared-events.ts'
import { answerCalls, readOptions } from './answer.ts'
import { openBare } from './bare.ts'

const KEEPALIVE = Buffer.from(': keepalive\n')

class Idle implements KeepaliveTarget {
  readonly #res: ServerResponse

  constructor(res: ServerResponse) {
    this.#res = res
  }

  sendKeepalive(): void {
    this.#res.write(KEEPALIVE)
  }
}

/** A plain node:http server that holds idle streams on the product's timer wheel for keepalives. */
const { keepaliveMs } = readOptions()
const wheel = createKeepalive(keepaliveMs)
const streams = new Set<Idle>()
const delay = new LoopDelay()

const server = createServer((req, res) => {
  const stream = new Idle(res)
  void openBare(req, res).then(() => {
    res.write(renderFrame(1, TURN_START))
    const place = wheel.add(stream)
    streams.add(stream)
    res.once('close', () => {
      place.leave()
      streams.delete(stream)
    })
  })
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  const address = server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  answerCalls(
    { port },
    {
      watchLoop: () => delay.start(),
      maxLoopDelayMs: () => delay.maxMs(),
      /** The design without a timer wheel: one timer for all streams. */
      sendAllKeepalives: () => {
        setTimeout(() => {
          for (const stream of streams) stream.sendKeepalive()
        })
      },
    },
  )
})
