import { once } from 'node:events'
import { createServer, type RequestListener, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { EventStream } from '../support/event-stream.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { Nginx } from './nginx.ts'

describe('deploy/nginx in front of two gateways', () => {
  const folder = useTempFolder()
  let cluster: Cluster
  let nginx: Nginx
  before(async () => {
    const dataDir = folder.path
    const env = { MODEL_PROVIDER: 'demo', DATA_DIR: dataDir, TRUST_PROXY: '1', RATE_LIMIT_RPM: '1000', DRAIN_SECS: '1' }
    cluster = await startCluster(env, { worker: 1 })
    nginx = await Nginx.start(cluster.urls.map((url) => Number(new URL(url).port)))
  })
  after(async () => {
    await nginx?.[Symbol.asyncDispose]()
    await cluster?.close()
  })

  const run = (prompt: string) =>
    EventStream.open(`${nginx.url}/api/v1/agent/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt }),
    })

  it('api.md "Streaming": events reach the client while the run goes on, and the headers before the first event', async () => {
    const stream = await run('/say one\n/sleep 600000')
    expect(stream.response.headers.get('content-type')).to.equal('text/event-stream')
    expect(stream.response.headers.get('x-run-id')).to.match(/^run_/)
    await stream.until('text')
    expect(stream.comments[0]).to.equal('ok')
    const ended = await fetch(`${nginx.url}/api/v1/runs/${stream.runId}`, { method: 'DELETE' })
    expect(ended.status).to.be.within(200, 204)
    expect((await stream.all()).at(-1)?.data).to.include({ code: 'cancelled' })
  })

  it('both gateways get requests, and count the clients that nginx names, not nginx', async () => {
    const remaining = async (forwarded: string) => {
      const answer = await fetch(`${nginx.url}/api/v1/tools`, { headers: { 'x-forwarded-for': forwarded } })
      await answer.arrayBuffer()
      return Number(answer.headers.get('ratelimit-remaining'))
    }
    // A client cannot choose its name: the entries before the last are its own words.
    const first = [await remaining('1.1.1.1'), await remaining('2.2.2.2'), await remaining('3.3.3.3')]
    expect(first[2], 'the third request of the same client at the same gateway as the first').to.be.lessThan(
      first[0] ?? 0,
    )
    const gateways = new Set((await nginx.log()).map(({ gateway }) => gateway))
    expect([...gateways].filter((gateway) => gateway.includes(':'))).to.have.length.at.least(2)
  })

  it('a body above 322 MB is refused in the shape of an API error', async () => {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; body: string }>()
    const headers = { 'content-length': String(400 * 1024 * 1024), 'content-type': 'multipart/form-data; boundary=x' }
    const sent = request(
      `${nginx.url}/api/v1/audio/transcriptions`,
      { method: 'POST', headers, agent: false },
      (answer) => {
        let body = ''
        answer.setEncoding('utf8').on('data', (text: string) => (body += text))
        answer.once('end', () => resolve({ status: answer.statusCode, body }))
      },
    )
    sent.once('error', reject).flushHeaders()
    const { status, body } = await promise
    sent.destroy()
    expect(status).to.equal(413)
    expect(JSON.parse(body)).to.have.nested.property('error.type', 'invalid_request_error')
  })
})

describe('deploy/nginx and gateways that fail', () => {
  const servers: Server[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.close()
      server.closeAllConnections()
    }
  })

  async function gateway(handle: RequestListener): Promise<number> {
    const server = createServer(handle).listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }

  async function closedPort(): Promise<number> {
    const port = await gateway(() => {})
    const server = servers.pop()
    server?.close()
    return port
  }

  it('a POST that a gateway has received is not sent to another one when the connection breaks', async () => {
    const received: string[] = []
    const breakOff =
      (name: string): RequestListener =>
      (req) => {
        req.resume().once('end', () => {
          received.push(`${name} ${req.method}`)
          req.socket.destroy()
        })
      }
    await using nginx = await Nginx.start([await gateway(breakOff('a')), await gateway(breakOff('b'))])
    received.length = 0
    const answer = await fetch(`${nginx.url}/api/v1/agent/run`, { method: 'POST', body: '{"prompt":"once"}' })
    expect(received.filter((each) => each.endsWith('POST'))).to.have.length(1)
    expect(answer.status).to.equal(503)
    expect(answer.headers.get('retry-after')).to.equal('1')
    expect(await answer.json()).to.have.nested.property('error.type', 'unavailable_error')
  })

  it('a GET whose gateway breaks off before it answers is answered by the other one', async () => {
    const breakOff: RequestListener = (req) => void req.socket.destroy()
    await using nginx = await Nginx.start([await gateway(breakOff), await gateway((_req, res) => res.end('whole'))])
    for (let count = 0; count < 4; count++)
      expect(await (await fetch(`${nginx.url}/api/v1/tools`)).text()).to.equal('whole')
  })

  it('a client that leaves closes the connection to the gateway too', async () => {
    const left = Promise.withResolvers<void>()
    const stream: RequestListener = (req, res) => {
      if (req.url !== '/stream') return void res.end()
      res.once('close', left.resolve).writeHead(200, { 'content-type': 'text/event-stream' }).write(': ok\n')
    }
    await using nginx = await Nginx.start([await gateway(stream), await gateway(stream)])
    const leave = new AbortController()
    const answer = await fetch(`${nginx.url}/stream`, { signal: leave.signal })
    const { value } = (await answer.body?.getReader().read()) ?? {}
    expect(new TextDecoder().decode(value)).to.equal(': ok\n')
    leave.abort()
    await left.promise
  })

  it('no request fails while one gateway refuses connections, POSTs included', async () => {
    await using nginx = await Nginx.start([
      await closedPort(),
      await gateway((req, res) => req.resume().on('end', () => res.end('ok'))),
    ])
    for (let count = 0; count < 20; count++) {
      const answer = await fetch(`${nginx.url}/api/v1/agent/run`, { method: 'POST', body: '{"prompt":"hello"}' })
      expect(await answer.text()).to.equal('ok')
    }
  })

  it('with no gateway at all the answer is 503 in the shape of an API error', async () => {
    await using nginx = await Nginx.start([await closedPort(), await closedPort()])
    const answer = await fetch(`${nginx.url}/api/v1/tools`)
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('retry-after')]).to.deep.equal([
      503,
      'application/json',
      '1',
    ])
    expect(await answer.json()).to.have.nested.property('error.type', 'unavailable_error')
  })
})
