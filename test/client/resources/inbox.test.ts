import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { AgentEngine } from '../../../shared/client/client.ts'

const ask = (id: string) => ({ id, run_id: `run_${id}`, session_id: 's', tool_name: 'Write', input: {}, message: id })

describe('the inbox of the client', () => {
  let server: Server
  let engine: AgentEngine
  /** The answer to each list, and the events of each connection, which then breaks. The last one stays open. */
  let lists: string[][]
  let streams: string[]
  let lastEventIds: (string | undefined)[]

  beforeEach(async () => {
    lastEventIds = []
    server = createServer((req, res) => {
      if (req.url?.startsWith('/permissions')) {
        const permissions = (lists.length > 1 ? lists.shift() : lists[0])?.map(ask)
        return void res.end(JSON.stringify({ permissions, next_cursor: null }))
      }
      lastEventIds.push(req.headers['last-event-id'] as string | undefined)
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write(`: ok\n${streams.shift() ?? ''}`)
      if (streams.length > 0) res.end()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    engine = new AgentEngine({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  })
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  it('shows what waited before, also when nothing happens afterwards', async () => {
    lists = [['a', 'b']]
    streams = ['']
    const shown: string[] = []
    for await (const { id } of engine.permissions.watch()) if (shown.push(id) === 2) break
    expect(shown).to.deep.equal(['a', 'b'])
  })

  it('shows each once over connections that break, and after a reset what came meanwhile and what has gone', async () => {
    lists = [['a'], ['a', 'b'], ['b', 'c']]
    streams = [
      'id: x-4\nevent: run.ended\ndata: {"run_id":"run_x"}\n\nid: x-5\nevent: permission.requested\ndata: {"request_id":"b"}\n\n',
      'id: x-2\nevent: reset\ndata: {}\n\n',
      '',
    ]
    const asks = []
    for await (const each of engine.permissions.watch()) if (asks.push(each) === 3) break
    expect(asks.map(({ id }) => id)).to.deep.equal(['a', 'b', 'c'])
    expect(asks.map(({ resolution }) => resolution?.how)).to.deep.equal(['unknown', undefined, undefined])
    expect(lastEventIds.slice(0, 2)).to.deep.equal([undefined, 'x-5'])
  })
})
