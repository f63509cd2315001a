import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { AppError } from '../../shared/errors.ts'
import { type Address, createEgress, type Egress, type EgressRequest } from '../../shared/providers/egress.ts'
import { isPublicAddress } from '../../shared/providers/public-address.ts'

/** Ways to write an address that is not one of the public internet; `PORT` is the listener's. */
const SPELLINGS = `
http://127.0.0.1:PORT/
https://127.0.0.1:PORT/
HTTP://127.0.0.1:PORT/
http:127.0.0.1:PORT
http:\\\\127.0.0.1:PORT
http:///127.0.0.1:PORT/
http://127.1:PORT/
http://127.0.1:PORT/
http://127.0.0.1.:PORT/
http://127.255.255.254:PORT/
http://2130706433:PORT/
http://0x7f000001:PORT/
http://0x7f.0.0.1:PORT/
http://0x7f.1:PORT/
http://0177.0.0.1:PORT/
http://0177.0x0.0.1:PORT/
http://017700000001:PORT/
http://00000177.1:PORT/
http://①②⑦.⓪.⓪.①:PORT/
http://１２７.０.０.１:PORT/
http://127。0。0。1:PORT/
http://127．0．0．1:PORT/
http://%31%32%37.0.0.1:PORT/
http://127.0.0.1:PORT\\@example.com/
http://127.0.0.1:PORT#@example.com/
http://127.0.0.1:PORT?@example.com/
http://\t127.0.0.1:PORT/
http://127.0.0\n.1:PORT/
http://0:PORT/
http://0.0.0.0:PORT/
http://0.0:PORT/
http://0x0:PORT/
http://0.0.0.1:PORT/
http://0.255.255.255:PORT/
http://localhost:PORT/
http://LOCALHOST:PORT/
http://localhost.:PORT/
http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/
http://loc%61lhost:PORT/
http://a.localhost:PORT/
http://rebound.example:PORT/
http://10.0.0.1:PORT/
http://10.255.255.255:PORT/
http://012.0.0.1:PORT/
http://167772161:PORT/
http://100.64.0.1:PORT/
http://100.127.255.255:PORT/
http://169.254.169.254:PORT/latest/meta-data/
http://0xa9fea9fe:PORT/
http://2852039166:PORT/
http://169.254.0.1:PORT/
http://172.16.0.1:PORT/
http://172.31.255.255:PORT/
http://192.0.0.8:PORT/
http://192.0.2.1:PORT/
http://192.88.99.1:PORT/
http://192.168.0.1:PORT/
http://192.168.65535:PORT/
http://0xc0a80001:PORT/
http://198.18.0.1:PORT/
http://198.19.255.255:PORT/
http://198.51.100.7:PORT/
http://203.0.113.9:PORT/
http://224.0.0.1:PORT/
http://239.255.255.250:PORT/
http://240.0.0.1:PORT/
http://255.255.255.255:PORT/
http://4294967295:PORT/
http://[::1]:PORT/
http://[0:0:0:0:0:0:0:1]:PORT/
http://[0000:0000:0000:0000:0000:0000:0000:0001]:PORT/
http://[::]:PORT/
http://[::127.0.0.1]:PORT/
http://[::7f00:1]:PORT/
http://[::ffff:127.0.0.1]:PORT/
http://[::FFFF:7F00:1]:PORT/
http://[0:0:0:0:0:ffff:7f00:1]:PORT/
http://[::ffff:0:127.0.0.1]:PORT/
http://[::ffff:10.0.0.1]:PORT/
http://[::ffff:169.254.169.254]:PORT/
http://[64:ff9b::127.0.0.1]:PORT/
http://[64:ff9b::7f00:1]:PORT/
http://[64:ff9b:1::127.0.0.1]:PORT/
http://[100::1]:PORT/
http://[2001::1]:PORT/
http://[2001:0:7f00:1::]:PORT/
http://[2001:db8::1]:PORT/
http://[2002:7f00:1::]:PORT/
http://[2002:a00:1::1]:PORT/
http://[3fff::1]:PORT/
http://[4000::1]:PORT/
http://[fc00::1]:PORT/
http://[fd00:ec2::254]:PORT/
http://[fe80::1]:PORT/
http://[febf::1]:PORT/
http://[fe80::1%25lo]:PORT/
http://[fec0::1]:PORT/
http://[ff02::1]:PORT/
http://user@127.0.0.1:PORT/
http://user:pass@127.0.0.1:PORT/
http://example.com@127.0.0.1:PORT/
http://127.0.0.1:80:PORT/
http://127.0.0.1%00.example.com:PORT/
ftp://127.0.0.1:PORT/
file:///etc/passwd
gopher://127.0.0.1:PORT/
data:text/plain,x
javascript:1
ws://127.0.0.1:PORT/
//127.0.0.1:PORT/
127.0.0.1:PORT
`
  .split('\n/')
  .join('\n/')
  .trim()
  .split(/\n(?=[a-z/]|HTTP|127)/)

