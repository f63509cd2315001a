import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { AgentEngine } from '../../../shared/client/client.ts'
import { Transport } from '../../../shared/client/http/transport.ts'
import { tenantEvents } from '../../../shared/client/resources/tenant-events.ts'
import { fakeServer, stream } from '../fake-server.ts'

const STARTED = 'id: x-1\nevent: run.started\ndata: {"run_id":"run_1"}\n\n'

describe("the tenant's events of the client", () => {
  let server: Server
  let transport: Transport
  let closed: Promise<unknown>

  beforeEach(async () => {
    const opened = Promise.withResolvers<ServerResponse>()
    closed = opened.promise.then((res) => once(res, 'close'))
    server = createServer((_req, res) => {
      opened.resolve(res)
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write(STARTED)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    transport = new Transport({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  })
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  for (const reset of [true, false])
    it(`closes the connection of a loop that is left at ${reset ? 'the reset in front' : 'an event'}`, async () => {
      const seen: string[] = []
      for await (const { event } of tenantEvents(transport, { reset })) {
        seen.push(event)
        break
      }
      expect(seen).to.deep.equal([reset ? 'reset' : 'run.started'])
      await closed
    })

  it('are those that are asked for, from the first one on', async () => {
    const { options, paths } = fakeServer([() => stream([{ id: 1, event: 'run.ended', data: {} }])])
    for await (const { event } of new AgentEngine(options).events({ types: ['run.started', 'run.ended'] })) {
      expect(event).to.equal('run.ended')
      break
    }
    expect(paths()).to.deep.equal(['GET /events?types=run.started%2Crun.ended'])
  })
})
