import { expect } from 'chai'
import { longestStall } from '../support/stall.ts'
import { DONE, framesOf, type Gateway, RUN_ID, useGateways } from './setup.ts'

const MAX_STALL_MS = 250

/** Sends a body, again when the server had no time for it, as on a machine that is busy with other tests. */
async function send(gateway: Gateway, body: string): Promise<Response> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
  for (;;) {
    const response = await fetch(`${gateway.url}/agent/run`, init)
    if (response.status !== 503) return response
    expect(response.headers.get('retry-after')).to.equal('1')
    await response.text()
  }
}

// Bodies of ten megabytes, each of which may not block the event loop, are cases of test/fuzz.
describe('hostile bodies', () => {
  const start = useGateways()
  const open = (): Promise<Gateway> =>
    start({ methods: { startRun: async () => ({ runId: RUN_ID, frames: framesOf(DONE) }) } })

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
    const body = `{"prompt":"hi","x":[${'{},'.repeat(3_000_000)}{}]}`
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
