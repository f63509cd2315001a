import { expect } from 'chai'
import type { DispatchSummary } from '../../../shared/work/flows/dispatch-log.ts'
import type { StatsPage } from '../../../shared/work/flows/history/stats.ts'
import { DEFINITION, GOOD, useFlows } from '../../support/flows.ts'
import { useIssuer } from '../../support/issuer/use-issuer.ts'
import { inBothForms, type Reply } from '../../support/product.ts'

type List = { dispatches: DispatchSummary[]; next_cursor: string | null }

inBothForms('the history of flows, filtered and added up', (startProduct, form) => {
  const issuer = useIssuer()
  const bench = useFlows(startProduct, form, issuer.env)

  const traceOf = ({ status, text, headers }: Reply, wanted = 200) => {
    expect(status, text).to.equal(wanted)
    return headers.get('x-trace-id') ?? expect.fail('no trace id')
  }
  const get = async <T>(path: string, headers = {}): Promise<T> => {
    const { status, text, body } = await bench.call('GET', path, undefined, headers)
    expect(status, text).to.equal(200)
    return body as T
  }
  const ids = ({ dispatches }: List) => dispatches.map(({ trace_id }) => trace_id)
  const acme = () => issuer.headersOf('acme')

  it('D22: finds the executions by model, instance, subject, key, kind, time and text, and adds them up for their tenant only', async () => {
    bench.main.otherwise(() => GOOD)
    bench.spare.otherwise(() => '{"wrong": true}')
    const name = await bench.publish(DEFINITION)
    const good = traceOf(await bench.run(name, { input: { text: 'Two Chairs' } }, { 'idempotency-key': `key-${name}` }))
    const invalid = traceOf(
      await bench.run(name, { model: 'm-2', provider_instance: 'spare', input: { text: 'a table' } }),
    )
    const refused = traceOf(await bench.run(name, { input: { text: 1 } }), 400)
    await bench.call('PUT', `/flows/${name}`, { ...DEFINITION, system_prompt_template: 'Another one.' })
    const evaluated = await bench.call('POST', `/flows/${name}/evaluate`, { provider_instance: 'main' })
    expect(evaluated.status, evaluated.text).to.equal(200)

    const list = async (query: string) => ids(await get<List>(`/dispatches?flow=${name}&${query}`))
    expect(await list('')).to.deep.equal([refused, invalid, good])
    for (const [query, found] of [
      ['model=m-2', [invalid]],
      ['instance=spare', [invalid]],
      ['instance=main', [refused, good]],
      ['instance=main&status=ok', [good]],
      ['subject=anonymous', [refused, invalid, good]],
      ['subject=nobody', []],
      [`key=key-${name}`, [good]],
      ['q=two%20chairs', [good]],
      ['q=TABLE', [invalid]],
      ['q=wrong', [invalid]],
      ['q=input_schema', [refused]],
      ['min_ms=86400000', []],
    ] as const)
      expect(await list(query), query).to.deep.equal(found)
    const evaluations = await get<List>(`/dispatches?flow=${name}&kind=evaluation`)
    expect(evaluations.dispatches.map(({ kind }) => kind)).to.deep.equal(['evaluation', 'evaluation'])

    const first = await get<List>(`/dispatches?flow=${name}&subject=anonymous&limit=2`)
    const second = await get<List>(`/dispatches?flow=${name}&subject=anonymous&limit=2&cursor=${first.next_cursor}`)
    expect([ids(first), ids(second), second.next_cursor]).to.deep.equal([[refused, invalid], [good], null])

    const { dispatches } = await get<List>(`/dispatches?flow=${name}`)
    const from = dispatches.at(-1)?.started_at
    const { buckets } = await get<StatsPage>(`/dispatches/stats?flow=${name}&from=${from}`)
    const sum = (valueOf: (bucket: StatsPage['buckets'][number]) => number) =>
      buckets.reduce((total, each) => total + valueOf(each), 0) // Midnight may have passed.
    expect([sum((each) => each.runs), sum((each) => each.failed)]).to.deep.equal([3, 1])
    expect([sum(({ verdicts }) => verdicts.valid), sum(({ verdicts }) => verdicts.invalid)]).to.deep.equal([1, 1])
    expect(sum((each) => each.cost_usd)).to.be.closeTo(
      dispatches.reduce((total, each) => total + each.cost_usd, 0),
      1e-9,
    )
    expect(sum((each) => each.input_tokens)).to.equal(dispatches.reduce((total, each) => total + each.input_tokens, 0))
    expect(sum((each) => each.p95_ms ?? 0)).to.be.greaterThan(0)

    const none = { dispatches: [], next_cursor: null }
    expect(await get(`/dispatches?q=two%20chairs`, await acme())).to.deep.equal(none)
    expect(await get(`/dispatches?key=key-${name}`, await acme())).to.deep.equal(none)
    expect(await get('/dispatches/stats', await acme())).to.deep.include({ buckets: [], next_cursor: null })
  })
})
