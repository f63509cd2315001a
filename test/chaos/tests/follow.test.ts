import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect } from 'chai'
import { Random } from '../../harness/seed.ts'
import { check } from '../checker.ts'
import { follow } from '../follow.ts'
import type { Entry } from '../history.ts'
import { wordsFor } from '../load.ts'
import { StreamClient } from '../stream-client.ts'
import type { Member } from '../world.ts'
import { frame, send, serve } from './gateway-server.ts'

const delta = (seq: number) => frame(seq, 'text_delta', { text: 'a' })
const failed = (seq: number, code: string) => frame(seq, 'error', { code })

/** Follows a run whose first connection is answered by the first, the next by the second, and so on. */
async function play(...answers: ((req: IncomingMessage, res: ServerResponse) => void)[]) {
  const asked: (string | undefined)[] = []
  await using server = await serve((req, res) => {
    asked.push(req.headers['last-event-id'] as string | undefined)
    answers.shift()?.(req, res)
  })
  const history: Entry[] = []
  const world = {
    gateways: [{ url: server.url, name: 'gw1' } as Member],
    stream: (gateway: Member, what: { path: string; after?: number }) =>
      new StreamClient(
        { ...what, url: gateway.url, gateway: gateway.name },
        { record: (entry) => history.push(entry) },
      ),
  }
  const [gateway] = world.gateways as [Member]
  const first = world.stream(gateway, { path: '/agent/run' })
  const { end, cameBack } = await follow(world, first, { random: new Random(1) })
  return { words: wordsFor(end), cameBack, asked, found: check(history).map(({ rule }) => rule) }
}

describe('a client that comes back', () => {
  it('stays where a run ends', async () => {
    const { words, cameBack } = await play((_req, res) => send(res, delta(1), failed(2, 'worker_draining')).end())
    expect([words, cameBack]).to.deep.equal(['worker_draining', 0])
  })

  it('D4.5: takes a run up with the last number it has, when its gateway has sent it away', async () => {
    const { words, asked, found } = await play(
      (_req, res) => send(res, delta(1), delta(2), failed(2, 'worker_draining')).end(),
      (_req, res) => void res.writeHead(503).end(),
      (_req, res) => send(res, delta(3), frame(4, 'done')).end(),
    )
    expect([words, asked, found]).to.deep.equal(['done', [undefined, '2', '2'], []])
  })

  it('D4.5: takes a run up when its connection broke', async () => {
    const { words, cameBack, asked } = await play(
      (_req, res) => {
        send(res, delta(1))
        setTimeout(() => res.socket?.resetAndDestroy(), 20)
      },
      (_req, res) => send(res, frame(2, 'done')).end(),
    )
    expect([words, cameBack, asked[1]]).to.deep.equal(['done', 1, '1'])
  })

  it('tells of a run that is gone', async () => {
    const { words } = await play(
      (_req, res) => send(res, failed(0, 'relay_unavailable')).end(),
      (_req, res) => void res.writeHead(404).end(),
    )
    expect(words).to.equal('status 404')
  })
})
