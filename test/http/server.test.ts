import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { createServer } from '../../services/http/server.ts'
import type { RunPage } from '../../shared/cluster/commands/runs.ts'
import { DONE, Feed, framesOf, type Gateway, type Refusal, RUN_ID, useGateways } from '../gateway/setup.ts'
import { request, Wire } from '../gateway/wire.ts'

/** A page of 40 MB. */
const listRuns = async () => ({ runs: ['x'.repeat(40_000_000)], next_cursor: null }) as unknown as RunPage

const HEALTH = request('GET /v1/health HTTP/1.1')
const FOLLOW = request(`GET /v1/runs/${RUN_ID}/events HTTP/1.1`)

const answerTo = async ({ port }: Gateway, ...lines: string[]) => (await Wire.open(port)).send(...lines).end

describe('the server', () => {
  const start = useGateways()

  const malformed: [string, number, string[]][] = [
    ['text that is not HTTP', 400, ['GARBAGE', '', '']],
    ['an unknown method', 400, ['FROB / HTTP/1.1', 'Host: a', '', '']],
    [
      'a length and chunks at once',
      400,
      ['POST /v1/sessions HTTP/1.1', 'Host: a', 'Content-Length: 3', 'Transfer-Encoding: chunked', '', '0', '', ''],
    ],
    ['two lengths', 400, ['POST /v1/sessions HTTP/1.1', 'Host: a', 'Content-Length: 3', 'Content-Length: 4', '', '']],
    ['a NUL in a header', 400, ['GET / HTTP/1.1', 'Host: a\0b', '', '']],
    ['a header without a name', 400, ['GET / HTTP/1.1', ': x', '', '']],
    [
      'a broken chunk',
      400,
      [
        'POST /v1/sessions HTTP/1.1',
        'Host: a',
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
        '',
        'ZZ',
        '',
      ],
    ],
    ['headers of 20 KB', 431, ['GET / HTTP/1.1', `X: ${'a'.repeat(20_000)}`, '', '']],
    ['a CONNECT', 400, ['CONNECT example.com:443 HTTP/1.1', 'Host: example.com', '', '']],
  ]
  for (const [what, status, lines] of malformed) {
    it(`${what} is ${status} in the envelope, with an X-Request-ID, and the connection is closed`, async () => {
      const text = await answerTo(await start(), ...lines)
      expect(text).to.match(new RegExp(`^HTTP/1.1 ${status} `))
      expect(text).to.match(/\r\nX-Request-ID: req_[0-9a-f]{32}\r\n/)
      expect(text).to.match(/\r\nConnection: close\r\n/)
      const [head, body = ''] = text.split('\r\n\r\n')
      expect((JSON.parse(body) as Refusal).error.type).to.equal('invalid_request_error')
      expect(head).to.include(`Content-Length: ${body.length}`)
    })
  }

  it('headers that do not arrive in time are 408 in the envelope', async () => {
    const gateway = await start({ server: { headersTimeoutMs: 50, checkIntervalMs: 20 } })
    const text = await answerTo(gateway, 'GET /v1/health HTTP/1.1', 'Host: a')
    expect(text).to.match(/^HTTP\/1.1 408 [^]*X-Request-ID: req_[^]*"type":"invalid_request_error"/)
  })

  it('a client that does not read its answer is cut off, whatever the path', async () => {
    const { port, line } = await start({
      server: { writes: { stallMs: 50, minBytesPerSec: 1e9 } },
      methods: { listRuns },
    })
    const wire = await Wire.open(port)
    wire.socket.pause()
    wire.send(request('GET /v1/runs HTTP/1.1'))
    expect(await line(({ path }) => path === '/v1/runs')).to.include({ status: 200, is_cut: true })
    wire.socket.destroy()
  })

  it('a client that reads a long answer too slowly is cut off, though it reads on', async () => {
    const { port, line } = await start({
      server: { writes: { stallMs: 200, minBytesPerSec: 1e9 } },
      methods: { listRuns },
    })
    const wire = await Wire.open(port)
    wire.socket.pause().on('readable', () => setTimeout(() => wire.socket.read(100_000), 20))
    wire.send(request('GET /v1/runs HTTP/1.1'))
    expect(await line(({ path }) => path === '/v1/runs')).to.include({ status: 200, is_cut: true })
    wire.socket.destroy()
  })

  it('an answer may take longer to prepare than its client has to read it', async () => {
    const late = async () => {
      await sleep(100) // Longer than the limit, which is what this test is about.
      return { runs: [], next_cursor: null }
    }
    const { get } = await start({
      server: { writes: { stallMs: 20, minBytesPerSec: 1e9 } },
      methods: { listRuns: late },
    })
    expect((await get('/runs')).status).to.equal(200)
  })

  it('a request whose body is too slow is 408 with the id that the request has in the log', async () => {
    const gateway = await start({ server: { requestTimeoutMs: 50 } })
    const headers = { 'Content-Type': 'application/json', 'Content-Length': 10, 'X-Request-ID': 'slow-1' }
    const text = await answerTo(gateway, request('POST /v1/sessions HTTP/1.1', headers, '{'))
    expect(text).to.match(/^HTTP\/1.1 408 [^]*X-Request-ID: slow-1\r\n/)
  })

  it('no request timeout ends a stream', async () => {
    const feed = new Feed()
    const limits = { headersTimeoutMs: 20, requestTimeoutMs: 20, checkIntervalMs: 10, keepAliveMs: 20 }
    const { port } = await start({
      methods: { followRun: async () => feed },
      server: limits,
      relay: { keepaliveMs: 100 },
    })
    const wire = await Wire.open(port)
    await wire.send(FOLLOW).until(/(: keepalive[^]*){2}/)
    wire.socket.destroy()
    await feed.left
  })

  it('garbage after the request of a running stream closes the connection and writes nothing into the stream', async () => {
    const feed = new Feed()
    const { port } = await start({ methods: { followRun: async () => feed } })
    const wire = await Wire.open(port)
    await wire.send(FOLLOW).until(/: ok/)
    const ended = wire.end.catch(() => wire.text)
    wire.send('GARBAGE', '', '')
    expect(await ended).to.not.match(/400|invalid_request/)
    await feed.left
  })

  it('an upgrade is ignored and the request is answered as usual', async () => {
    const { port } = await start()
    const wire = await Wire.open(port)
    const headers = { Connection: 'Upgrade', Upgrade: 'websocket' }
    expect(await wire.send(request('GET /v1/health HTTP/1.1', headers)).until(/\}$/)).to.match(/^HTTP\/1.1 200 /)
    wire.socket.destroy()
  })

  it('an unknown expectation is ignored', async () => {
    const { port } = await start()
    const wire = await Wire.open(port)
    expect(await wire.send(request('GET /v1/health HTTP/1.1', { Expect: 'miracles' })).until(/\}$/)).to.match(/ 200 /)
    wire.socket.destroy()
  })

  it('a connection is closed after its maximum number of requests', async () => {
    const { port } = await start({ server: { maxRequestsPerSocket: 2 } })
    const wire = await Wire.open(port)
    expect(await wire.send(HEALTH).until(/\}$/)).to.match(/Connection: keep-alive/)
    expect(await wire.send(HEALTH).until(/\}HTTP[^]*\}$/)).to.match(/Connection: close/)
    wire.socket.destroy()
  })

  it('connections above the limit are refused', async () => {
    const { port } = await start({ server: { maxConnections: 1 } })
    const first = await Wire.open(port)
    await first.send(HEALTH).until(/\}$/)
    const second = await Wire.open(port)
    expect(await second.send(HEALTH).end.catch(() => '')).to.equal('')
    first.socket.destroy()
  })

  it('listen rejects when the port is in use', async () => {
    const { port } = await start()
    const second = createServer(() => {})
    const failure = await second.listen(port, '127.0.0.1').catch((error: NodeJS.ErrnoException) => error.code)
    expect(failure).to.equal('EADDRINUSE')
  })
})

