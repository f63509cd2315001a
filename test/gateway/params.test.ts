import { expect } from 'chai'
import type { Request } from 'express'
import {
  FLOW_VERSION,
  idempotencyKeyOf,
  lastEventId,
  oneOf,
  pageRequestOf,
  pathId,
  queryFlag,
  queryNumber,
  queryValue,
  RUN,
  resumeIdOf,
  SESSION,
  turnOf,
} from '../../services/gateway/params.ts'
import { AppError } from '../../shared/kernel/errors.ts'

type Sent = { method?: string; params?: object; query?: object; headers?: Record<string, string | string[]> }

/** A request as Express hands it to a route. */
function requestOf({ method = 'GET', params = {}, query = {}, headers = {} }: Sent): Request {
  const headersDistinct = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat()]))
  return { method, params, query, headers, headersDistinct } as unknown as Request
}

function refusalOf(read: () => unknown): { status: number; param: string | undefined } {
  try {
    return expect.fail(`nothing was refused, but read: ${String(read())}`)
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause
    return { status: cause.status, param: cause.param }
  }
}

describe('the parameters of a request', () => {
  it('D2.11: an id of the wrong form is unknown, and refused where a PUT would create it', () => {
    const read = (id: string, method = 'GET') => pathId(requestOf({ method, params: { id } }), 'id', SESSION)
    expect(read('s:1.a_B-')).to.equal('s:1.a_B-')
    expect(read('x'.repeat(128))).to.have.length(128)
    for (const id of ['', 'a b', 'a/b', 'ü', 'x'.repeat(129), 'a\n']) {
      expect(
        refusalOf(() => read(id)),
        id,
      ).to.deep.equal({ status: 404, param: undefined })
      expect(
        refusalOf(() => read(id, 'PUT')),
        id,
      ).to.deep.equal({ status: 400, param: '/id' })
    }
  })

  it('D2.8: the id of a run has 32 hexadecimal digits, and a version no zero before it', () => {
    expect(RUN.pattern.test(`run_${'0f'.repeat(16)}`)).to.equal(true)
    for (const id of [`run_${'0F'.repeat(16)}`, `run_${'0f'.repeat(15)}`, `perm_${'0f'.repeat(16)}`])
      expect(RUN.pattern.test(id), id).to.equal(false)
    expect(['1', '10', '0', '01', '-1', '1.0'].map((text) => FLOW_VERSION.pattern.test(text))).to.deep.equal([
      ...[true, true, false, false, false, false],
    ])
  })

  it('D2.11: a parameter that is given twice, or has another value, is refused by its name', () => {
    const read = (state: unknown) => queryValue(requestOf({ query: { state } }), 'state', oneOf(['open', 'done']))
    expect([read(undefined), read('open')]).to.deep.equal([undefined, 'open'])
    for (const value of [['open', 'done'], '', 'opened', 'reopen', { a: 'open' }])
      expect(
        refusalOf(() => read(value)),
        JSON.stringify(value),
      ).to.deep.equal({ status: 400, param: '/state' })
  })

  it('a flag is true or false, and false without it', () => {
    const read = (flag?: string) => queryFlag(requestOf({ query: { flag } }), 'flag')
    expect([read('true'), read('false'), read()]).to.deep.equal([true, false, false])
    expect(refusalOf(() => read('1')).param).to.equal('/flag')
  })

  it('a number is written as JSON writes it, and lies in its range', () => {
    const read = (rate: string) => queryNumber(requestOf({ query: { rate } }), 'rate', [0, 1])
    expect(['0', '1', '0.5', '5e-1'].map(read)).to.deep.equal([0, 1, 0.5, 0.5])
    for (const text of ['-0.1', '1.1', '1e3', '.5', '0x1', 'NaN', `0.${'5'.repeat(40)}`])
      expect(refusalOf(() => read(text)).param, text).to.equal('/rate')
  })

  it('D2.7: a page has 50 items, or 1 to 200, and begins at the cursor', () => {
    const read = (query: object) => pageRequestOf(requestOf({ query }))
    expect(read({})).to.deep.equal({ limit: 50 })
    expect([read({ limit: '1' }), read({ limit: '200', cursor: 'a-B_1' })]).to.deep.equal([
      { limit: 1 },
      { limit: 200, cursor: 'a-B_1' },
    ])
    for (const limit of ['0', '201', '01', '1.5', '-1'])
      expect(refusalOf(() => read({ limit })).param).to.equal('/limit')
    expect(refusalOf(() => read({ cursor: 'a+b' })).param).to.equal('/cursor')
  })

  it('D6.6: a key has 1 to 255 printable characters and is sent once', () => {
    const read = (key: string | string[]) => idempotencyKeyOf(requestOf({ headers: { 'idempotency-key': key } }))
    expect(idempotencyKeyOf(requestOf({}))).to.equal(undefined)
    expect(['k', 'a b', 'k'.repeat(255)].map(read)).to.deep.equal(['k', 'a b', 'k'.repeat(255)])
    for (const key of ['', ' k', 'k ', 'ü', 'k'.repeat(256), ['k', 'k']])
      expect(refusalOf(() => read(key)).param, String(key)).to.equal('/Idempotency-Key')
  })

  it('D4.5c: the last event is below 2^32: from the header, else from the query, else none', () => {
    const read = (header?: string, query?: string) =>
      lastEventId(
        requestOf({
          query: { last_event_id: query },
          headers: header === undefined ? {} : { 'last-event-id': header },
        }),
      )
    expect([read('7', '9'), read(undefined, '9'), read(), read('4294967295')]).to.deep.equal([7, 9, 0, 4_294_967_295])
    for (const id of ['4294967296', '9999999999', '-1', '1.0', '', '99999999999'])
      expect(refusalOf(() => read(id)).param, id).to.equal('/Last-Event-ID')
    expect(refusalOf(() => read(undefined, 'x')).param).to.equal('/last_event_id')
  })

  it('D54.1: a start in a format without places for them says its priority and how long it waits with headers', () => {
    const read = (priority: string, waitSecs: string) =>
      turnOf(requestOf({ headers: { 'x-priority': priority, 'x-wait-secs': waitSecs } }))
    expect(turnOf(requestOf({}))).to.deep.equal({})
    for (const secs of [1, 59, 999, 2_999, 3_600])
      expect(read('batch', String(secs))).to.deep.equal({ priority: 'batch', wait_secs: secs })
    for (const secs of ['0', '3601', '9999', '1.5', '-1', '', 'x', '01'])
      expect(refusalOf(() => read('batch', secs)).param, secs).to.equal('/X-Wait-Secs')
    expect(refusalOf(() => read('high', '1')).param).to.equal('/X-Priority')
  })

  it('D16b: the id of another stream is any text; an empty header is none', () => {
    const read = (header: string, query?: string) =>
      resumeIdOf(requestOf({ query: { last_event_id: query }, headers: { 'last-event-id': header } }))
    expect(read('3-7', 'x')).to.deep.equal({ name: 'Last-Event-ID', value: '3-7' })
    expect(read('', 'x')).to.deep.equal({ name: 'last_event_id', value: 'x' })
    expect(read('')).to.equal(undefined)
  })
})
