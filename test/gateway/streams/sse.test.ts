import { expect } from 'chai'
import { MetricsRegistry } from '../../../services/ops/registry.ts'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { EventStream } from '../../support/event-stream.ts'
import { until } from '../../support/until.ts'
import { DONE, delta, Feed, framesOf, LIVE_RUN, RUN_ID, useGateways } from '../setup.ts'
import { request, Wire } from '../wire.ts'

const FOLLOW = request(`GET /v1/runs/${RUN_ID}/events HTTP/1.1`)
const FOLLOW_AND_CLOSE = request(`GET /v1/runs/${RUN_ID}/events HTTP/1.1`, { Connection: 'close' })

/** A few of these fill all buffers between two sockets. */
const MEGABYTE = `: ${'x'.repeat(1_000_000)}\n\n`

describe('the relay', () => {
  const start = useGateways()

  const following = async (
    frames: Feed,
    relay: Partial<{ keepaliveMs: number; stallMs: number; closeGraceMs: number }> = {},
  ) =>
    start({
      methods: { followRun: async () => frames, getRun: async () => LIVE_RUN },
      relay: { keepaliveMs: 15_000, ...relay },
    })

  it('D4.1, D4.2: a stream sends its headers and a comment before any event', async () => {
    const feed = new Feed()
    const { url } = await following(feed)
    const response = await fetch(`${url}/runs/${RUN_ID}/events`)
    expect(Object.fromEntries(response.headers)).to.include({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      connection: 'keep-alive',
      'x-run-id': RUN_ID,
    })
    const first = await response.body?.getReader().read()
    expect(Buffer.from(first?.value ?? []).toString()).to.equal(': ok\n')
    feed.end()
  })

  it('D4.2: frames are sent unchanged, text or bytes, and the stream ends after the last one', async () => {
    const feed = new Feed()
    const { url } = await following(feed)
    const stream = await EventStream.open(`${url}/runs/${RUN_ID}/events`)
    feed.push(renderFrame(1, delta('größer 😀')), 1)
    expect(await stream.next()).to.deep.equal({ id: 1, event: 'text_delta', data: { text: 'größer 😀' } })
    feed.push(Buffer.from(renderFrame(2, delta('b')) + renderFrame(3, { type: 'text', text: 'größer 😀b' })), 3)
    feed.push(renderFrame(4, DONE), 4)
    feed.end()
    expect((await stream.all()).map(({ id }) => id)).to.deep.equal([1, 2, 3, 4])
    expect(stream.comments).to.deep.equal(['ok'])
  })

  it('D4.2: an event is sent before the next one is requested', async () => {
    const feed = new Feed()
    const { port } = await following(feed)
    const wire = await Wire.open(port)
    await wire.send(FOLLOW).until(/: ok\n/)
    for (let i = 1; i <= 3; i++) {
      feed.push(renderFrame(i, delta(`x${i}`)), i)
      await wire.until(new RegExp(`"x${i}"`))
    }
    expect(feed.reads).to.be.lessThan(6)
    wire.socket.destroy()
    await feed.left
  })

  it('D4.5b: reading stops when the client disconnects, also while no frames arrive', async () => {
    const feed = new Feed()
    const { port } = await following(feed)
    const wire = await Wire.open(port)
    await wire.send(FOLLOW).until(/: ok/)
    wire.socket.destroy()
    await feed.left
  })

  it('D4.5b: reading stops when the client disconnected before the broker answered', async () => {
    const feed = new Feed()
    const asked = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const { port, line } = await start({
      methods: {
        async followRun() {
          asked.resolve()
          await gate.promise
          return feed
        },
      },
    })
    const wire = await Wire.open(port)
    wire.send(FOLLOW)
    await asked.promise
    wire.socket.destroy()
    await line(({ msg }) => msg === 'request')
    gate.resolve()
    await feed.left
  })

  it('a failure of the frames ends the stream with the error `internal`, which reveals nothing and repeats the last id', async () => {
    const feed = new Feed()
    const { url, line } = await following(feed)
    const stream = await EventStream.open(`${url}/runs/${RUN_ID}/events`)
    feed.push(renderFrame(1, delta('a')), 1)
    await stream.next()
    feed.fail(new Error('key sk-1 refused by 10.0.0.1'))
    const frame = await stream.next().catch(() => undefined)
    expect(frame).to.deep.include({ id: 1, event: 'error' })
    expect(frame?.data).to.include({ code: 'internal', retryable: false, error: 'internal error' })
    expect(JSON.stringify(frame)).to.not.match(/sk-1|10\.0/)
    expect(await line(({ msg }) => msg === 'stream failed')).to.include({ level: 'error', run_id: RUN_ID })
    await feed.left
  })

  it('D4.2: a resumed stream that fails immediately repeats the id that it was resumed from', async () => {
    const feed = new Feed()
    const { url } = await following(feed)
    feed.fail(new Error('gone'))
    const response = await fetch(`${url}/runs/${RUN_ID}/events?last_event_id=41`)
    expect(await response.text()).to.match(/^: ok\nid: 41\nevent: error\n/)
  })

  it('no frames are requested while the client does not read, and none is lost', async () => {
    const feed = new Feed()
    const { port } = await following(feed)
    const wire = await Wire.open(port)
    await wire.send(request(`GET /v1/runs/${RUN_ID}/events HTTP/1.1`, { Connection: 'close' })).until(/: ok/)
    wire.socket.pause()
    for (let i = 1; i <= 60; i++) feed.push(MEGABYTE, i)
    await fullness(feed)
    expect(feed.reads).to.be.lessThan(40)
    feed.end()
    wire.socket.resume()
    expect((await wire.end).length).to.be.greaterThan(60 * MEGABYTE.length)
  })

  it('a client that does not read is cut off with slow_consumer and the id of the last frame delivered', async () => {
    const feed = new Feed()
    const { port } = await following(feed, { stallMs: 100, closeGraceMs: 60_000 })
    const wire = await Wire.open(port)
    await wire.send(FOLLOW).until(/: ok/)
    wire.socket.pause()
    for (let i = 1; i <= 100; i++) feed.push(MEGABYTE, i)
    await feed.left
    const delivered = feed.reads
    wire.socket.resume()
    await wire.until(/0\r\n\r\n$/)
    expect(wire.text).to.match(new RegExp(`id: ${delivered}\nevent: error\ndata: .*"code":"slow_consumer".*\n\n`))
    wire.socket.destroy()
  })

  it('the connection of a client that does not read the final error either is destroyed', async () => {
    const feed = new Feed()
    const { port, line } = await following(feed, { stallMs: 50, closeGraceMs: 50 })
    const wire = await Wire.open(port)
    await wire.send(FOLLOW).until(/: ok/)
    wire.socket.pause()
    for (let i = 1; i <= 100; i++) feed.push(MEGABYTE, i)
    await feed.left
    expect(await line(({ msg }) => msg === 'request')).to.include({ is_cut: true })
    wire.socket.destroy()
  })

  it('a client that does not read is cut off behind the large frame that it is reading, when it reads on in time', async () => {
    const feed = new Feed()
    const metrics = new MetricsRegistry()
    const relay = { keepaliveMs: 15_000, stallMs: 100, closeGraceMs: 60_000 }
    const { port } = await start({ methods: { followRun: async () => feed }, metrics, relay })
    const wire = await Wire.open(port)
    await wire.send(FOLLOW_AND_CLOSE).until(/: ok/)
    wire.socket.pause()
    feed.push(renderFrame(1, DONE), 1)
    feed.push('id: 2\nevent: text\ndata: {"text":"', 1, { pieces: 1 })
    for (let i = 1; i < 30; i++) feed.push('x'.repeat(1_000_000), 1, { pieces: 1 + i })
    await until(() => metrics.counter('slow_consumers') === 1, { what: 'the client to be cut off' })
    feed.push('END"}\n\n', 2)
    feed.push(renderFrame(3, DONE), 3)
    wire.socket.resume()
    expect(unchunked(await wire.end)).to.match(/xEND"}\n\nid: 2\nevent: error\ndata: .*"code":"slow_consumer".*\n\n/)
    expect(wire.text).not.to.include('id: 3')
  })

  it('no keepalive comes inside a large frame', async () => {
    const feeds = [new Feed(), new Feed()]
    const [feed = new Feed()] = feeds
    const followRun = async () => feeds.shift() ?? new Feed()
    const { port } = await start({ methods: { followRun }, relay: { keepaliveMs: 100 } })
    const wire = await Wire.open(port)
    await wire.send(FOLLOW).until(/: keepalive/)
    feed.push('id: 1\nevent: text\ndata: {"text":"', 0, { pieces: 1 })
    await wire.until(/"text":"/)
    const other = await Wire.open(port)
    await other.send(FOLLOW).until(/(?:: keepalive[^]*){3}/)
    feed.push('x"}\n\n', 1)
    await wire.until(/x"}\n\n[^]*: keepalive/)
    expect(wire.text.slice(wire.text.indexOf('id: 1'), wire.text.indexOf('x"}'))).not.to.include('keepalive')
    for (const { socket } of [wire, other]) socket.destroy()
  })

  it('a connection whose large frame cannot be completed breaks, and sends nothing that looks like an event', async () => {
    const feed = new Feed()
    const { port } = await following(feed)
    const wire = await Wire.open(port)
    await wire.send(FOLLOW).until(/: ok/)
    feed.push('id: 1\nevent: text\ndata: {"text":"', 0, { pieces: 1 })
    await wire.until(/"text":"/)
    feed.push(renderFrame(0, DONE), 0, { failure: 'worker_lost' })
    expect((await wire.end.catch(() => wire.text)).replace(/\r\n$/, '')).to.match(/"text":"$/)
    await feed.left
  })

  it('open streams, all streams and clients that were cut off are counted', async () => {
    const metrics = new MetricsRegistry()
    const feeds = [new Feed(), new Feed()] as const
    const rest: Feed[] = [...feeds]
    const methods = { followRun: async () => rest.shift() ?? framesOf() }
    const { port, line } = await start({
      methods,
      metrics,
      relay: { keepaliveMs: 15_000, stallMs: 50, closeGraceMs: 50 },
    })
    const [reader, sleeper] = [await Wire.open(port), await Wire.open(port)]
    await reader.send(FOLLOW).until(/: ok/)
    await sleeper.send(FOLLOW).until(/: ok/)
    expect([metrics.counter('streams_opened'), await metrics.gaugeValue('streams')]).to.deep.equal([2, 2])
    sleeper.socket.pause()
    for (let i = 1; i <= 100; i++) feeds[1].push(MEGABYTE, i)
    await line(({ msg }) => msg === 'request')
    expect([metrics.counter('slow_consumers'), await metrics.gaugeValue('streams')]).to.deep.equal([1, 1])
    feeds[0].end()
    await reader.until(/0\r\n\r\n$/)
    expect([metrics.counter('streams_opened'), await metrics.gaugeValue('streams')]).to.deep.equal([2, 0])
    expect(metrics.counter('slow_consumers')).to.equal(1)
    for (const { socket } of [reader, sleeper]) socket.destroy()
  })

  it('api.md Events: an idle stream and a busy one get a keepalive line at each interval, without a blank line, of which some readers make an empty message', async () => {
    const idle = new Feed()
    const busy = new Feed()
    const feeds = [idle, busy]
    const { port } = await start({
      methods: { followRun: async () => feeds.shift() ?? framesOf() },
      relay: { keepaliveMs: 100 },
    })
    const quiet = await Wire.open(port)
    await quiet.send(FOLLOW).until(/: ok/)
    const lively = await Wire.open(port)
    await lively.send(FOLLOW).until(/: ok/)
    let seq = 0
    const feeding = setInterval(() => busy.push(renderFrame(++seq, delta('x')), seq), 5)
    await quiet.until(/(: keepalive\r?\n[^]*){3}/)
    await lively.until(/(: keepalive\r?\n[^]*){3}/)
    clearInterval(feeding)
    for (const { text } of [quiet, lively])
      expect(unchunked(text))
        .to.match(/: keepalive\n/)
        .and.not.match(/: keepalive\n\n/)
    expect(lively.text.split('event: text_delta').length).to.be.greaterThan(3)
    for (const wire of [quiet, lively]) wire.socket.destroy()
    await Promise.all([idle.left, busy.left])
  })

  it('an HTTP/1.0 client gets the stream without chunks, ended by the end of the connection', async () => {
    const { port } = await start({ methods: { followRun: async () => framesOf(delta('a'), DONE) } })
    const wire = await Wire.open(port)
    const text = await wire.send(FOLLOW.replace('HTTP/1.1', 'HTTP/1.0')).end
    expect(text).to.match(/\r\n\r\n: ok\nid: 1\nevent: text_delta\n[^]*event: done\n.*\n\n$/)
  })
})

const unchunked = (text: string) => text.replaceAll(/\r\n[0-9a-f]+\r\n/g, '')

/** Resolves when the feed has not been read from for a moment: the reader's buffers are full. */
async function fullness(feed: Feed): Promise<void> {
  for (let reads = -1; reads !== feed.reads; ) {
    reads = feed.reads
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
