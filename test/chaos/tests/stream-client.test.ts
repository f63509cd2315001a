import type { ServerResponse } from 'node:http'
import { expect } from 'chai'
import { check } from '../checker.ts'
import type { Entry } from '../history.ts'
import { describeEnd } from '../load.ts'
import { StreamClient } from '../stream-client.ts'
import { frame, send, serve } from './fake-gateway.ts'

const delta = (seq: number) => frame(seq, 'text_delta', { text: 'a' })

/** Reads an answer with a client. Returns the client's end and its history. */
async function read(answer: (res: ServerResponse) => void, after?: number) {
  await using server = await serve((_req, res) => answer(res))
  const history: Entry[] = []
  const what = { url: server.url, gateway: 'gw1', path: '/agent/run', ...(after !== undefined && { after }) }
  const stream = new StreamClient(what, { record: (entry) => void history.push(entry) })
  return { stream, end: await stream.ended, history }
}

const kinds = (history: readonly Entry[]) => history.map((entry) => (entry.kind === 'frame' ? entry.seq : entry.kind))

describe('a chaos client', () => {
  it('records a complete stream in which the checker finds nothing', async () => {
    const { end, history, stream } = await read((res) => send(res, delta(1), delta(2), frame(3, 'done')).end())
    expect(kinds(history)).to.deep.equal(['opened', 1, 2, 3, 'closed'])
    expect([describeEnd(end), end.status, stream.run, stream.lastSeq]).to.deep.equal(['done', 200, 'run_1', 3])
    expect(check(history)).to.deep.equal([])
  })

  it('records a connection that breaks within a frame', async () => {
    const { end, history } = await read((res) => {
      send(res, delta(1), delta(2).slice(0, -5))
      setTimeout(() => res.socket?.resetAndDestroy(), 20)
    })
    expect(describeEnd(end)).to.equal('reset')
    expect(history.at(-1)).to.include({ kind: 'closed', how: 'reset', isCut: true })
    expect(check(history).map(({ rule }) => rule)).to.deep.equal(['stream-without-end'])
  })

  it('records a stream that the server ends within a frame, which the checker reports', async () => {
    const { history } = await read((res) => send(res, delta(1), frame(2, 'done').slice(0, -1)).end())
    expect(check(history).map(({ rule }) => rule)).to.deep.equal(['stream-without-end', 'stream-altered'])
  })

  it('D4.2: distinguishes a terminal frame made by the gateway from the run’s own', async () => {
    const draining = (seq: number) => frame(seq, 'error', { code: 'worker_draining' })
    const gateways = await read((res) => send(res, delta(1), draining(1)).end())
    const runs = await read((res) => send(res, delta(1), draining(2)).end())
    expect([gateways.end.terminal?.canContinue, runs.end.terminal?.canContinue]).to.deep.equal([true, false])
    expect([...check(gateways.history), ...check(runs.history)]).to.deep.equal([])
  })

  it('a run that lost its worker cannot be resumed', async () => {
    const { end } = await read((res) => send(res, delta(1), frame(1, 'error', { code: 'worker_lost' })).end())
    expect(end.terminal).to.include({ code: 'worker_lost', canContinue: false })
  })

  it('continues the numbers after the Last-Event-ID that it sent', async () => {
    const { history } = await read((res) => send(res, delta(6), frame(7, 'done')).end(), 5)
    expect(check(history)).to.deep.equal([])
    expect(history[0]).to.include({ kind: 'opened', after: 5, gateway: 'gw1' })
  })

  it('reports a refusal by its status, and a refused connection as no answer; neither is recorded as a stream', async () => {
    const refused = await read((res) => res.writeHead(503).end())
    expect([describeEnd(refused.end), refused.history]).to.deep.equal(['status 503', []])
    const unreachable = new StreamClient({ url: 'http://127.0.0.1:1', gateway: 'gw1', path: '/' }, { record: () => {} })
    expect([describeEnd(await unreachable.ended), unreachable.isRefused]).to.deep.equal(['no answer', true])
  })

  it('records malformed frames as a stream without an end instead of throwing', async () => {
    const { history } = await read((res) => send(res, delta(1), 'event: done\n\n').end())
    expect(check(history).map(({ rule }) => rule)).to.deep.equal(['stream-without-end', 'stream-altered'])
  })

  it('closes its connection on request', async () => {
    await using server = await serve((_req, res) => void send(res, delta(1)))
    const history: Entry[] = []
    const what = { url: server.url, gateway: 'gw1', path: '/' }
    const stream = new StreamClient(what, { record: (entry) => void history.push(entry) })
    await stream.atLeast(1)
    stream.leave()
    expect(describeEnd(await stream.ended)).to.equal('left')
    expect(check(history)).to.deep.equal([])
  })
})
