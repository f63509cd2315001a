import { mock } from 'node:test'
import { expect } from 'chai'
import { ApiError, ConnectionFailed } from '../../../shared/client/errors.ts'
import { type EventId, type Followed, type FollowedEvent, follow } from '../../../shared/client/http/follow.ts'
import type { OpenStream } from '../../../shared/client/http/open-stream.ts'
import { backoffMs } from '../../../shared/client/http/wait.ts'
import { refusal } from '../fake-server.ts'

type Sent = { id: string; event: string; data?: string }
/** Events of one connection, which then ends, or breaks with what `breaks` is. */
type Connection = { events?: Sent[]; status?: number; breaks?: unknown }

const token = (id: number): Sent => ({ id: String(id), event: 'text_delta', data: '{}' })
const done = (id: number): Sent => ({ id: String(id), event: 'done', data: '{}' })
const failure = (id: number, code: string): Sent => ({ id: String(id), event: 'error', data: JSON.stringify({ code }) })
const refused = (status: number) => new ApiError(refusal(status, 'refused'), '')

/** The ids of the events over these connections, what each of them was asked for, and the failure that ended it. */
async function followAll(connections: readonly (Connection | Error)[], options: Partial<Followed> = {}) {
  const left = [...connections]
  const asked: (EventId | undefined)[] = []
  const opened: AbortController[] = []
  const open = async (after: EventId | undefined): Promise<OpenStream> => {
    asked.push(after)
    const next = left.shift() ?? new Error('one connection too many')
    if (next instanceof Error) throw next
    const { events = [], status = 200, breaks } = next
    async function* read() {
      for (const { id, event, data = '{}' } of events) yield { id, event, data }
      if (breaks !== undefined) throw breaks
    }
    const abort = new AbortController()
    opened.push(abort)
    return { response: new Response(null, { status }), events: read(), abort, retryMs: 0 }
  }
  const seen: FollowedEvent[] = []
  let cause: unknown
  try {
    const events = follow({ open, signal: undefined, ...options })
    for await (const event of events) seen.push(event)
  } catch (failed) {
    cause = failed
  }
  expect(opened.filter(({ signal }) => !signal.aborted)).to.deep.equal([])
  return {
    ids: seen.map(({ id }) => String(id)),
    events: seen.map(({ event }) => event),
    asked,
    cause,
    unused: left.length,
  }
}

