import { expect } from 'chai'
import { until } from '../../support/until.ts'
import * as of from '../dialects/recorded.ts'
import { sessionOf } from '../session-of.ts'
import { delta, Feed, LIVE_RUN, PERMISSION_ID, refusalOf, useGateways } from '../setup.ts'

const MESSAGES = [{ id: 'm', role: 'user', content: 'hi' }]
const A2A = {
  ...{ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage' },
  params: { message: { messageId: 'm', role: 'ROLE_USER', contextId: 's', parts: [{ text: 'hi' }] } },
}
const DOORS: [path: string, body: object][] = [
  ['/agent/run', { prompt: 'hi' }],
  ['/sessions/s/messages', { prompt: 'hi' }],
  ['/ui/chat', { id: 's', messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }] }],
  ['/ag-ui', { threadId: 's', runId: 'r', messages: MESSAGES }],
  ['/openai/v1/chat/completions', { model: 'main', messages: MESSAGES, stream: true }],
  ['/openai/v1/responses', { model: 'main', input: 'hi', stream: true }],
  ['/a2a', A2A],
]

describe('a client that closes its connection', () => {
  const start = useGateways()

  /** Sends the request, reads up to the first event of its run, and leaves. Returns the calls of the broker. */
  async function leave([path, body]: (typeof DOORS)[number], given: { header?: string; readers?: number } = {}) {
    const { header, readers = 0 } = given
    const calls: unknown[] = []
    const frames = new Feed()
    frames.push(`id: 1\nevent: text_delta\ndata: ${JSON.stringify(delta('first'))}\n\n`, 1)
    const open = async (background: boolean | undefined) => {
      if (background) calls.push('background')
      return { runId: of.RUN, frames }
    }
    const { url } = await start({
      methods: {
        getSession: async () => sessionOf('s'),
        startRun: async (_tenant, { background }) => open(background),
        sendMessage: async (_tenant, _id, { background }) => open(background),
        async getRun() {
          calls.push('looked')
          return { ...LIVE_RUN, readers }
        },
        async cancelRun(_tenant, runId) {
          calls.push(`cancelled ${runId}`)
        },
      },
    })
    const left = new AbortController()
    const headers = { 'content-type': 'application/json', ...(header && { 'x-on-disconnect': header }) }
    const init = { method: 'POST', headers, body: JSON.stringify(body), signal: left.signal }
    const reader = (await fetch(url + path, init)).body?.getReader()
    for (let text = ''; !text.includes('first'); ) text += new TextDecoder().decode((await reader?.read())?.value)
    left.abort()
    await frames.left
    return calls
  }

  it('D39.5: ends the run with X-On-Disconnect: cancel, in AG-UI by default, when nobody reads it soon after', async () => {
    const cancelled = await Promise.all(DOORS.map((door) => leave(door, { header: 'cancel' })))
    const [agUi, read] = await Promise.all([
      leave(DOORS[3] as (typeof DOORS)[number]),
      leave(DOORS[2] as (typeof DOORS)[number], { header: 'cancel', readers: 1 }),
    ])
    const end = `cancelled ${of.RUN}`
    await until(() => [...cancelled, agUi].every((calls) => calls.includes(end)), { what: 'the runs to be cancelled' })
    await until(() => read.includes('looked'), { what: 'the look at a run that is read' })
    expect(read).not.to.include(end)
  })

  it('D39.5: leaves the run with continue, which needs no reader then, and by default as before', async () => {
    for (const [i, door] of DOORS.entries()) {
      const [kept, plain] = [await leave(door, { header: 'continue' }), await leave(door, { header: '' })]
      expect(kept, door[0]).to.deep.equal(['background'])
      if (door[0] !== '/ag-ui') expect(plain, door[0]).to.deep.equal([0, 1, 4].includes(i) ? [] : ['background'])
    }
  })

  it('D39.5: another value is refused before anything starts', async () => {
    const { post } = await start({ methods: { getSession: async () => sessionOf('s') } })
    for (const [path, body] of DOORS.slice(0, -1)) {
      const refused = await post(path, body, { 'x-on-disconnect': 'stop' })
      expect([refused.status, (await refusalOf(refused)).param], path).to.deep.equal([400, '/X-On-Disconnect'])
    }
  })

  it('D39.5: a client that has its whole response leaves no run, though this one goes on: it waits for permission', async () => {
    const events = [of.turn(1), of.call('c1'), of.asked(PERMISSION_ID, 'c1')]
    const frames = new Feed()
    let looks = 0
    const { post } = await start({
      methods: {
        getSession: async () => sessionOf('s'),
        sendMessage: async () => ({ runId: of.RUN, frames }),
        async getRun() {
          looks++
          return LIVE_RUN
        },
      },
    })
    for (const [i, { type, ...data }] of events.entries())
      frames.push(`id: ${i + 1}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`, i + 1)
    const [path, body] = DOORS[3] as (typeof DOORS)[number]
    expect(await (await post(path, body)).text()).to.include('"interrupt"')
    const other = await leave(DOORS[3] as (typeof DOORS)[number])
    await until(() => other.includes('looked'), { what: 'the end of the time to come back' })
    expect(looks).to.equal(0)
  })
})
