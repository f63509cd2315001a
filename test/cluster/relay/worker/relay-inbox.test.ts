import { expect } from 'chai'
import type { Inbox } from '../../../../shared/cluster/commands/inbox.ts'
import type { FrameCursor } from '../../../../shared/cluster/journal/frame-stream.ts'
import { BY_WORKER, packMessage, RECORD, readMessage, record } from '../../../../shared/cluster/relay/wire/records.ts'
import { Transport } from '../../../../shared/cluster/relay/wire/transport.ts'
import { RelayInbox, workerMethods } from '../../../../shared/cluster/relay/worker/relay-inbox.ts'
import { NO_METRICS } from '../../../../shared/kernel/metrics.ts'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'

const GATEWAY = 2
const cursor: FrameCursor = {
  seq: 0,
  pieces: 0,
  state: 'waiting',
  isTooFarBehind: false,
  subscribe: () => {},
  take: () => undefined,
  seek: () => {},
  confirmRead: () => {},
  close: () => {},
}

/** A worker whose methods only record their calls. `call` resolves with the channel and the text of the reply. */
async function setUp() {
  const calls: [method: string, ...args: unknown[]][] = []
  const recording =
    (method: string, result?: unknown) =>
    (...args: unknown[]): never => {
      calls.push([method, ...args])
      return result as never
    }
  const inbox: Inbox = {
    listRemembered: recording('listRemembered'),
    forgetRemembered: recording('forgetRemembered'),
    createSession: recording('createSession', 'created'),
    getSession: recording('getSession', 'found'),
    listSessions: recording('listSessions', 'sessions'),
    listMessages: recording('listMessages', 'messages'),
    renameSession: recording('renameSession', 'renamed'),
    deleteSession: recording('deleteSession', Promise.resolve()),
    startRun: recording('startRun'),
    sendMessage: recording('sendMessage'),
    acceptRun: recording('acceptRun'),
    listRuns: recording('listRuns', 'runs'),
    listTenants: recording('listTenants', 'tenants'),
    getRun: recording('getRun', 'run'),
    followRun: recording('followRun', cursor),
    cancelRun: recording('cancelRun'),
    steerRun: recording('steerRun'),
    estimateRun: recording('estimateRun', Promise.resolve()),
    branchOf: recording('branchOf'),
    listFiles: recording('listFiles'),
    readFile: recording('readFile'),
  }
  let reply = (_channel: string, _text: string) => {}
  const transport = new Transport(
    {
      role: 'worker',
      lease: { isHeld: () => true },
      metrics: NO_METRICS,
      bus: {
        async publish(channel, message) {
          readMessage(message, ({ type, body }) => type === RECORD.reply && reply(channel, body.toString()))
          return 1
        },
        subscribe: async (_channel, onMessage) => {
          deliver = onMessage
        },
        unsubscribe: async () => {},
        resubscribe: async () => {},
        reconnect: () => {},
      },
    },
    { onRecord: (from, received) => redisInbox.onRecord(from, received), onUndelivered: () => {} },
  )
  let deliver = (_message: Buffer) => {}
  const redisInbox = new RelayInbox(transport, (follow) => {
    const sessions = {
      createSession: (_from: number, ...args: [TenantId, string, string]) => inbox.createSession(...args),
      adoptSession: recording('adoptSession'),
      inheritSessions: async () => [],
    }
    return workerMethods(inbox, sessions, follow)
  })
  await transport.enter(1)
  let lastId = 0
  const call = (method: string, args: unknown[], flags = 0) => {
    const { promise, resolve } = Promise.withResolvers<[channel: string, answer: unknown]>()
    reply = (channel, text) => resolve([channel, JSON.parse(text)])
    const body = JSON.stringify({ method, args })
    deliver(packMessage(GATEWAY, 0, [record(RECORD.call, { stream: ++lastId, flags, body })]))
    return promise
  }
  return { calls, call, transport }
}

describe('inbox over Redis', () => {
  it('every method is called with the arguments that were sent, and its value is the answer', async () => {
    const { calls, call } = await setUp()
    for (const [method, args, value] of [
      ['createSession', ['t', 's', 'a1'], 'created'],
      ['getSession', ['t', 's'], 'found'],
      ['listSessions', ['t', { limit: 2 }], 'sessions'],
      ['listMessages', ['t', 's', { limit: 2 }], 'messages'],
      ['renameSession', ['t', 's', 'title'], 'renamed'],
      ['deleteSession', ['t', 's', 'a1'], null],
      ['listRuns', ['t', { limit: 2 }], 'runs'],
      ['getRun', ['t', 'r'], 'run'],
      ['cancelRun', ['t', 'r'], null],
    ] as const) {
      expect(await call(method, [...args]), method).to.deep.equal([`gw:${GATEWAY}`, { value }])
      expect(calls.splice(0), method).to.deep.equal([[method, ...args]])
    }
  })

  it('a method that opens a stream attaches the run’s frames under the caller’s stream number', async () => {
    const { calls, call, transport } = await setUp()
    await call('startRun', ['t', 'r', { prompt: 'x' }, 1])
    await call('sendMessage', ['t', 'r', { prompt: 'x', sessionId: 's' }, 2])
    await call('followRun', ['t', 'r', 5, 3])
    expect(calls).to.deep.equal([
      ['startRun', 't', 'r', { prompt: 'x' }],
      ['followRun', 't', 'r', 0],
      ['sendMessage', 't', 'r', { prompt: 'x', sessionId: 's' }],
      ['followRun', 't', 'r', 0],
      ['followRun', 't', 'r', 5],
      ['acceptRun', 't', 'r'],
    ])
    expect(transport.outbox('gateway', GATEWAY).streamCount).to.equal(3)
  })

  it('a new run is accepted with the first read position of its stream', async () => {
    const { calls, call, transport } = await setUp()
    await call('startRun', ['t', 'r', { prompt: 'x' }, 1])
    const outbox = transport.outbox('gateway', GATEWAY)
    outbox.confirmRead(2, { seq: 0, pieces: 0 })
    expect(calls).to.have.length(2)
    outbox.confirmRead(1, { seq: 0, pieces: 0 })
    outbox.confirmRead(1, { seq: 3, pieces: 0 })
    expect(calls.slice(2)).to.deep.equal([['acceptRun', 't', 'r']])
  })

  it('a worker’s call is answered on a worker’s channel', async () => {
    const { calls, call } = await setUp()
    expect(await call('adoptSession', [{ id: 's' }], BY_WORKER)).to.deep.equal([`wk:${GATEWAY}`, { value: null }])
    expect(calls).to.deep.equal([['adoptSession', GATEWAY, { id: 's' }]])
  })

  it('an unknown method is refused as internal, even if every object has one of that name', async () => {
    const { calls, call } = await setUp()
    for (const method of ['dropAll', 'toString', 'constructor', '__proto__']) {
      const [, answer] = await call(method, [])
      expect(answer, method).to.have.nested.property('error.kind', 'internal')
    }
    expect(calls).to.deep.equal([])
  })
})
