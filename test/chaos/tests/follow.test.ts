import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect } from 'chai'
import { Random } from '../../harness/seed.ts'
import { check } from '../checker.ts'
import { follow } from '../follow.ts'
import type { Entry } from '../history.ts'
import { describeEnd } from '../load.ts'
import { StreamClient } from '../stream-client.ts'
import type { Member } from '../world.ts'
import { frame, send, serve } from './fake-gateway.ts'

const delta = (seq: number) => frame(seq, 'text_delta', { text: 'a' })
const failed = (seq: number, code: string) => frame(seq, 'error', { code })

/** Follows a run. The first connection gets the first answer, the next one the second, and so on. */
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
  const { end, resumes } = await follow(world, first, { random: new Random(1) })
  return { words: describeEnd(end), resumes, asked, found: check(history).map(({ rule }) => rule) }
}

describe('a client that resumes its run', () => {
  it('does not resume a run that has ended', async () => {
    const { words, resumes } = await play((_req, res) => send(res, delta(1), failed(2, 'worker_draining')).end())
    expect([words, resumes]).to.deep.equal(['worker_draining', 0])
  })

  it('D4.5a: resumes with the last number it has when its gateway drains', async () => {
    const { words, asked, found } = await play(
      (_req, res) => send(res, delta(1), delta(2), failed(2, 'worker_draining')).end(),
      (_req, res) => void res.writeHead(503).end(),
      (_req, res) => send(res, delta(3), frame(4, 'done')).end(),
    )
    expect([words, asked, found]).to.deep.equal(['done', [undefined, '2', '2'], []])
  })

  it('D4.5a: resumes when its connection broke', async () => {
    const { words, resumes, asked } = await play(
      (_req, res) => {
        send(res, delta(1))
        setTimeout(() => res.socket?.resetAndDestroy(), 20)
      },
      (_req, res) => send(res, frame(2, 'done')).end(),
    )
    expect([words, resumes, asked[1]]).to.deep.equal(['done', 1, '1'])
  })

  it('reports a run that does not exist any more', async () => {
    const { words } = await play(
      (_req, res) => send(res, failed(0, 'relay_unavailable')).end(),
      (_req, res) => void res.writeHead(404).end(),
    )
    expect(words).to.equal('status 404')
  })
})
