import { expect } from 'chai'
import {
  aboutRequest,
  aboutStart,
  describeRun,
  lostRecord,
  recordOf,
} from '../../../../shared/work/runs/records/record.ts'
import { isFound } from '../../../../shared/work/runs/records/run-history.ts'
import { RunFigures } from '../../../../shared/work/runs/run-figures.ts'
import { asStored, DONE, recordOf as example, factsOf } from './setup.ts'

describe('the record of a run', () => {
  it('holds what the run was and what it has spent, and neither its tenant nor an empty customer', () => {
    const figures = new RunFigures()
    figures.note({ type: 'turn_start', turn_number: 1, model: 'm' })
    figures.note({ type: 'tool_use', id: 'u', tool_name: 'Read', input: {} })
    figures.note(DONE)
    const end = { status: 'done', endedAt: '2026-11-24T10:00:02.000Z', eventCount: 3 } as const
    const stored = asStored(recordOf(factsOf(1, { customer_id: '' }), figures, end))
    const { queued_ms, first_token_ms, ...record } = stored
    const { tenant: _tenant, ...facts } = factsOf(1)
    expect(record).to.deep.equal({
      ...facts,
      ...{ status: 'done', code: 'ok', ended_at: end.endedAt, event_count: 3, model: 'm', turns: 0 },
      ...{
        tool_calls: 1,
        permissions: 0,
        cache_read_tokens: 0,
        cache_write_tokens: 0,
        input_tokens: 20,
        output_tokens: 7,
        cost_usd: 0.5,
      },
    })
    expect([queued_ms, first_token_ms].every(Number.isInteger)).to.equal(true)
    expect(describeRun(factsOf(1, { customer_id: 'ada' }), figures)).to.include({ customer_id: 'ada' })
    expect(describeRun(factsOf(1), new RunFigures())).to.include({ queued_ms: undefined, first_token_ms: undefined })
  })

  it('D20.6: has the request that began the run, unless it came with a history of its own', () => {
    const about = { customer_id: 'ada', metadata: { a: 'b' }, files: [] }
    const request = { ...about, prompt: `Ship it ${'x'.repeat(200)}`, model: 'm', background: true }
    const title = aboutRequest(request).title ?? ''
    expect(title)
      .to.match(/^Ship it x+/)
      .and.have.length.at.most(120)
    const at = new Date('2026-11-24T11:00:00.000Z')
    const known = { customer_id: 'ada', metadata: { a: 'b' }, attachments: [], title, deadline_at: undefined }
    const kept = { prompt: request.prompt, model: 'm' }
    expect(aboutStart(request, at)).to.deep.equal({ ...known, request: kept })
    expect(aboutStart({ ...request, messages: [] }, at)).to.deep.equal({ ...known, request: undefined })
    const dated = aboutStart({ ...request, deadline_hours: 0.5 }, at)
    expect(dated).to.include({ deadline_at: '2026-11-24T11:30:00.000Z' })
  })

  it('D20.4: of a run whose process died says so, and no more than was known at its start', () => {
    const { tenant: _tenant, ...facts } = factsOf(1)
    const lost = lostRecord(factsOf(1, { customer_id: '', subject: undefined }), '2026-11-24T11:00:00.000Z')
    const end = { status: 'failed', code: 'worker_lost', ended_at: '2026-11-24T11:00:00.000Z', event_count: 0 }
    expect(asStored(lost)).to.deep.equal({ ...facts, ...end })
  })
})

describe('a search among runs', () => {
  const run = { ...example(1), session_id: 's', customer_id: 'c', subject: 'ada', model: 'm', flow: 'f', cost_usd: 0.5 }

  it('finds a run when each field that is asked for is equal', () => {
    const fields = ['status', 'kind', 'code', 'session_id', 'customer_id', 'subject', 'model', 'flow'] as const
    expect(isFound(run, {})).to.equal(true)
    for (const field of fields) {
      expect(isFound(run, { [field]: run[field] }), field).to.equal(true)
      expect(isFound(run, { [field]: 'other' }), field).to.equal(false)
      expect(isFound({ ...run, [field]: undefined }, { [field]: run[field] }), field).to.equal(false)
    }
  })

  it('includes the start of its time and leaves out the end', () => {
    const { started_at } = run
    expect(isFound(run, { since: started_at })).to.equal(true)
    expect(isFound(run, { since: '2026-11-24T10:00:00.001Z' })).to.equal(false)
    expect(isFound(run, { until: started_at })).to.equal(false)
    expect(isFound(run, { until: '2026-11-24T10:00:00.001Z' })).to.equal(true)
  })

  it('finds what has cost as much or more, and counts an unknown cost as nothing', () => {
    expect(isFound(run, { min_cost: 0.5 })).to.equal(true)
    const tagged = { ...run, metadata: { team: 'red', stage: 'a' } }
    expect(isFound(tagged, { metadata: { team: 'red' } })).to.equal(true)
    expect(isFound(tagged, { metadata: { team: 'red', stage: 'b' } })).to.equal(false)
    expect(isFound(run, { metadata: { team: 'red' } })).to.equal(false)
    expect(isFound(run, { min_cost: 0.51 })).to.equal(false)
    expect(isFound(example(1), { min_cost: 0 })).to.equal(true)
    expect(isFound(example(1), { min_cost: 0.01 })).to.equal(false)
  })

  it('finds what took as long as is asked for, and nothing that goes on', () => {
    const bounds = { min_ms: 1_000, max_ms: 1_000 }
    expect(isFound(run, bounds)).to.equal(true)
    expect(isFound(run, { min_ms: 1_001 })).to.equal(false)
    expect(isFound(run, { max_ms: 999 })).to.equal(false)
    expect(isFound({ ...run, ended_at: null }, { min_ms: 0 })).to.equal(false)
    expect(isFound({ ...run, ended_at: null }, { max_ms: 1_000 })).to.equal(false)
  })

  it('finds a text in each of its names and in the values of its metadata, whatever its case, and nowhere else', () => {
    const named = { ...run, title: 'Ship the Thing', step_id: 'collect', metadata: { team: 'Reds' } }
    for (const q of ['THING', 'coll', 'reds', 'ada', named.run_id.slice(-4)])
      expect(isFound(named, { q }), q).to.equal(true)
    for (const q of ['team', 'done', '2026-11']) expect(isFound(named, { q }), q).to.equal(false)
  })
})
