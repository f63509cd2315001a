import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { createLog } from '../../shared/kernel/log.ts'
import {
  currentLink,
  inSpan,
  linked,
  recordSpansWith,
  type SpanContext,
  traceFields,
} from '../../shared/kernel/trace.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'
const LINK = { traceparent: `00-${TRACE}-${CALLER}-01`, request_id: 'r-1' }

describe('the trace of the running code', () => {
  type Ended = { name: string; parent: SpanContext | undefined; errorType: string | undefined }
  let ended: Ended[]
  let count = 0

  beforeEach(() => {
    ended = []
    recordSpansWith({
      start(name, { parent }) {
        const context = {
          traceId: parent?.traceId ?? TRACE,
          spanId: String(count++).padStart(16, '0'),
          isSampled: true,
        }
        return { context, set: () => {}, rename: () => {}, end: (errorType) => ended.push({ name, parent, errorType }) }
      },
    })
  })
  afterEach(() => recordSpansWith(undefined))

  it('goes with everything that a piece of work starts, also through an async generator', async () => {
    async function* links() {
      yield currentLink()
      await nextLoopTurn()
      yield currentLink()
    }
    const seen = await linked(LINK, async () => {
      const found = []
      for await (const link of links()) found.push(link)
      return found
    })
    expect(seen).to.deep.equal([LINK, LINK])
    expect(currentLink()).to.equal(undefined)
  })

  it('spans of work within a span are below it, and those of another trace are not', async () => {
    await linked(LINK, () => inSpan('outer', {}, () => inSpan('inner', {}, async () => {})))
    await inSpan('other', {}, async () => {})
    const [inner, outer, other] = ended
    expect(outer?.parent).to.deep.equal({ traceId: TRACE, spanId: CALLER, isSampled: true })
    expect(inner?.parent?.traceId).to.equal(TRACE)
    expect(inner?.parent?.spanId).not.to.equal(CALLER)
    expect(other?.parent).to.equal(undefined)
  })

  it('a span ends with its work, and is marked when the work fails', async () => {
    await inSpan('fails', {}, () => Promise.reject(new TypeError('a secret'))).catch(() => {})
    await inSpan('is marked', {}, async (fail) => fail('provider_auth'))
    expect(ended.map(({ name, errorType }) => [name, errorType])).to.deep.equal([
      ['fails', 'TypeError'],
      ['is marked', 'provider_auth'],
    ])
  })

  it('an invalid traceparent is ignored, and the request id is kept', () => {
    const ids = ['00-x-y-01', `00-${'0'.repeat(32)}-${CALLER}-01`, `00-${TRACE}-${'0'.repeat(16)}-01`, '']
    for (const traceparent of ids)
      linked({ traceparent, request_id: 'r-1' }, () => expect(currentLink()).to.deep.equal({ request_id: 'r-1' }))
  })

  it('its ids are on every log line, and without recording the request id alone', async () => {
    const lines: string[] = []
    const log = createLog({ level: 'info', write: (line) => lines.push(line) })
    linked(LINK, () => log.info('with a trace'))
    linked({ request_id: 'r-2' }, () => log.info('without'))
    log.info('outside')
    const fields = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(fields[0]).to.include({ request_id: 'r-1', otel_trace_id: TRACE, otel_span_id: CALLER })
    expect(fields[1]).to.include({ request_id: 'r-2' }).and.not.have.property('otel_trace_id')
    expect(fields[2]).not.to.have.any.keys('request_id', 'otel_trace_id')
    expect(traceFields()).to.deep.equal({})
  })
})
