import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { mock } from 'node:test'
import { expect } from 'chai'
import express from 'express'
import { recover } from '../../services/http/errors.ts'
import { invalidRequest } from '../../shared/kernel/errors.ts'
import { SILENT_LOG } from '../support/silent-log.ts'

const BYTES = 100

describe('the refusal of a body that is still on its way', () => {
  let server: Server
  let client: Socket
  let req: IncomingMessage

  beforeEach(async () => {
    const app = express()
    app.use((received, res) => {
      req = received
      res.shouldKeepAlive = false
      throw invalidRequest('too large', { status: 413 })
    })
    app.use(recover(SILENT_LOG))
    server = createServer(app).listen(0, '127.0.0.1')
    await once(server, 'listening')
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    client.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${BYTES}\r\n\r\n`)
    const [answer] = (await once(client, 'data')) as [Buffer]
    expect(String(answer)).to.match(/^HTTP\/1.1 413 /)
  })
  afterEach(() => {
    mock.timers.reset()
    client.destroy()
    server.close()
  })

  const pass = async (ms: number): Promise<void> => {
    mock.timers.tick(ms)
    await turn()
    await turn()
  }
  const send = async (bytes: number): Promise<void> => {
    const arrived = once(req, 'data')
    client.write('x'.repeat(bytes))
    await arrived
  }

  it('reads for as long as the client sends, and then closes the connection without a reset', async () => {
    for (let sent = 0; sent < 10; sent++) {
      await send(sent < 9 ? 1 : BYTES - 9)
      await pass(1_900)
    }
    const [hadError] = await once(client, 'close')
    expect(hadError).to.equal(false)
  })

  it('ends the connection of a client that pauses for 2 seconds within the rest', async () => {
    await pass(1_999)
    expect(req.destroyed).to.equal(false)
    await pass(1)
    expect(req.destroyed).to.equal(true)
  })

  it('ends the connection of a client that takes 30 seconds for the rest', async () => {
    for (let secs = 0; secs < 29; secs++) {
      await send(1)
      await pass(1_000)
    }
    expect(req.destroyed).to.equal(false)
    await pass(1_000)
    expect(req.destroyed).to.equal(true)
  })

  it('reads what has arrived while the process itself stood still for longer', async () => {
    await turn() // From here to the next check of the loop, the timers come before the socket, as after a stall.
    const arrived = once(req, 'data')
    client.write('x')
    mock.timers.tick(2_000)
    await arrived
    await turn()
    expect(req.destroyed).to.equal(false)
  })
})

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
