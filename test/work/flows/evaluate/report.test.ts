import { expect } from 'chai'
import fc from 'fast-check'
import { compare, differencesOf, type Measured, summarize } from '../../../../shared/work/flows/evaluate/report.ts'

type Recorded = Measured & { trace_id: string }

const measured = (fields: Partial<Recorded>): Recorded => ({
  trace_id: 'trace_1',
  verdict: 'ok',
  output: {},
  cost_usd: 0,
  duration_ms: 0,
  error: null,
  ...fields,
})

describe('the differences of two outputs', () => {
  it('are none between equal values', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(differencesOf(value, structuredClone(value))).to.deep.equal([])
      }),
    )
  })

  it('name the place by its JSON pointer, and show both values', () => {
    const draft = { a: { 'b/c': [1, 2] }, same: true, extra: 'x' }
    const published = { a: { 'b/c': [1, 3, 4] }, same: true }
    expect(differencesOf(draft, published)).to.deep.equal([
      { path: '/a/b~1c/1', draft: 2, published: 3 },
      { path: '/a/b~1c/2', draft: null, published: 4 },
      { path: '/extra', draft: 'x', published: null },
    ])
  })

  it('compare an object and an array as a whole', () => {
    expect(differencesOf({ 0: 'a' }, ['a'])).to.deep.equal([{ path: '', draft: { 0: 'a' }, published: ['a'] }])
  })

  it('are at most 50', () => {
    const list = (value: number) => Array.from({ length: 1_000 }, () => value)
    expect(differencesOf(list(1), list(2))).to.have.length(50)
  })
})

describe('the report of an evaluation', () => {
  const flow = { name: 'triage', version: 4, published_version: 3 }

  it('holds the pass rate, the cost and the latency of both versions', () => {
    const draft = [
      measured({ cost_usd: 0.1, duration_ms: 100 }),
      measured({ verdict: 'invalid_output', cost_usd: 0.2, duration_ms: 300 }),
      measured({
        verdict: null,
        cost_usd: 0.3,
        duration_ms: 200,
        error: { status: 502, type: 'upstream_error', message: 'm' },
      }),
    ]
    const runs = draft.map((each) => compare(each, measured({ trace_id: 'trace_2', cost_usd: 1, duration_ms: 50 })))
    const report = summarize(flow, runs)
    expect(report).to.deep.include({ flow_id: 'triage', version: 4, published_version: 3, runs })
    expect(report.pass_rate).to.be.closeTo(1 / 3, 1e-9)
    expect(report.cost_usd).to.be.closeTo(0.6, 1e-9)
    expect(report).to.deep.include({
      latency_ms_p50: 200,
      published_latency_ms_p50: 50,
      published_pass_rate: 1,
      published_cost_usd: 3,
    })
    expect(runs[2]?.error).to.deep.equal({ type: 'upstream_error', message: 'm' })
  })
})