const LOOPBACK: Address[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]
const UNROUTED: Address = { address: '192.0.2.1', family: 4 }

describe('egress', () => {
  const closing: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
  })

  /** A listener on both loopback addresses that counts who connects. */
  async function guard(): Promise<{ port: number; connections: () => number }> {
    let count = 0
    const server = createTcpServer((socket) => {
      count += 1
      socket.destroy()
    }).listen(0, '::')
    await once(server, 'listening')
    closing.push(async () => server.close())
    return { port: (server.address() as AddressInfo).port, connections: () => count }
  }

  async function serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener).listen(0, '127.0.0.1')
    await once(server, 'listening')
    closing.push(async () => server.close().closeAllConnections())
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  function door(options: Partial<Parameters<typeof createEgress>[0]> = {}): Egress {
    const egress = createEgress({ allowPrivate: true, connectTimeoutMs: 2_000, ...options })
    closing.push(() => egress.close())
    return egress
  }

  const request = (fields: Partial<EgressRequest> = {}): EgressRequest => ({
    signal: new AbortController().signal,
    maxBytes: 1_000_000,
    timeoutMs: 5_000,
    ...fields,
  })

  async function failureOf(work: Promise<unknown>): Promise<AppError> {
    const cause = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    if (!(cause instanceof AppError)) throw new Error(`expected an AppError, got ${cause}`)
    return cause
  }

  async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
    const chunks: Uint8Array[] = []
    for await (const chunk of body) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }

  it(`P14: none of ${SPELLINGS.length} spellings of a private address makes a connection`, async () => {
    expect(SPELLINGS.length).to.be.at.least(80)
    const { port, connections } = await guard()
    const { request: send } = door({ allowPrivate: false, resolve: async () => LOOPBACK })
    const open: string[] = []
    for (const spelling of SPELLINGS) {
      const failure = await failureOf(send(spelling.replace('PORT', String(port)), request()))
      if (failure.code !== 'egress_refused') open.push(`${spelling}: ${failure.code}`)
    }
    expect(open).to.deep.equal([])
    expect(connections()).to.equal(0)
  })

  it('P14: none of the spellings passes through fetch either', async () => {
    const { port, connections } = await guard()
    const { fetch } = door({ allowPrivate: false, resolve: async () => LOOPBACK })
    for (const spelling of SPELLINGS) {
      const failure = await failureOf(fetch(spelling.replace('PORT', String(port))))
      expect(failure.code, spelling).to.equal('egress_refused')
    }
    expect(connections()).to.equal(0)
  })

  it('the guarded listener does count: with ALLOW_PRIVATE_URLS the same address is reached (D1.3)', async () => {
    const { port, connections } = await guard()
    await failureOf(door().request(`http://127.0.0.1:${port}/`, request()))
    expect(connections()).to.equal(1)
  })

  it("localhost is refused by the system's own resolver's answer", async () => {
    const { port, connections } = await guard()
    const failure = await failureOf(door({ allowPrivate: false }).request(`http://localhost:${port}/`, request()))
    expect([failure.code, connections()]).to.deep.equal(['egress_refused', 0])
  })

  it('P14: a name that changes its answer between two lookups is looked up once, and only that answer counts', async () => {
    const { port, connections } = await guard()
    let lookups = 0
    // 192.0.2.1 would be refused too; a public address stands for the harmless first answer and is never routed to here.
    const resolve = async () => (lookups++ === 0 ? [{ address: '8.8.8.8', family: 4 }] : LOOPBACK)
    const { request: send } = door({ allowPrivate: false, resolve, connectTimeoutMs: 100 })
    const failure = await failureOf(send(`http://rebind.example:${port}/`, request({ timeoutMs: 300 })))
    expect(failure.code).to.be.oneOf(['egress_timeout', 'egress_unreachable'])
    expect([lookups, connections()]).to.deep.equal([1, 0])
  })

  it('P14: of mixed answers only the public ones are connected to', async () => {
    const { port, connections } = await guard()
    const resolve = async () => [...LOOPBACK, { address: '8.8.8.8', family: 4 }, ...LOOPBACK]
    const { request: send } = door({ allowPrivate: false, resolve, connectTimeoutMs: 100 })
    const failure = await failureOf(send(`http://mixed.example:${port}/`, request({ timeoutMs: 300 })))
    expect(failure.code).to.be.oneOf(['egress_timeout', 'egress_unreachable'])
    expect(connections()).to.equal(0)
  })

  it('rule 10: every reserved range is closed at both ends, and its neighbours are open', () => {
    const closed = [
      '0.0.0.0',
      '100.64.0.0',
      '100.127.255.255',
      '172.16.0.0',
      '172.31.255.255',
      '224.0.0.0',
      '1.2.3',
      '',
    ]
    const open = [
      '1.0.0.1',
      '100.63.255.255',
      '100.128.0.0',
      '172.15.255.255',
      '172.32.0.0',
      '223.255.255.255',
      '8.8.8.8',
    ]
    const closed6 = ['::', '1fff::1', '2001:1ff::1', '2002::', '4000::', 'fd00::1', 'fe80::1%eth0', '::ffff:8.8.8.8']
    const open6 = ['2001:200::1', '2606:4700:4700::1111', '2003::1', '3ffe::1', '2a00:1450::1']
    expect([...closed, ...closed6].filter(isPublicAddress)).to.deep.equal([])
    expect([...open, ...open6].filter((address) => !isPublicAddress(address))).to.deep.equal([])
  })

  it('ports of other protocols are closed where private addresses are', async () => {
    const { request: send } = door({ allowPrivate: false, resolve: async () => [UNROUTED] })
    for (const port of [22, 25, 110, 143, 587]) {
      expect((await failureOf(send(`https://example.com:${port}/`, request()))).message).to.include(`Port ${port}`)
    }
  })

  it('no message holds the address that a name resolved to, nor a password of the URL', async () => {
    const { port } = await guard()
    const { request: send } = door({ allowPrivate: false, resolve: async () => [{ address: '10.1.2.3', family: 4 }] })
    const blocked = await failureOf(send(`http://intern.example:${port}/`, request()))
    const withUser = await failureOf(send('http://user:hunter2@example.com/', request()))
    const named = door({ resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
    const broken = await failureOf(named.request(`http://model.example:${port}/`, request()))
    for (const { message } of [blocked, withUser, broken]) {
      expect(message).not.to.match(/10\.1\.2\.3|127\.0\.0\.1|hunter2/)
    }
    expect(broken.code).to.equal('egress_unreachable')
  })

  it('L19: a redirect is returned, not followed, and the key stays here', async () => {
    const { port, connections } = await guard()
    const base = await serve((_req, res) => res.writeHead(302, { location: `http://127.0.0.1:${port}/` }).end())
    const { request: send, fetch } = door()
    const answer = await send(base, request({ headers: { 'x-api-key': 'k' } }))
    answer.discard()
    const fetched = await fetch(base, { headers: { 'x-api-key': 'k' }, redirect: 'follow' })
    expect([answer.status, answer.headers['location'], fetched.status]).to.deep.equal([
      302,
      `http://127.0.0.1:${port}/`,
      302,
    ])
    expect(connections()).to.equal(0)
  })

  it('sends method, headers and body as given, the name as Host, and asks for no compression', async () => {
    const seen: unknown[] = []
    const base = await serve(async (req, res) => {
      seen.push([
        req.method,
        req.url,
        req.headers['x-a'],
        req.headers['host'],
        req.headers['accept-encoding'],
        await textOf(req),
      ])
      res.end('fine')
    })
    const { port } = new URL(base)
    const { request: send, fetch } = door({ resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
    const url = `http://model.example:${port}/v1?q=%2F`
    const { body } = await send(url, request({ method: 'POST', headers: { 'x-a': 'b' }, body: 'hello' }))
    expect(await textOf(body)).to.equal('fine')
    expect(await (await fetch(url, { method: 'POST', headers: { 'x-a': 'b' }, body: 'hello' })).text()).to.equal('fine')
    const expected = ['POST', '/v1?q=%2F', 'b', `model.example:${port}`, 'identity', 'hello']
    expect(seen).to.deep.equal([expected, expected])
  })

  it('an answer that is compressed all the same is refused before it can inflate', async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000))
    const base = await serve((_req, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    const { request: send, fetch } = door()
    expect((await failureOf(send(base, request()))).message).to.include('compressed')
    expect((await failureOf(fetch(base))).message).to.include('compressed')
  })

  it('a body over maxBytes, declared or not, and headers over 16 KiB end in egress_too_large', async () => {
    const base = await serve((req, res) => {
      if (req.url === '/headers') return res.writeHead(200, { 'x-long': 'x'.repeat(20_000) }).end()
      if (req.url === '/declared') return res.end(Buffer.alloc(5_000))
      res.write(Buffer.alloc(2_500))
      return res.end(Buffer.alloc(2_500))
    })
    const { request: send } = door()
    for (const path of ['/declared', '/chunked']) {
      const { body } = await send(base + path, request({ maxBytes: 4_000 }))
      expect((await failureOf(textOf(body))).code, path).to.equal('egress_too_large')
    }
    expect((await failureOf(send(`${base}/headers`, request()))).code).to.equal('egress_too_large')
  })

  it('a server that says nothing, and one that stops in the middle, end in egress_timeout', async () => {
    const base = await serve((req, res) => {
      if (req.url === '/half') res.write('half')
    })
    const { request: send } = door()
    expect((await failureOf(send(base, request({ timeoutMs: 60 })))).code).to.equal('egress_timeout')
    const { body } = await send(`${base}/half`, request({ timeoutMs: 200 }))
    expect((await failureOf(textOf(body))).code).to.equal('egress_timeout')
  })

  it('an aborted signal closes the connection, before the headers and within the body, and its reason is thrown', async () => {
    const arrivals: Promise<unknown>[] = []
    const arrived = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const base = await serve((req, res) => {
      arrivals.push(once(req.socket, 'close'))
      if (req.url === '/1') res.write('half')
      arrived[arrivals.length - 1]?.resolve()
    })
    const { request: send } = door()
    const reason = new Error('the run ended')
    const first = new AbortController()
    const waiting = send(`${base}/0`, request({ signal: first.signal })).catch((cause: unknown) => cause)
    await arrived[0]?.promise
    first.abort(reason)
    expect(await waiting).to.equal(reason)

    const second = new AbortController()
    const { body } = await send(`${base}/1`, request({ signal: second.signal }))
    const reading = textOf(body).catch((cause: unknown) => cause)
    second.abort(reason)
    expect(await reading).to.equal(reason)
    await Promise.all(arrivals)
  })

  it('leaving the body early closes the connection', async () => {
    const closed = Promise.withResolvers<void>()
    const base = await serve((req, res) => {
      req.socket.once('close', () => closed.resolve())
      res.write('x'.repeat(100_000))
    })
    const { body } = await door().request(base, request())
    for await (const _chunk of body) break
    await closed.promise
  })

  it('fetch keeps its own form for failures that another try may cure, without an address in them', async () => {
    const { port } = await guard()
    const { fetch } = door({ resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
    const failure = await fetch(`http://model.example:${port}/`).catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(TypeError).with.property('message', 'fetch failed')
    expect(String((failure as Error).cause))
      .to.include('model.example')
      .and.not.to.include('127.0.0.1')
  })

  it('fetch refuses a form, which it would send as the text [object FormData]', async () => {
    const failure = await door()
      .fetch('http://127.0.0.1:1/', { method: 'POST', body: new FormData() })
      .catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(TypeError)
  })
})
