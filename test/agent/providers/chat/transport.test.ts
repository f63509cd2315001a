import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { collectGarbage } from '../../../../scripts/bench/garbage.ts'
import { createHttpSend } from '../../../../shared/agent/providers/chat/transport.ts'
import type { SendRequest, SendResponse } from '../../../../shared/agent/providers/port.ts'
import { createConnectionGuard } from '../../../../shared/platform/net/address-policy.ts'
import { until } from '../../../support/until.ts'

describe('the transport of the chat format', () => {
  let server: Server
  let url: string
  let answer: (req: IncomingMessage, res: ServerResponse) => unknown
  let connections: number

  beforeEach(async () => {
    connections = 0
    server = createServer((req, res) => answer(req, res)).on('connection', () => connections++)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  })
  afterEach(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  const request = (fields: Partial<SendRequest> = {}): SendRequest => ({
    ...{ method: 'POST', headers: { 'x-test': '1' }, body: '{}', signal: new AbortController().signal },
    ...fields,
  })
  const chunksOf = async ({ body }: SendResponse) => {
    const chunks: Uint8Array[] = []
    for await (const chunk of body) chunks.push(chunk)
    return chunks
  }
  const codeOf = (sending: Promise<unknown>) =>
    sending.then(
      () => expect.fail('it was sent'),
      (cause: unknown) => (cause as { code?: unknown }).code,
    )

  it('sends the request as it is, and returns every status and redirect', async () => {
    answer = async (req, res) => {
      const body = (await req.toArray()).map(String).join('')
      res
        .writeHead(307, { location: 'http://elsewhere.test/' })
        .end(`${req.method} ${req.url} ${req.headers['x-test']} ${body}`)
    }
    const response = await createHttpSend({ connectMs: 1_000 })(`${url}?q=1`, request())
    expect([response.status, response.headers['location']]).to.deep.equal([307, 'http://elsewhere.test/'])
    expect(Buffer.concat(await chunksOf(response)).toString()).to.equal('POST /v1?q=1 1 {}')
  })

  it('sends bytes with their length, and keeps neither them nor the first bytes of the answer until the answer has ended', async () => {
    answer = async (req, res) => {
      const body = (await req.toArray()).map(String).join('')
      res.writeHead(200, { 'x-filler': 'x'.repeat(4_000) }).write(`${req.headers['content-length']} ${body.length}`)
    }
    const held: WeakRef<ArrayBufferLike>[] = []
    const send = createHttpSend({ connectMs: 1_000 })
    const firstOf = async () => {
      const body = new Uint8Array(300_000).fill(120)
      const { body: answered } = await send(url, request({ body }))
      const iterator = answered[Symbol.asyncIterator]()
      const first = (await iterator.next()).value
      held.push(new WeakRef(body.buffer), new WeakRef(first.buffer))
      return { iterator, text: Buffer.from(first).toString() }
    }
    const { iterator, text } = await firstOf()
    expect(text).to.equal('300000 300000')
    await until(
      () => {
        collectGarbage()
        return held.every((ref) => ref.deref() === undefined)
      },
      { what: 'the bytes to be forgotten', withinMs: 5_000 },
    )
    await iterator.return?.()
  })

  it('returns what has arrived in chunks of 16 KiB at most', async () => {
    answer = (_req, res) => res.end(Buffer.alloc(100_000, 'x'))
    const chunks = await chunksOf(await createHttpSend({ connectMs: 1_000 })(url, request()))
    expect(Math.max(...chunks.map(({ length }) => length))).to.be.within(1, 16 * 1024)
    expect(Buffer.concat(chunks)).to.have.length(100_000)
  })

  it('uses the connection of an answer that was read to its end again, and closes that of any other', async () => {
    answer = (_req, res) => res.end('done')
    const send = createHttpSend({ connectMs: 1_000 })
    for (let i = 0; i < 5; i++) await chunksOf(await send(url, request()))
    expect(connections).to.be.at.most(2) // One is free again a turn of the event loop behind the end.
    let isClosed = false
    answer = (_req, res) => res.on('close', () => (isClosed = true)).write('first')
    const chunks = (await send(url, request())).body[Symbol.asyncIterator]()
    await chunks.next()
    await chunks.return?.()
    await until(() => isClosed, { what: 'the end of the connection' })
  })

  it('rejects the read of an answer that breaks off, and a request that is aborted before its answer', async () => {
    answer = (_req, res) => res.write('half', () => res.destroy())
    const response = await createHttpSend({ connectMs: 1_000 })(url, request())
    expect(await codeOf(chunksOf(response))).to.equal('UND_ERR_SOCKET')
    const caller = new AbortController()
    answer = () => caller.abort()
    expect(await codeOf(createHttpSend({ connectMs: 1_000 })(url, request({ signal: caller.signal })))).to.equal(
      'ECONNRESET',
    )
  })

  it('opens no connection that the guard forbids, by the URL, the name or the address', async () => {
    answer = (_req, res) => res.end('reached')
    const guard = createConnectionGuard({
      allowPrivate: false,
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    })
    const send = createHttpSend({ connectMs: 1_000, guard })
    for (const address of [url, url.replace('127.0.0.1', 'localhost.test')])
      expect(await codeOf(send(address, request())), address).to.equal('egress_refused')
    const late = createHttpSend({ connectMs: 1_000, guard: { ...guard, checkUrl: (text) => new URL(text) } })
    expect(await codeOf(late(url, request()))).to.equal('egress_refused')
    expect(connections).to.be.at.most(1)
  })
})
