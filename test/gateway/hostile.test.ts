import { expect } from 'chai'
import { longestStall } from '../support/stall.ts'
import { DONE, framesOf, type Gateway, RUN_ID, useGateways } from './setup.ts'

const LIMIT = 10_485_760
const MAX_STALL_MS = 250

const encode = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)

/** A body whose `field` is a list of as many units as fit. */
function fill(field: string, unit: (i: number) => string, [open, close] = '[]'): Uint8Array<ArrayBuffer> {
  const parts: string[] = []
  for (let i = 0, size = 64; size + unit(i).length < LIMIT; i++) {
    parts.push(unit(i))
    size += unit(i).length + 1
  }
  return encode(`{"prompt":"hi","${field}":${open}${parts.join(',')}${close}}`)
}

const bombs: [string, number, () => Uint8Array<ArrayBuffer>][] = [
  ['ten megabytes of empty objects in an unknown field', 200, () => fill('x', () => '{}')],
  ['ten megabytes of objects of different shapes', 200, () => fill('x', (i) => `{"${i.toString(36)}":0}`)],
  ['one object with a million keys', 200, () => fill('x', (i) => `"${i.toString(36)}":0`, '{}')],
  ['ten megabytes of brackets, 60 deep', 200, () => fill('x', () => '['.repeat(60) + ']'.repeat(60))],
  ['two million stop_sequences', 400, () => fill('stop_sequences', () => '"a"')],
  ['a million tools, which are ignored', 200, () => fill('tools', () => '{"a":1}')],
  ['a prompt of ten megabytes', 400, () => encode(`{"prompt":"${'😀'.repeat(LIMIT / 4 - 4)}"}`)],
  ['an object as customer_id', 400, () => fill('customer_id', (i) => `"k${i}":{}`, '{}')],
  ['five million levels', 400, () => encode('['.repeat(LIMIT / 2) + ']'.repeat(LIMIT / 2))],
  ['ten megabytes of an unfinished string', 400, () => encode(`{"prompt":"${'a'.repeat(LIMIT - 12)}`)],
  ['ten megabytes of invalid UTF-8', 400, () => new Uint8Array(LIMIT).fill(0xff)],
  ['ten megabytes of backslashes', 400, () => new Uint8Array(LIMIT).fill(0x5c)],
]

/** Sends a body, again when the server had no time for it, as on a machine that is busy with other tests. */
async function send(gateway: Gateway, body: Uint8Array<ArrayBuffer>): Promise<Response> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
  for (;;) {
    const response = await fetch(`${gateway.url}/agent/run`, init)
    if (response.status !== 503) return response
    expect(response.headers.get('retry-after')).to.equal('1')
    await response.text()
  }
}

describe('hostile bodies', () => {
  const start = useGateways()
  const open = (): Promise<Gateway> =>
    start({ methods: { startRun: async () => ({ runId: RUN_ID, frames: framesOf(DONE) }) } })

  for (const [what, status, make] of bombs) {
    it(`${what}: ${status}, and the event loop is never blocked for ${MAX_STALL_MS} ms`, async () => {
      const gateway = await open()
      await (await gateway.post('/agent/run', { prompt: 'warm' })).text()
      const body = make()
      const stall = await longestStall(async () => {
        const response = await send(gateway, body)
        expect(response.status).to.equal(status)
        await response.text()
      })
      expect(stall).to.be.lessThan(MAX_STALL_MS)
    })
  }

  it('the first body of a process does not block the event loop either', async () => {
    const gateway = await open()
    const stall = await longestStall(async () => (await gateway.post('/agent/run', { prompt: 'hi' })).text())
    expect(stall).to.be.lessThan(MAX_STALL_MS)
  })

  it('D2.6: a prompt of 100,000 emoji is accepted, also in its longest spelling', async () => {
    const gateway = await open()
    for (const emoji of ['😀', '\\ud83d\\ude00']) {
      const response = await gateway.post('/agent/run', `{"prompt":"${emoji.repeat(100_000)}"}`)
      expect(response.status).to.equal(200)
      await response.text()
    }
  })

  it('while a large body is decoded, small requests are answered', async () => {
    const gateway = await open()
    const body = fill('x', () => '{}')
    const order: string[] = []
    const sendLarge = async () => {
      await (await send(gateway, body)).text()
      order.push('large')
    }
    const large = sendLarge()
    for (let i = 0; i < 3; i++) order.push(await (await gateway.post('/agent/run', { prompt: 'hi' })).text())
    await large
    expect(order.at(-1)).to.equal('large')
  })
})
