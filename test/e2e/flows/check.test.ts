import { expect } from 'chai'
import type { FlowCheck } from '../../../shared/work/flows/check/check.ts'
import type { EvaluationPage } from '../../../shared/work/flows/evaluate/evaluation-store.ts'
import { DEFINITION, GOOD, lastOf, systemOf, useFlows } from '../../support/flows.ts'
import { useIssuer } from '../../support/issuer/use-issuer.ts'
import { inStandaloneForm } from '../../support/product.ts'

inStandaloneForm('checks of definitions, and past evaluations', (startProduct, form) => {
  const issuer = useIssuer()
  const bench = useFlows(startProduct, form, issuer.env)
  beforeEach(() => bench.main.otherwise(() => GOOD))

  const check = async (name: string, body?: unknown): Promise<FlowCheck> => {
    const reply = await bench.call('POST', `/flows/${name}/check`, body)
    expect(reply.status, reply.text).to.equal(200)
    return reply.body as FlowCheck
  }
  const acme = () => issuer.headersOf('acme')

  it('D26.1: the prompts are those of a run with the same input', async () => {
    const name = await bench.publish({ ...DEFINITION, system_prompt_template: 'Read {{.input.text}}. {{.memory}}' })
    await bench.call('POST', `/flows/${name}/memory`, { content: 'Amounts are in euros.' })
    const input = { text: 'two chairs' }
    const { prompt_preview, problems, warnings } = await check(name, { input })
    expect([problems, warnings]).to.deep.equal([[], []])
    const ran = await bench.run(name, { input })
    expect(ran.status, ran.text).to.equal(200)
    const request = bench.main.requests.at(-1)
    if (!request) throw new Error('the provider has received nothing')
    expect(prompt_preview).to.deep.equal({
      input,
      agents: [{ agent: 'main', system: systemOf(request), user: lastOf(request) }],
    })
    expect(prompt_preview?.agents[0]?.system).to.include('two chairs').and.to.include('Amounts are in euros.')
    const other = await bench.call('POST', `/flows/${name}/check`, { ...DEFINITION, input }, await acme())
    expect(other.status, other.text).to.equal(200)
    expect(other.text).not.to.include('euros')
    expect((await bench.call('POST', `/flows/${name}/check`, { input }, await acme())).status).to.equal(404)
  })

  it('D26.2: the evaluations of a flow are listed page by page, newest first, to its tenant only', async () => {
    const name = await bench.publish(DEFINITION)
    const ran = await bench.run(name)
    const list = async (query = '') => (await bench.call('GET', `/flows/${name}/evaluations${query}`)).body
    expect(await list()).to.deep.equal({ evaluations: [], next_cursor: null })
    const reports: { runs: { differences: object[] }[] }[] = []
    for (const model of ['m-1', 'm-2', 'm-3']) {
      await bench.call('PUT', `/flows/${name}`, { ...DEFINITION, model })
      const { body } = await bench.call('POST', `/flows/${name}/evaluate`)
      reports.unshift(body as { runs: { differences: object[] }[] })
    }
    const first = (await list('?limit=2')) as EvaluationPage
    const second = (await list(`?limit=2&cursor=${first.next_cursor}`)) as EvaluationPage
    expect(second.next_cursor).to.equal(null)
    const all = [...first.evaluations, ...second.evaluations]
    expect(all.map(({ version }) => version)).to.deep.equal([4, 3, 2])
    for (const [i, { id, subject, evaluated_at, ...record }] of all.entries()) {
      const { runs, ...report } = reports[i] ?? { runs: [] }
      expect(record).to.deep.equal({
        ...report,
        runs: runs.map(({ differences, ...run }) => ({ ...run, difference_count: differences.length })),
      })
      expect([subject, Date.parse(evaluated_at) > 0, id.startsWith('eval_')]).to.deep.equal(['anonymous', true, true])
    }
    expect(all[0]?.runs[0]?.trace_id).to.equal(ran.headers.get('x-trace-id'))
    expect((await bench.call('GET', `/flows/${name}/evaluations`, undefined, await acme())).status).to.equal(404)
    expect((await bench.call('GET', `/flows/${name}/evaluations?cursor=x`)).status).to.equal(400)
    await bench.call('PUT', `/flows/${name}`, DEFINITION, await acme())
    const { body } = await bench.call('GET', `/flows/${name}/evaluations`, undefined, await acme())
    expect(body).to.deep.equal({ evaluations: [], next_cursor: null })
    await bench.call('DELETE', `/flows/${name}`)
    await bench.call('PUT', `/flows/${name}`, DEFINITION)
    expect(await list()).to.deep.equal({ evaluations: [], next_cursor: null })
  })
})