describe('a stream that is followed over connections that break', () => {
  it('goes on behind the last event, shows each once, and ends behind the last one', async () => {
    const connections = [{ events: [token(1), token(2)] }, { events: [token(2), token(3), done(4), token(5)] }]
    const { ids, asked, cause } = await followAll([...connections, { events: [] }])
    expect(ids).to.deep.equal(['1', '2', '3', '4'])
    expect(asked).to.deep.equal([undefined, 2])
    expect(cause).to.equal(undefined)
  })

  it('D39.2: shows the warnings of number 0 ahead of the first event, and goes on behind none of them', async () => {
    const warning = { ...token(0), event: 'warning' }
    const connections = [{ events: [warning, warning] }, { events: [warning, token(1), done(2)] }]
    const { ids, asked } = await followAll(connections)
    expect([ids, asked]).to.deep.equal([
      ['0', '0', '0', '1', '2'],
      [undefined, undefined],
    ])
  })

  it('ends without an event when the server says that nothing follows', async () => {
    const { ids, asked, cause } = await followAll([{ events: [token(1)] }, { status: 204 }], { after: 0 })
    expect([ids, asked, cause]).to.deep.equal([['1'], [undefined, 1], undefined])
  })

  it('takes an error for the end of the connection, and for that of the stream when the caller says so', async () => {
    const lost = failure(1, 'relay_unavailable')
    const { events } = await followAll([{ events: [token(1), lost] }, { events: [done(2)] }])
    expect(events).to.deep.equal(['text_delta', 'done'])
    const found: unknown[] = []
    const isEnd: Followed['isEnd'] = ({ code }, about) => found.push([code, about]) > 1
    const twice = await followAll([{ events: [token(1), lost] }, { events: [lost] }], { isEnd })
    expect(twice.events).to.deep.equal(['text_delta', 'error'])
    expect(found).to.deep.equal([
      ['relay_unavailable', { isKnown: true, before: undefined }],
      ['relay_unavailable', { isKnown: true, before: 'relay_unavailable' }],
    ])
  })

  it('does not compare ids that are no numbers', async () => {
    const events = ['b-2', 'b-1', 'b-3'].map((id) => ({ id, event: id === 'b-3' ? 'done' : 'run' }))
    expect((await followAll([{ events }], { reset: false })).ids).to.deep.equal(['b-2', 'b-1', 'b-3'])
  })

  it('begins a connection with a reset where nothing says what came before it', async () => {
    const again = { events: [{ id: 'b-1', event: 'done' }] }
    expect((await followAll([{}, again], { reset: false })).events).to.deep.equal(['reset', 'done'])
    expect((await followAll([again], { reset: true })).events).to.deep.equal(['reset', 'done'])
    expect((await followAll([again], { reset: true, after: 'a-1' })).events).to.deep.equal(['done'])
    expect((await followAll([{ events: [token(1)] }, { events: [done(2)] }])).events).to.deep.equal([
      'text_delta',
      'done',
    ])
  })

  it('goes on after a connection that breaks, and throws at once what no further attempt can mend', async () => {
    const broken = { events: [token(1)], breaks: new ConnectionFailed('broken') }
    expect((await followAll([broken, { events: [done(2)] }])).ids).to.deep.equal(['1', '2'])
    for (const final of [refused(404), new ConnectionFailed('away'), new Error('a bug')]) {
      const { cause, unused } = await followAll([final, { events: [done(1)] }])
      expect([cause, unused]).to.deep.equal([final, 1])
    }
    for (const other of [
      { ...done(1), id: 'x' },
      { ...done(1), data: '<html>' },
    ])
      expect((await followAll([{ events: [other] }, { events: [done(1)] }])).cause).to.match(/check the url/)
    const wrong = new Error('a bug')
    expect((await followAll([{ events: [token(1)], breaks: wrong }])).cause).to.equal(wrong)
  })

  it('ignores what breaks behind the last event', async () => {
    const { ids, cause } = await followAll([{ events: [done(1)], breaks: new ConnectionFailed('late') }])
    expect([ids, cause]).to.deep.equal([['1'], undefined])
  })

  it('gives up a server that answers for too long without an event, unless nothing has to happen', async () => {
    const silent = Array.from({ length: 401 }, (): Connection => ({}))
    const given = await followAll([...silent, { events: [done(1)] }])
    expect(given.cause).to.be.instanceOf(ConnectionFailed)
    expect(given.asked).to.have.length(401)
    expect((await followAll([...silent, { events: [done(1)] }], { reset: false })).cause).to.equal(undefined)
    expect((await followAll([...silent.slice(1), { events: [done(1)] }])).ids).to.deep.equal(['1'])
  })

  it('waits half to all of a pause that doubles up to 5 s', () => {
    try {
      for (const [share, pauses] of [
        [0, [100, 200, 1_600, 2_500, 2_500]],
        [1, [200, 400, 3_200, 5_000, 5_000]],
      ] as const) {
        mock.method(Math, 'random', () => share)
        expect([1, 2, 5, 6, 20].map(backoffMs)).to.deep.equal(pauses)
      }
    } finally {
      mock.restoreAll()
    }
  })

  it('ends with the reason of a caller that leaves', async () => {
    const abort = new AbortController()
    abort.abort('left')
    const { cause, asked } = await followAll([{}], { signal: abort.signal })
    expect([cause, asked]).to.deep.equal(['left', [undefined]])
  })
})
