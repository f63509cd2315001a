import { expect } from 'chai'
import type { DispatchSummary } from '../../../shared/work/flows/dispatch-log.ts'
import type { EvaluationReport } from '../../../shared/work/flows/evaluate/report.ts'
import { endOf, REQUEST } from '../../support/flow-streams.ts'
import { answerOf, DEFINITION, lastOf, newName, systemOf, useFlows } from '../../support/flows.ts'
import type { Received } from '../../support/model-server/model-server.ts'
import { inBothForms, type Reply } from '../../support/product.ts'

/** A version of a flow whose provider answers as this version does. */
const version = (style: string, more: object = {}) => ({
  ...DEFINITION,
  system_prompt_template: `Answer in the ${style} style.`,
  evolve: true,
  ...more,
})

/** The published style repeats the text; the draft's changes `b`, and does not answer `c` as the schema demands. */
function answer(request: Received): string {
  const { text } = (JSON.parse(lastOf(request)) as { input: { text: string } }).input
  const isDraft = systemOf(request).includes('draft style')
  if (isDraft && text === 'c') return '{"wrong":true}'
  return JSON.stringify({ answer: isDraft && text === 'b' ? 'B' : text })
}

inBothForms('evaluation of flows', (startProduct, form) => {
  const bench = useFlows(startProduct, form)
  before(() => {
    bench.main.otherwise((request) =>
      // Each correction comes with the same text again.
      lastOf(request).startsWith('{') ? answer(request) : '{"wrong":true}',
    )
    bench.spare.otherwise(() => ({ status: 401 }))
  })

  const run = async (name: string, text: string) =>
    answerOf(await bench.call('POST', `/flows/${name}/run`, { ...REQUEST, input: { text } }))

  /** Publishes a flow, runs it on these texts one after the other, and stores a draft. */
  const flowWithDraft = async (texts: readonly string[], draft = version('draft')) => {
    const name = await bench.publish(version('published'))
    const traces: string[] = []
    for (const text of texts) traces.push((await run(name, text)).trace_id)
    expect((await bench.call('PUT', `/flows/${name}`, draft)).status).to.equal(200)
    return { name, traces }
  }

  const evaluate = (name: string, body?: object) => bench.call('POST', `/flows/${name}/evaluate`, body)

  const reportOf = ({ status, body, text }: Reply): EvaluationReport => {
    expect(status, text).to.equal(200)
    return body as EvaluationReport
  }

  it('D13.1: compares the draft with the recorded runs of the published version: rates, costs, times and differences', async () => {
    const { name, traces } = await flowWithDraft(['a', 'b', 'c'])
    const report = reportOf(await evaluate(name))
    expect(report).to.include({ flow_id: name, version: 2, published_version: 1, published_pass_rate: 1 })
    expect(report.pass_rate).to.be.closeTo(2 / 3, 1e-9)
    expect(report.runs.map(({ trace_id }) => trace_id)).to.deep.equal(traces.toReversed())
    const [c, b, a] = report.runs
    expect([a, b, c].map((each) => [each?.published_verdict, each?.verdict])).to.deep.equal([
      ['ok', 'ok'],
      ['ok', 'ok'],
      ['ok', 'invalid_output'],
    ])
    expect(a?.differences).to.deep.equal([])
    expect(b?.differences).to.deep.equal([{ path: '/answer', draft: 'B', published: 'b' }])
    expect(c?.differences).to.deep.equal([{ path: '', draft: null, published: { answer: 'c' } }])
    const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
    expect(report.cost_usd).to.be.closeTo(sum(report.runs.map(({ cost_usd }) => cost_usd)), 1e-12)
    expect(report.published_cost_usd).to.be.closeTo(sum(report.runs.map((each) => each.published_cost_usd)), 1e-12)
    for (const each of report.runs) {
      expect(each.cost_usd).to.be.greaterThan(0)
      const recorded = await endOf(bench, each.trace_id)
      expect([each.published_cost_usd, each.published_duration_ms]).to.deep.equal([
        recorded.cost_usd,
        recorded.duration_ms,
      ])
      const evaluated = await endOf(bench, each.evaluation_trace_id ?? '')
      expect([each.cost_usd, each.duration_ms]).to.deep.equal([evaluated.cost_usd, evaluated.duration_ms])
    }
  })

  it('D13.1: runs of an evaluation are not in the history of the flow, and write no precedents', async () => {
    const { name, traces } = await flowWithDraft(['a', 'b'])
    const precedents = async () =>
      (await bench.call('GET', `/flows/${name}/memory?scope=evolve`)).body as { entries: object[] }
    const before = await precedents()
    expect(before.entries).to.have.length(2)
    const { runs } = reportOf(await evaluate(name))
    expect(runs.map(({ verdict }) => verdict)).to.deep.equal(['ok', 'ok'])
    expect(await precedents()).to.deep.equal(before)
    for (const path of [`/dispatches?flow=${name}`, `/dispatches?flow=${name}&status=ok`]) {
      const { dispatches } = (await bench.call('GET', path)).body as { dispatches: DispatchSummary[] }
      expect(dispatches.map(({ trace_id }) => trace_id)).to.deep.equal(traces.toReversed())
    }
    const again = reportOf(await evaluate(name))
    expect(again.runs.map(({ trace_id }) => trace_id)).to.deep.equal(traces.toReversed())
  })

  // What a cluster adds is shown above.
  if (form === 'cluster') return

  it('D13.1: the body limits the runs and replaces their instance and model', async () => {
    const { name, traces } = await flowWithDraft(['a', 'b', 'd'])
    const before = bench.main.requests.length
    const report = reportOf(await evaluate(name, { limit: 2, model: 'm-2' }))
    expect(report.runs.map(({ trace_id }) => trace_id)).to.deep.equal(traces.slice(1).toReversed())
    expect(bench.main.requests.slice(before).map(({ model }) => model)).to.deep.equal(['m-2', 'm-2'])
    for (const provider_instance of ['spare', 'nobody']) {
      const failed = reportOf(await evaluate(name, { limit: 1, provider_instance }))
      expect(failed).to.include({ pass_rate: 0, published_pass_rate: 1 })
      expect(failed.runs[0]).to.include({ verdict: null, published_verdict: 'ok' })
      expect(failed.runs[0]?.error?.message).to.contain(provider_instance)
    }
  })

  it('repeats only executions of the published version, and none that was refused', async () => {
    const { name } = await flowWithDraft(['a'])
    await bench.call('POST', `/flows/${name}/publish`)
    const { trace_id } = await run(name, 'b')
    const refused = await bench.call('POST', `/flows/${name}/run`, { ...REQUEST, input: {} })
    expect(refused.status).to.equal(400)
    await bench.call('PUT', `/flows/${name}`, version('third'))
    const report = reportOf(await evaluate(name))
    expect(report).to.include({ version: 3, published_version: 2 })
    expect(report.runs.map((each) => each.trace_id)).to.deep.equal([trace_id])
    expect(report.runs[0]?.differences).to.deep.equal([{ path: '/answer', draft: 'b', published: 'B' }])
  })

  it('is refused where there is nothing to evaluate', async () => {
    const unpublished = newName()
    await bench.call('PUT', `/flows/${unpublished}`, version('published'))
    const neverRun = await bench.publish(version('published'))
    const broken = await flowWithDraft(['a'], version('draft', { tools: ['NoSuchTool'] }))
    const { name } = await flowWithDraft(['a'])
    for (const [flow, body, status, param] of [
      ['no-such-flow', {}, 404, undefined],
      [unpublished, {}, 409, undefined],
      [neverRun, {}, 409, undefined],
      [broken.name, {}, 400, '/tools/0'],
      [name, { limit: 0 }, 400, '/limit'],
      [name, { limit: 21 }, 400, '/limit'],
      [name, { model: 1 }, 400, '/model'],
    ] as const) {
      const reply = await evaluate(flow, body)
      expect(reply.status, reply.text).to.equal(status)
      expect((reply.body as { error: { param?: string } }).error.param).to.equal(param)
    }
  })
})
