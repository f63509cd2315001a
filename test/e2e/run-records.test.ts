import { expect } from 'chai'
import type { RunPage, RunSummary } from '../../shared/cluster/commands/runs.ts'
import { answerOf, DEFINITION, GOOD, REQUEST, useFlows } from '../support/flows.ts'
import { runIsForgotten } from '../support/forgotten-run.ts'
import { inBothForms } from '../support/product.ts'
import { until } from '../support/until.ts'

type ErrorBody = { error: { param?: string } }

inBothForms('records of runs', (startProduct, form) => {
  const bench = useFlows(startProduct, form, { RUN_RESUME_SECS: '1' })
  const { call } = bench

  const list = async (query = ''): Promise<RunPage> => {
    const { status, body, text } = await call('GET', `/runs${query}`)
    expect(status, text).to.equal(200)
    return body as RunPage
  }
  const idsOf = ({ runs }: RunPage) => runs.map(({ run_id }) => run_id)
  const get = async (runId: string) => (await call('GET', `/runs/${runId}`)).body as RunSummary & { error?: unknown }
  const run = async (body: object) => {
    const stream = await bench.product.run(body)
    const frames = await stream.all()
    return { runId: stream.runId, frames }
  }
  /** Waits until no process knows the run any more, and returns its record. */
  const recorded = async (runId: string): Promise<RunSummary> => {
    await runIsForgotten(bench, runId)
    return get(runId)
  }
  const followed = async (runId: string, after = 0) => {
    const headers: Record<string, string> = after === 0 ? {} : { 'last-event-id': String(after) }
    const stream = await bench.product.stream(`/runs/${runId}/events`, undefined, headers)
    return { frames: await stream.all() }
  }

  it('D20.1, D20.3: a run can be read and replayed after RUN_RESUME_SECS, without its deltas', async () => {
    bench.product.model.answer([{ text: ['hel', 'lo'] }])
    const request = { prompt: '  say\n hello  ', max_turns: 3 }
    const { runId, frames } = await run({ ...request, customer_id: 'ada' })
    const { phases } = await get(runId)
    const record = await recorded(runId)
    expect(record).to.include({ run_id: runId, status: 'done', code: 'ok', kind: 'run', customer_id: 'ada' })
    expect(record).to.include({ title: 'say hello', turns: 1, event_count: frames.length, tool_calls: 0 })
    expect(record.input_tokens).to.be.above(0)
    expect(record.request, 'D20.6').to.deep.equal(request)
    const [phase, ...others] = record.phases ?? []
    expect(phase, 'D20.5').to.include({ kind: 'model', turn: 1 })
    expect(phase?.ended_ms).to.be.at.least(phase?.started_ms ?? Infinity)
    expect(others).to.deep.equal([])
    expect(phases, 'while its process knows it').to.deep.equal(record.phases)
    expect(Date.parse(record.ended_at ?? '')).to.be.at.least(Date.parse(record.started_at))
    const whole = frames.filter(({ event }) => event !== 'text_delta')
    expect((await followed(runId)).frames).to.deep.equal(whole)
    const behind = whole.at(-2)?.id ?? 0
    expect((await followed(runId, behind)).frames).to.deep.equal(whole.slice(-1))
    const { status } = await call('GET', `/runs/${runId}/events?last_event_id=${frames.length}`)
    expect(status).to.equal(204)
    expect((await call('DELETE', `/runs/${runId}`)).body).to.deep.equal({ status: 'cancelled' })
    expect(await get(runId)).to.deep.equal(record)
  })

  it('D20.1: those that continue are listed first, then the records, and each filter selects among both', async () => {
    const gate = Promise.withResolvers<void>()
    const { model } = bench.product
    model.answer([{ text: 'a' }, { hold: gate.promise }])
    const live = await bench.product.run({ prompt: 'live', model: 'm-live' })
    await live.until('text_delta')
    expect((await get(live.runId)).phases?.[0], 'D20.5').to.include({ kind: 'model', ended_ms: null })
    const { session_id } = (await call('POST', '/sessions')).body as { session_id: string }
    model.answer('one')
    const message = await bench.product.stream(`/sessions/${session_id}/messages`, { prompt: 'message' })
    await message.all()
    model.answer({ status: 400 })
    const failed = await run({ prompt: 'bad' })
    const flow = await bench.publish(DEFINITION)
    bench.main.otherwise(() => GOOD)
    const answer = answerOf(await call('POST', `/flows/${flow}/run`, REQUEST))
    const [flowRun] = (await list('?kind=flow')).runs
    // Runs that are not yet recorded are listed before those that are, so the order stands only once all three are.
    await Promise.all([message, failed, { runId: flowRun?.run_id ?? '' }].map(({ runId }) => recorded(runId ?? '')))

    const all = await list()
    expect(idsOf(all)[0]).to.equal(live.runId)
    for (const listed of all.runs) expect(listed).not.to.have.property('phases')
    expect(idsOf(all)).to.include.members([message.runId, failed.runId])
    const only = async (query: string) => (await list(`?${query}`)).runs
    expect((await only('kind=message')).map((each) => each.session_id)).to.deep.equal([session_id])
    expect(idsOf(await list(`?session_id=${session_id}`))).to.deep.equal([message.runId])
    expect(idsOf(await list('?status=failed'))).to.deep.equal([failed.runId])
    expect(idsOf(await list('?code=provider_rejected'))).to.deep.equal([failed.runId])
    expect(await only('kind=flow')).to.have.length(1)
    expect((await only('kind=flow'))[0]).to.include({ trace_id: answer.trace_id, flow, code: 'ok' })
    expect(idsOf(await list('?customer_id=ada'))).to.have.length(1)
    expect(idsOf(await list('?customer_id=bob'))).to.deep.equal([])
    expect(idsOf(await list('?min_cost=1000'))).to.deep.equal([])
    expect(idsOf(await list(`?flow=${flow}`))).to.deep.equal([flowRun?.run_id])
    expect(idsOf(await list('?q=BAD&status=failed&max_ms=60000'))).to.deep.equal([failed.runId])
    expect(idsOf(await list('?min_ms=60000'))).to.deep.equal([])
    for (const [param, value] of [
      ...[['flow', 'No Flow'] as const, ['min_ms', '-1'] as const, ['max_ms', 'long'] as const, ['q', ''] as const],
      ...[['metadata.', 'x'] as const, ['metadata.a b', 'x'] as const],
    ]) {
      const { status, body } = await call('GET', `/runs?${new URLSearchParams({ [param]: value })}`)
      expect([status, (body as ErrorBody).error.param], param).to.deep.equal([400, `/${param}`])
    }
    expect(idsOf(await list('?until=2020-01-01'))).to.deep.equal([])
    expect(idsOf(await list('?since=2020-01-01'))).to.have.members(idsOf(all))
    expect(idsOf(await list('?status=running'))).to.deep.equal([live.runId])

    const paged: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: RunPage = await list(`?limit=1${cursor && `&cursor=${cursor}`}`)
      expect(page.runs).to.have.length(1)
      paged.push(...idsOf(page))
      cursor = page.next_cursor
    }
    expect(paged).to.deep.equal(idsOf(all))
    gate.resolve()
    await live.all()
    await until(async () => (await get(live.runId)).status === 'done', { what: 'the end of the run' })
  })

  it('D20.3: while store_payloads is off, no title, no request and no events are kept', async () => {
    const setPayloads = async (store_payloads: boolean) =>
      expect((await call('PUT', '/config/engine', { audit: { store_payloads } })).status).to.equal(200)
    await setPayloads(false)
    const recordWithoutTitle = async () => {
      bench.product.model.answer('secret answer')
      const { runId } = await run({ prompt: 'secret prompt' })
      const record = await recorded(runId)
      return record.title === undefined && record.request === undefined ? runId : undefined
    }
    const runId = await until(recordWithoutTitle, { what: 'a record without a title' })
    const [only, ...more] = (await followed(runId)).frames
    expect(more).to.deep.equal([])
    expect(only?.data).to.include({ code: 'stream_gap' })
    await setPayloads(true)
  })
})
