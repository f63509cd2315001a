import type { ServerResponse } from 'node:http'
import { expect } from 'chai'
import { check } from '../checker.ts'
import type { Entry } from '../history.ts'
import { wordsFor } from '../load.ts'
import { StreamClient } from '../stream-client.ts'
import { frame, send, serve } from './gateway-server.ts'

const delta = (seq: number) => frame(seq, 'text_delta', { text: 'a' })

/** What a client of this answer ends with, and what it puts on record. */
async function read(answer: (res: ServerResponse) => void, after?: number) {
  await using server = await serve((_req, res) => answer(res))
  const history: Entry[] = []
  const what = { url: server.url, gateway: 'gw1', path: '/agent/run', ...(after !== undefined && { after }) }
  const stream = new StreamClient(what, { record: (entry) => void history.push(entry) })
  return { stream, end: await stream.ended, history }
}

const kinds = (history: readonly Entry[]) => history.map((entry) => (entry.kind === 'frame' ? entry.seq : entry.kind))

describe('a chaos client', () => {
  it('records a whole stream, and the checker finds nothing in it', async () => {
    const { end, history, stream } = await read((res) => send(res, delta(1), delta(2), frame(3, 'done')).end())
    expect(kinds(history)).to.deep.equal(['opened', 1, 2, 3, 'closed'])
    expect([wordsFor(end), end.status, stream.run, stream.lastSeq]).to.deep.equal(['done', 200, 'run_1', 3])
    expect(check(history)).to.deep.equal([])
  })

  it('records a connection that breaks within a frame', async () => {
    const { end, history } = await read((res) => {
      send(res, delta(1), delta(2).slice(0, -5))
      setTimeout(() => res.socket?.resetAndDestroy(), 20)
    })
    expect(wordsFor(end)).to.equal('reset')
    expect(history.at(-1)).to.include({ kind: 'closed', how: 'reset', isCut: true })
    expect(check(history).map(({ rule }) => rule)).to.deep.equal(['N1'])
  })

  it('N5: the checker finds a stream that the server ends within a frame', async () => {
    const { history } = await read((res) => send(res, delta(1), frame(2, 'done').slice(0, -1)).end())
    expect(check(history).map(({ rule }) => rule)).to.deep.equal(['N1', 'N5'])
  })

  it('D4.2: knows a terminal frame that a gateway made from the run’s own', async () => {
    const draining = (seq: number) => frame(seq, 'error', { code: 'worker_draining' })
    const gateways = await read((res) => send(res, delta(1), draining(1)).end())
    const runs = await read((res) => send(res, delta(1), draining(2)).end())
    expect([gateways.end.terminal?.goesOn, runs.end.terminal?.goesOn]).to.deep.equal([true, false])
    expect([...check(gateways.history), ...check(runs.history)]).to.deep.equal([])
  })

  it('a run that lost its worker does not go on', async () => {
    const { end } = await read((res) => send(res, delta(1), frame(1, 'error', { code: 'worker_lost' })).end())
    expect(end.terminal).to.include({ code: 'worker_lost', goesOn: false })
  })

  it('counts on from the number that it came back with', async () => {
    const { history } = await read((res) => send(res, delta(6), frame(7, 'done')).end(), 5)
    expect(check(history)).to.deep.equal([])
    expect(history[0]).to.include({ kind: 'opened', after: 5, gateway: 'gw1' })
  })

  it('a refusal is a status and no stream, and so is nobody', async () => {
    const refused = await read((res) => res.writeHead(503).end())
    expect([wordsFor(refused.end), refused.history]).to.deep.equal(['status 503', []])
    const nobody = new StreamClient({ url: 'http://127.0.0.1:1', gateway: 'gw1', path: '/' }, { record: () => {} })
    expect([wordsFor(await nobody.ended), nobody.isRefused]).to.deep.equal(['no answer', true])
  })

  it('what is no frame breaks no scenario: it is on record as a stream without an end', async () => {
    const { history } = await read((res) => send(res, delta(1), 'event: done\n\n').end())
    expect(check(history).map(({ rule }) => rule)).to.deep.equal(['N1', 'N5'])
  })

  it('leaves when it wants no more', async () => {
    await using server = await serve((_req, res) => void send(res, delta(1)))
    const history: Entry[] = []
    const what = { url: server.url, gateway: 'gw1', path: '/' }
    const stream = new StreamClient(what, { record: (entry) => void history.push(entry) })
    await stream.atLeast(1)
    stream.leave()
    expect(wordsFor(await stream.ended)).to.equal('left')
    expect(check(history)).to.deep.equal([])
  })
})