describe('closing the server', () => {
  const start = useGateways()

  it('accepts no new connection, closes idle ones immediately, and lets open responses end', async () => {
    const gate = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const { port, server, get } = await start({
      methods: {
        async listRuns() {
          asked.resolve()
          await gate.promise
          return { runs: [], next_cursor: null }
        },
      },
    })
    const idle = await Wire.open(port)
    await idle.send(HEALTH).until(/\}$/)
    const busy = await Wire.open(port)
    busy.send(request('GET /v1/runs HTTP/1.1'))
    await asked.promise
    const closed = server.close(60_000)
    await idle.end
    expect(await get('/health').catch(() => 'refused')).to.equal('refused')
    gate.resolve()
    expect(await busy.end).to.match(/^HTTP\/1.1 200 [^]*Connection: close[^]*"runs":\[\]/)
    await closed
  })

  it('lets a running stream end, then its connection with it', async () => {
    const feed = new Feed()
    const { port, server } = await start({ methods: { followRun: async () => feed } })
    const wire = await Wire.open(port)
    await wire.send(FOLLOW).until(/: ok/)
    const closed = server.close(60_000)
    feed.end()
    expect(await wire.end).to.match(/: ok\n\r\n0\r\n\r\n$/)
    await closed
  })

  it('does not wait for connections that sent nothing or an incomplete request', async () => {
    const { port, server, get } = await start()
    const fresh = await Wire.open(port)
    const half = await Wire.open(port)
    half.send('GET /v1/hea')
    await get('/health')
    await server.close(60_000)
    expect(await Promise.all([fresh.end, half.end.catch(() => '')])).to.deep.equal(['', ''])
  })

  it('closes the remaining connections at the deadline', async () => {
    const feed = new Feed()
    const { port, server } = await start({ methods: { followRun: async () => feed } })
    const wire = await Wire.open(port)
    await wire.send(FOLLOW).until(/: ok/)
    const cut = once(wire.socket, 'close')
    await server.close(20)
    await Promise.all([cut, feed.left])
  })

  it('refuses with 503 what is unanswered at its later deadline, and lets it go on beyond that of streams', async () => {
    const feed = new Feed()
    const asked = Promise.withResolvers<void>()
    const waiting = () => {
      asked.resolve()
      return new Promise<never>(() => {})
    }
    const { port, server } = await start({ methods: { followRun: async () => feed, listRuns: waiting } })
    const stream = await Wire.open(port)
    await stream.send(FOLLOW).until(/: ok/)
    const unanswered = await Wire.open(port)
    unanswered.send(request('GET /v1/runs HTTP/1.1'))
    await asked.promise
    const order: string[] = []
    stream.socket.once('close', () => order.push('stream'))
    const answer = unanswered.end.then((text) => {
      order.push('answer')
      return text
    })
    await server.close(20, 200)
    expect(await answer).to.match(/^HTTP\/1.1 503 [^]*Retry-After: 1\r\n[^]*"type":"unavailable_error"/)
    expect(order).to.deep.equal(['stream', 'answer'])
    await feed.left
  })

  it('is done immediately when no response is open', async () => {
    const { server, get } = await start({ methods: { followRun: async () => framesOf(DONE) } })
    await (await get(`/runs/${RUN_ID}/events`)).text()
    await server.close(60_000)
  })
})
