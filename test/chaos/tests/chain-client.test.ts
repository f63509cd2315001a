import type { ServerResponse } from 'node:http'
import { expect } from 'chai'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { errorEvent, type RunErrorCode } from '../../../shared/kernel/events.ts'
import { check } from '../checker.ts'
import type { Entry } from '../history.ts'
import { ChainClient } from '../scenarios/lossy-relay/chain-client.ts'
import { eventsOf } from '../scenarios/lossy-relay/forgeries.ts'
import { send, serve } from './fake-gateway.ts'

const COUNT = 4
const frames = eventsOf('c', COUNT).map((event, i) => renderFrame(i + 1, event))
const cut = (seq: number, code: RunErrorCode) => renderFrame(seq, errorEvent(code, 'cut'))

/** Reads the chain `c` through a gateway that gives these answers, one to each connection. Returns the violations found. */
async function read(...answers: string[]) {
  const left = answers.values()
  await using server = await serve((_req, res: ServerResponse) => void send(res, left.next().value ?? '').end())
  const history: Entry[] = []
  const gateways = [{ name: 'gateway', url: server.url }]
  const world = { gateways, record: (entry: Entry) => void history.push(entry) }
  const client = new ChainClient(world, { name: 'c', first: 0, count: COUNT, pieces: 1, everyMs: 0 })
  await client.read()
  return { client, found: check(history).map(({ rule, what }) => `${rule} ${what}`) }
}

describe('the client that reads P4', () => {
  it('P4: a stream that a gateway cut with an error, which repeats the last number, has no hole', async () => {
    for (const code of ['stream_gap', 'relay_unavailable', 'slow_consumer', 'worker_draining'] as const) {
      const { client, found } = await read(frames.slice(0, 3).join('') + cut(3, code), frames.slice(3).join(''))
      expect([found, client.cuts, client.reader.isWhole]).to.deep.equal([[], [code], true])
    }
  })

  it('P4: a hole before an error of the gateway is reported', async () => {
    const { found } = await read(frames.slice(0, 3).join('') + cut(4, 'stream_gap'), frames.slice(3).join(''))
    expect(found).to.include('stream-altered c 1: a hole: 4 after 3')
  })

  it('P4: an error that the run itself ended with has its own number', async () => {
    const { found } = await read(...Array(10).fill(frames.slice(0, 3).join('') + cut(4, 'worker_draining')))
    expect(found.filter((each) => each.startsWith('stream-altered c 1:'))).to.deep.equal([])
  })
})
