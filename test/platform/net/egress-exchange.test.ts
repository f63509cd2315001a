import { once } from 'node:events'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { closeAll, failureOf, listen, openEgress, reasonOf, request, serve, textOf } from './egress-setup.ts'

describe('egress: the exchange', () => {
  afterEach(closeAll)

  it('a redirect is returned and not followed, so the key is sent to no other host', async () => {
    const { port, connections } = await listen()
    const base = await serve((_req, res) => res.writeHead(302, { location: `http://127.0.0.1:${port}/` }).end())
    const { request: send, fetch } = openEgress()
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

  it('the method, headers and body are sent as given, the name is sent as Host, and no compression is requested', async () => {
    const seen: unknown[] = []
    const base = await serve((req, res) => {
      const { 'x-a': own, host, 'accept-encoding': encoding } = req.headers
      req.once('data', (body: Buffer) => seen.push([req.method, req.url, own, host, encoding, body.toString()]))
      req.once('end', () => res.end('fine'))
    })
    const { port } = new URL(base)
    const { request: send, fetch } = openEgress({ resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
    const url = `http://model.example:${port}/v1?q=%2F`
    const { body } = await send(url, request({ method: 'POST', headers: { 'x-a': 'b' }, body: 'hello' }))
    expect(await textOf(body)).to.equal('fine')
    expect(await (await fetch(url, { method: 'POST', headers: { 'x-a': 'b' }, body: 'hello' })).text()).to.equal('fine')
    const expected = ['POST', '/v1?q=%2F', 'b', `model.example:${port}`, 'identity', 'hello']
    expect(seen).to.deep.equal([expected, expected])
  })

  it('a compressed response is refused before it is decompressed', async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000))
    const base = await serve((_req, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    const { request: send, fetch } = openEgress()
    expect((await failureOf(send(base, request()))).message).to.include('compressed')
    expect((await failureOf(fetch(base))).message).to.include('compressed')
  })

  it('a body over maxBytes, with or without Content-Length, and headers over 16 KiB fail with egress_too_large', async () => {
    const base = await serve((req, res) => {
      if (req.url === '/headers') return res.writeHead(200, { 'x-long': 'x'.repeat(20_000) }).end()
      if (req.url === '/declared') return res.end(Buffer.alloc(5_000))
      res.write(Buffer.alloc(2_500))
      return res.end(Buffer.alloc(2_500))
    })
    const { request: send } = openEgress()
    for (const path of ['/declared', '/chunked']) {
      const { body } = await send(base + path, request({ maxBytes: 4_000 }))
      expect((await failureOf(textOf(body))).code, path).to.equal('egress_too_large')
    }
    expect((await failureOf(send(`${base}/headers`, request()))).code).to.equal('egress_too_large')
  })

  it('a body is cut where its chunks together exceed maxBytes, when each of them arrives late and is below it', async () => {
    const firstIsRead = Promise.withResolvers<void>()
    const base = await serve((_req, res) => {
      res.write(Buffer.alloc(2_500))
      void firstIsRead.promise.then(() => res.end(Buffer.alloc(1_501)))
    })
    const { body } = await openEgress().request(base, request({ maxBytes: 4_000 }))
    const lengths: number[] = []
    const reading = (async () => {
      for await (const chunk of body) {
        lengths.push(chunk.length)
        firstIsRead.resolve()
      }
    })()
    expect((await failureOf(reading)).code).to.equal('egress_too_large')
    expect(lengths).to.deep.equal([2_500])
  })

  it('a body of exactly maxBytes is read to its end', async () => {
    const base = await serve((_req, res) => res.end(Buffer.alloc(4_000)))
    const { body } = await openEgress().request(base, request({ maxBytes: 4_000 }))
    expect(await textOf(body)).to.have.length(4_000)
  })

  it('a body over 64 MiB is cut whatever maxBytes allows', async () => {
    const mebibyte = Buffer.alloc(1024 * 1024)
    const base = await serve((_req, res) => {
      Readable.from(Array.from({ length: 65 }, () => mebibyte)).pipe(res)
    })
    const { body } = await openEgress().request(base, request({ maxBytes: Number.MAX_SAFE_INTEGER, timeoutMs: 20_000 }))
    let bytes = 0
    const reading = (async () => {
      for await (const chunk of body) bytes += chunk.length
    })()
    expect((await failureOf(reading)).code).to.equal('egress_too_large')
    expect(bytes).to.be.at.most(64 * 1024 * 1024)
  })

  it('a server that sends nothing, and one that stops in the middle of the body, fail with egress_timeout', async () => {
    const base = await serve((req, res) => {
      if (req.url === '/half') res.write('half')
    })
    const { request: send } = openEgress()
    expect((await failureOf(send(base, request({ timeoutMs: 60 })))).code).to.equal('egress_timeout')
    const { body } = await send(`${base}/half`, request({ timeoutMs: 200 }))
    expect((await failureOf(textOf(body))).code).to.equal('egress_timeout')
  })

  it('a name that is never resolved fails with egress_timeout', async () => {
    const egress = openEgress({ resolve: () => new Promise(() => {}), connectTimeoutMs: 50 })
    expect((await failureOf(egress.request('http://model.example/', request()))).code).to.equal('egress_timeout')
  })

  it('aborting the signal closes the connection before the headers and within the body, and throws the reason', async () => {
    const arrivals: Promise<unknown>[] = []
    const arrived = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const base = await serve((req, res) => {
      arrivals.push(once(req.socket, 'close'))
      if (req.url === '/1') res.write('half')
      arrived[arrivals.length - 1]?.resolve()
    })
    const { request: send } = openEgress()
    const reason = new Error('the run ended')
    const first = new AbortController()
    const waiting = reasonOf(send(`${base}/0`, request({ signal: first.signal })))
    await arrived[0]?.promise
    first.abort(reason)
    expect(await waiting).to.equal(reason)

    const second = new AbortController()
    const { body } = await send(`${base}/1`, request({ signal: second.signal }))
    const reading = reasonOf(textOf(body))
    second.abort(reason)
    expect(await reading).to.equal(reason)
    await Promise.all(arrivals)
  })

  it('leaving the loop over the body closes the connection', async () => {
    const closed = Promise.withResolvers<void>()
    const base = await serve((req, res) => {
      req.socket.once('close', () => closed.resolve())
      res.write('x'.repeat(100_000))
    })
    const { body } = await openEgress().request(base, request())
    for await (const chunk of body) {
      expect(chunk.length).to.be.above(0)
      break
    }
    await closed.promise
  })

  it('fetch rejects with its own TypeError for failures that a retry may cure, without an address in it', async () => {
    const { port } = await listen()
    const { fetch } = openEgress({ resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
    const failure = await reasonOf(fetch(`http://model.example:${port}/`))
    expect(failure).to.be.instanceOf(TypeError).with.property('message', 'fetch failed')
    expect(String((failure as Error).cause))
      .to.include('model.example')
      .and.not.to.include('127.0.0.1')
  })

  it('fetch refuses FormData, which it would send as the text [object FormData]', async () => {
    const failure = await reasonOf(openEgress().fetch('http://127.0.0.1:1/', { method: 'POST', body: new FormData() }))
    expect(failure).to.be.instanceOf(TypeError)
  })
})
