import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { expect } from 'chai'
import { ChunkedBody } from '../../../services/gateway/streams/chunked-body.ts'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { DONE, delta, Feed, RUN_ID, useGateways } from '../setup.ts'
import { request, Wire } from '../wire.ts'

/** The methods by which Node's sockets write to the kernel: one piece, or several at once. */
const WRITES = ['_write', '_writev'] as const

describe('the body of a stream', () => {
  const start = useGateways()

  it('the head of a response and the first events leave in one write', async () => {
    const feed = new Feed()
    feed.push(renderFrame(1, delta('a')), 1)
    const { port } = await start({ methods: { followRun: async () => feed }, relay: { keepaliveMs: 15_000 } })
    const wire = await Wire.open(port)
    const first = new Promise<string>((resolve) => {
      wire.socket.once('data', (bytes) => resolve(bytes.toString()))
    })
    wire.send(request(`GET /v1/runs/${RUN_ID}/events HTTP/1.1`))
    expect(await first).to.match(/^HTTP\/1\.1 200 OK\r\n[^]*: ok\n[^]*data: \{"text":"a"\}\n\n\r\n$/)
    wire.socket.destroy()
    await feed.left
  })

  it('an event leaves in one piece, and the last one together with the end of the body', async () => {
    const feed = new Feed()
    const { port } = await start({ methods: { followRun: async () => feed }, relay: { keepaliveMs: 15_000 } })
    const wire = await Wire.open(port)
    await wire.send(request(`GET /v1/runs/${RUN_ID}/events HTTP/1.1`)).until(/: ok\n/)
    const counting = countWrites()
    feed.push(renderFrame(1, delta('a')), 1)
    await wire.until(/data: \{"text":"a"\}\n\n\r\n$/)
    expect(counting.calls).to.deep.equal({ _write: 1, _writev: 0 })
    feed.push(renderFrame(2, DONE), 2)
    feed.end()
    await wire.until(/event: done\n[^]*\r\n0\r\n\r\n$/)
    counting.stop()
    expect(counting.calls).to.deep.equal({ _write: 1, _writev: 1 })
    wire.socket.destroy()
  })

  it('is read unchanged by clients, pieces of every size included', async () => {
    const pieces = [1, 15, 16, 255, 256, 16_384, 16_385, 1_000_000].map((size) => Buffer.alloc(size, `${size},`))
    await using server = await answering((body) => {
      for (const piece of pieces) body.write(piece)
      body.write('größer 😀')
      body.end()
    })
    const text = await (await fetch(server.url)).text()
    expect(text).to.equal(`${Buffer.concat(pieces).toString()}größer 😀`)
  })
})

/** Counts what this process writes to sockets while a test runs, without that of the client, which writes nothing. */
function countWrites() {
  const calls = { _write: 0, _writev: 0 }
  const prototype = Socket.prototype as unknown as Record<(typeof WRITES)[number], (...args: unknown[]) => unknown>
  const original = Object.fromEntries(WRITES.map((name) => [name, prototype[name]])) as typeof prototype
  for (const name of WRITES) {
    prototype[name] = function (this: unknown, ...args) {
      calls[name]++
      return original[name].apply(this, args)
    }
  }
  return { calls, stop: () => Object.assign(prototype, original) }
}

async function answering(write: (body: ChunkedBody) => void) {
  const server = createServer((_req, res: ServerResponse) => {
    res.flushHeaders()
    write(new ChunkedBody(res))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
