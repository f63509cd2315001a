import { expect } from 'chai'
import type { ApiType } from '../../../shared/platform/api/api-type.ts'
import { openStream } from '../../support/api-client.ts'
import { DEFINITION, GOOD, putInstance, useFlows } from '../../support/flows.ts'
import { useIssuer } from '../../support/issuer/use-issuer.ts'
import { inBothForms, type Reply } from '../../support/product.ts'
import { TenantEvents } from '../../support/tenant-events.ts'
import { until } from '../../support/until.ts'
import { VendorBatchServer } from '../../support/vendor-batches.ts'

type Batch = ApiType<'FlowBatch'>
type Result = ApiType<'FlowBatchResult'>

const LINES = { 'content-type': 'application/jsonl' }
const lineOf = (text: unknown, custom_id?: string) =>
  JSON.stringify({ ...(custom_id && { custom_id }), input: { text } })

inBothForms('batches of a flow', (startProduct, form) => {
  const issuer = useIssuer()
  const bench = useFlows(startProduct, form, issuer.env)

  const bodyOf = ({ status, text, body }: Reply, wanted = 200): unknown => {
    expect(status, text).to.equal(wanted)
    return body
  }
  const get = async (id: string) => bodyOf(await bench.call('GET', `/batches/${id}`)) as Batch
  const ended = async (id: string) => {
    await until(async () => (await get(id)).ended_at, {
      what: 'the batch to end',
      lastSeen: () => id,
      withinMs: 90_000,
    })
    return get(id)
  }
  const resultsOf = async (id: string): Promise<Result[]> => {
    const { status, text } = await bench.call('GET', `/batches/${id}/results`)
    expect(status, text).to.equal(200)
    return text
      .split(/[\n\u2028]/) // As some clients do.
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Result)
  }
  const sendLines = (name: string, lines: readonly string[], query = 'provider_instance=main&model=m-1') =>
    fetch(`${bench.product.url}/flows/${name}/batch?${query}`, {
      method: 'POST',
      headers: LINES,
      body: lines.join('\n'),
    })

  it('D55: run each of their inputs, from a body, its lines or a file, and give the results in their order', async () => {
    bench.main.otherwise((request) => (JSON.stringify(request.body).includes('wrong') ? '{"no": 1}' : GOOD))
    const name = await bench.publish(DEFINITION)
    const items = [
      { input: { text: 'one' } },
      { custom_id: 'second\u2028', input: { text: 2 } },
      { input: { text: 'wrong' } },
    ]
    const request = { items, provider_instance: 'main', model: 'm-1' }
    const key = { 'idempotency-key': `key-${name}` }
    const { batch_id: id, item_counts } = bodyOf(
      await bench.call('POST', `/flows/${name}/batch`, request, key),
      202,
    ) as Batch
    expect(item_counts.total).to.equal(3)
    const again = await bench.call('POST', `/flows/${name}/batch`, request, key)
    expect([(bodyOf(again, 202) as Batch).batch_id, again.headers.get('idempotency-replayed')]).to.deep.equal([
      id,
      'true',
    ])
    const { status, item_counts: counts, usage } = await ended(id)
    expect([status, counts.ok, counts.rejected, counts.invalid_output]).to.deep.equal(['done', 1, 1, 1])
    const results = await resultsOf(id)
    expect(results.map(({ custom_id, status: each }) => [custom_id, each])).to.deep.equal([
      ['1', 'ok'],
      ['second\u2028', 'rejected'],
      ['3', 'invalid_output'],
    ])
    expect(results[0]?.output).to.deep.equal(JSON.parse(GOOD))
    expect(results[2]?.problems).not.to.be.empty
    const pages: object[] = []
    for (let after: number | null = 0; after !== null; ) {
      const path = `/batches/${id}/results?after=${after}&limit=2`
      const page = bodyOf(await bench.call('GET', path, undefined, { accept: 'application/json' }))
      pages.push(page as object)
      after = (page as { next_after: number | null }).next_after
    }
    expect(pages).to.deep.equal([
      { results: results.slice(0, 2), next_after: 2 },
      { results: results.slice(2), next_after: null },
    ])
    expect(usage.input_tokens)
      .to.equal(results.reduce((sum, each) => sum + each.input_tokens, 0))
      .and.to.be.above(0)

    const listed = bodyOf(await bench.call('GET', `/dispatches?kind=batch&key=${id}`)) as { dispatches: unknown[] }
    expect(listed.dispatches).to.have.length(3)
    await until(
      async () =>
        (bodyOf(await bench.call('GET', `/runs?metadata.batch_id=${id}`)) as { runs: unknown[] }).runs.length === 2,
      { what: 'the runs to be recorded' },
    )

    const lines = [lineOf('a', 'x'), '', lineOf('b')]
    const fileLines = [lineOf('a', 'x').replace('{', '{"x": 1, '), '', lineOf('b')]
    const sentLines = await sendLines(name, lines, 'provider_instance=main&model=m-1&deadline_hour=24')
    expect(sentLines.headers.get('x-ignored-fields'), 'a misspelled parameter').to.equal('/deadline_hour')
    const byLines = (await sentLines.json()) as Batch
    const sent = new FormData()
    sent.set('file', new Blob(['\ufeff', fileLines.join('\r\n')]), 'inputs.jsonl')
    const { file_id } = bodyOf(await bench.call('POST', '/files', sent), 201) as { file_id: string }
    const byFile = await bench.call('POST', `/flows/${name}/batch`, {
      file_id,
      provider_instance: 'main',
      model: 'm-1',
      wait_secs: 5,
    })
    expect(byFile.headers.get('x-ignored-fields')).to.equal('/wait_secs, /items/0/x')
    for (const { batch_id } of [byLines, bodyOf(byFile, 202) as Batch]) {
      await ended(batch_id)
      expect((await resultsOf(batch_id)).map(({ custom_id, output }) => [custom_id, output])).to.deep.equal([
        ['x', JSON.parse(GOOD)],
        ['2', JSON.parse(GOOD)],
      ])
    }
    const { batches } = bodyOf(await bench.call('GET', `/batches?flow=${name}&status=done`)) as { batches: Batch[] }
    expect(batches.map(({ batch_id }) => batch_id)).to.include.members([id, byLines.batch_id])

    const acme = await issuer.headersOf('acme')
    const ofOthers = await bench.call('POST', `/flows/${name}/batch`, { file_id, provider_instance: 'main' }, acme)
    expect(`${ofOthers.status} ${ofOthers.text}`).to.match(/^404 .*file/)
    for (const path of [`/batches/${id}`, `/batches/${id}/results`])
      expect((await bench.call('GET', path, undefined, acme)).status).to.equal(404)
    expect((await bench.call('POST', `/batches/${id}/cancel`, undefined, acme)).status).to.equal(404)
    expect((await bench.call('GET', '/batches', undefined, acme)).body).to.deep.equal({
      batches: [],
      next_cursor: null,
    })
  })

  it('D55: a request that cannot be a batch is refused as a whole, and says where', async () => {
    const name = await bench.publish(DEFINITION)
    for (const [lines, words] of [
      [[lineOf('a'), '{"input": {}'], 'line 2'],
      [[lineOf('a'), '', `${lineOf('b')},${lineOf('c')}`], 'line 3'],
      [[`${lineOf('a')},${lineOf('b')}`, '{"input": {"a": [{}', '{}]}}'], 'line 1'],
      [['[]'], 'line 1'],
      [Array(10_001).fill(lineOf('a')), '/items'],
      [[lineOf('a', 'x'.repeat(10_000))], '/items/0/custom_id'],
      [['{"custom_id": "a\\u0000", "input": {}}'], '/items/0/custom_id'],
      [['{"input": "text"}'], '/items/0/input'],
      [[], '/items'],
    ] as const) {
      const answer = await sendLines(name, lines)
      expect([answer.status, await answer.text()].join(' '))
        .to.match(/^400 /)
        .and.include(words)
    }
    const items = [{ input: { text: 'a' } }]
    for (const [request, status] of [
      [{ items, provider_instance: 'nobody', model: 'm' }, 400],
      [{ items: [], provider_instance: 'main', model: 'm' }, 400],
      [{ items, file_id: `file_${'0'.repeat(32)}`, provider_instance: 'main', model: 'm' }, 400],
      [{ file_id: `file_${'0'.repeat(32)}`, provider_instance: 'main', model: 'm' }, 404],
    ] as const)
      expect((await bench.call('POST', `/flows/${name}/batch`, request)).status).to.equal(status)
    expect((await sendLines('no-such-flow', [lineOf('a')])).status).to.equal(404)
    const plain = await bench.call('POST', `/flows/${name}/batch`, { items }, { 'content-type': 'text/plain' })
    expect(`${plain.status} ${plain.text}`).to.match(/^415 .*application\/jsonl/)
    expect((await bench.call('GET', `/batches?flow=${name}`)).body).to.deep.equal({ batches: [], next_cursor: null })
  })

  it('D55.6a: with a deadline their calls go to the batches of the vendor, each once, a correction in the next one, for half the price', async () => {
    const vendor = await new VendorBatchServer(bench.spare).listen()
    try {
      const asked = new Set<string>()
      bench.spare.otherwise(({ body }) => {
        const text = JSON.stringify(body)
        const isFirst = text.includes('wrong') && !asked.has('wrong')
        if (isFirst) asked.add('wrong')
        return { steps: [{ text: isFirst ? '{"no": 1}' : GOOD }], usage: { input: 1_000, output: 100 } }
      })
      const prices = { 'm-1': { input: 10, output: 20 } }
      await putInstance(bench, 'pool', { type: 'openai', url: `${vendor.origin}/v1`, key: 'sk-pool', prices })
      const name = await bench.publish(DEFINITION)
      const items = [...Array(20).keys(), 'wrong'].map((n) => ({ input: { text: `item ${n}` } }))
      const request = { items, provider_instance: 'pool', model: 'm-1', deadline_hours: 24 }
      const { batch_id: id } = bodyOf(await bench.call('POST', `/flows/${name}/batch`, request), 202) as Batch
      const { item_counts: counts, usage } = await ended(id)
      expect([counts.ok, vendor.liveCalls]).to.deep.equal([21, 0])
      expect([...vendor.submitted.values()]).to.deep.equal(Array(22).fill(1))
      expect(
        vendor.batches.map(({ lines }) => lines.length),
        'those of all chunks together',
      ).to.deep.equal([21, 1])
      expect(usage.input_tokens).to.equal(22_000)
      expect(usage.cost_usd).to.be.closeTo((22 * (1_000 * 10 + 100 * 20)) / 1e6 / 2, 1e-9)
      const spent = async () => {
        const runs = (
          bodyOf(await bench.call('GET', `/runs?metadata.batch_id=${id}`)) as { runs: { cost_usd?: number }[] }
        ).runs
        return runs.length === 21 && runs.reduce((sum, { cost_usd: cost = 0 }) => sum + cost, 0)
      }
      expect(await until(spent, { what: 'the runs to be recorded' })).to.be.closeTo(usage.cost_usd, 1e-9)
    } finally {
      await vendor.close()
    }
  })

  it('D58.6, D58.7: the model calls of runs and flows with time go to the batches of the vendor, and their tools run between them, for half the price', async () => {
    const vendor = await new VendorBatchServer(bench.spare).listen()
    const route = async (routing: object) => bodyOf(await bench.call('PUT', '/config/engine', { routing }))
    const usage = { input: 1_000, output: 100 }
    const todos = [{ content: 'look', status: 'completed' }]
    bench.spare.otherwise(({ body }) => {
      const text = JSON.stringify(body)
      const answer = text.includes('of a flow') ? GOOD : 'done'
      const isAnswered = text.includes('tool_call_id')
      return { steps: [isAnswered ? { text: answer } : { tool: 'TodoWrite', input: { todos } }], usage }
    })
    try {
      const prices = { 'm-2': { input: 10, output: 20 } }
      await putInstance(bench, 'pool', { type: 'openai', url: `${vendor.origin}/v1`, key: 'sk-pool', prices })
      await route({ main: { instance: 'pool', model: 'm-2' } })
      const models = async () => {
        const answers = await Promise.all(
          [1, 2, 3, 4].map(() => bench.call('POST', '/agent/run?dry_run=true', { prompt: 'hi' })),
        )
        return answers.every(({ text }) => text.includes('m-2'))
      }
      await until(models, { what: 'every process to know the route' })
      const name = await bench.publish({ ...DEFINITION, tools: ['TodoWrite'] })
      const input = { input: { text: 'of a flow' }, provider_instance: 'pool', model: 'm-2', deadline_hours: 24 }
      const flow = await bench.product.stream(`/flows/${name}/run`, input, { accept: 'text/event-stream' })
      const request = { prompt: 'hi', background: true, deadline_hours: 24 }
      const started = bodyOf(await bench.call('POST', '/agent/run', request, { accept: 'application/json' }), 202)
      const { run_id: id } = started as { run_id: string }
      const read = async () => bodyOf(await bench.call('GET', `/runs/${id}`)) as ApiType<'Run'>
      const run = await until(async () => (await read()).ended_at && read(), {
        what: 'the run to end',
        withinMs: 90_000,
      })
      expect(run).to.deep.include({ code: 'ok', turns: 2 })
      expect(run.cost_usd).to.be.closeTo((2 * (1_000 * 10 + 100 * 20)) / 1e6 / 2, 1e-9)
      const { text } = await bench.call('GET', `/runs/${id}/events`)
      expect(text.match(/waiting_for_batch/g)).to.have.length(2)
      const result = (await flow.all()).at(-1)
      expect([result?.event, result?.data['output']]).to.deep.equal(['result', JSON.parse(GOOD)])
      const dispatch = (await bench.call('GET', `/dispatches/${result?.data['trace_id']}`)).body as ApiType<'Dispatch'>
      expect(dispatch.cost_usd).to.be.closeTo(run.cost_usd ?? 0, 1e-9)
      expect([[...vendor.submitted.values()], vendor.liveCalls]).to.deep.equal([[1, 1, 1, 1], 0])
    } finally {
      await route({})
      await vendor.close()
    }
  })

  it('D54.5, D55.2: leave a place to others; a flow that waits for one says so in its stream, and the end of a batch is told', async () => {
    const hold = Promise.withResolvers<void>()
    bench.main.otherwise(async () => {
      await hold.promise
      return GOOD
    })
    const { product } = bench
    const name = await bench.publish(DEFINITION)
    const events = await TenantEvents.open(product.url, '?types=batch.ended')
    bodyOf(await bench.call('PUT', '/config/limits', { concurrent_runs: 2 }))
    const atWork = (count: number) =>
      until(() => bench.main.openRequests() === count, { what: `${count} runs to be at work` })
    const run = (more: object) =>
      openStream(`${product.url}/flows/${name}/run`, {
        method: 'POST',
        headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
        body: JSON.stringify({ input: { text: 'a' }, provider_instance: 'main', model: 'm-1', ...more }),
      })
    const items = Array.from({ length: 20 }, () => ({ input: { text: 'a' } }))
    const request = { items, provider_instance: 'main', model: 'm-1' }
    const { batch_id } = bodyOf(await bench.call('POST', `/flows/${name}/batch`, request), 202) as Batch
    await atWork(1)
    const other = await run({})
    await atWork(2)
    const stream = await run({ wait_secs: 60, priority: 'interactive' })
    const first = await stream.next()
    expect([first?.event, first?.data['place']]).to.deep.equal(['waiting', 1])
    expect(stream.response.headers.has('x-run-id')).to.equal(false)
    hold.resolve()
    const names = (await stream.all()).map(({ event }) => event)
    expect([names.find((event) => event !== 'waiting'), names.at(-1)]).to.deep.equal(['started', 'result'])
    expect((await other.all()).at(-1)?.event).to.equal('result')
    expect((await events.until('batch.ended', { batch_id })).data).to.include({ flow: name, status: 'done' })
    expect((await get(batch_id)).item_counts.ok).to.equal(20)
    bodyOf(await bench.call('PUT', '/config/limits', {}))
    events.leave()
  })

  it('D54.8: a flow and a run with a deadline are answered at once, wait for a place, say until when they have time, and end by then', async () => {
    bench.main.otherwise(() => GOOD)
    bench.product.model.otherwise(() => ({ hangBeforeHeaders: true }))
    const name = await bench.publish(DEFINITION)
    bodyOf(await bench.call('PUT', '/config/limits', { concurrent_runs: 1 }))
    const start = async (path: string, body: object) => {
      const headers = { accept: 'application/json' }
      return bodyOf(await bench.call('POST', path, body, headers), 202) as { run_id: string; trace_id: string }
    }
    const read = async (id: string) => bodyOf(await bench.call('GET', `/runs/${id}`)) as ApiType<'Run'>
    const endedRun = ({ run_id: id }: { run_id: string }) =>
      until(async () => (await read(id)).ended_at !== null && read(id), { what: `${id} to end` })
    const run = { prompt: 'hi', background: true, deadline_hours: 0.001 }
    const hanging = await start('/agent/run', { ...run, deadline_hours: 0.0015 })
    await until(() => bench.product.model.openRequests() === 1, { what: 'the run to be at work' })
    const flow = `/flows/${name}/run`
    const request = { input: { text: 'a' }, provider_instance: 'main', model: 'm-1' }
    const late = await start('/agent/run', run)
    const waiting = await start(flow, { ...request, deadline_hours: 24 })
    const { status, deadline_at = '' } = await read(waiting.run_id)
    expect(status).to.equal('waiting')
    expect(Date.parse(deadline_at) - Date.now()).to.be.within(86_000_000, 86_400_000)
    const ends = await Promise.all([hanging, late, waiting].map(endedRun))
    expect(ends.map(({ code }) => code)).to.deep.equal(['timeout', 'timeout', 'ok'])
    expect(ends.map((end) => end.deadline_at)).not.to.include(undefined)
    expect(bench.product.model.requests).to.have.length(1)
    const { body } = await bench.call('GET', `/dispatches/${waiting.trace_id}`)
    expect(body).to.deep.include({ kind: 'run', status: 'ok', output: JSON.parse(GOOD), deadline_at })
    for (const [path, wrong] of [
      ['/agent/run', { ...run, background: false }],
      [flow, { ...request, deadline_hours: 1, wait_secs: 5 }],
      [flow, { ...request, deadline_hours: 200 }],
    ] as const)
      expect((await bench.call('POST', path, wrong)).status, path).to.equal(400)
    bodyOf(await bench.call('PUT', '/config/limits', {}))
  })

  it('D55: are cancelled while they are at work', async () => {
    bench.main.otherwise(() => ({ hangBeforeHeaders: true }))
    const name = await bench.publish(DEFINITION)
    const items = Array.from({ length: 40 }, () => ({ input: { text: 'a' } }))
    const request = { items, provider_instance: 'main', model: 'm-1' }
    const { batch_id: id } = bodyOf(await bench.call('POST', `/flows/${name}/batch`, request), 202) as Batch
    const runs = async () =>
      (bodyOf(await bench.call('GET', '/runs?kind=flow&status=running')) as { runs: unknown[] }).runs
    await until(async () => (await runs()).length > 0, { what: 'an item to be at work' })
    bodyOf(await bench.call('POST', `/batches/${id}/cancel`))
    const { status, item_counts } = await ended(id)
    expect([status, item_counts.cancelled]).to.deep.equal(['cancelled', 40])
    expect((await bench.call('POST', `/batches/${id}/cancel`)).status).to.equal(409)
  })
  it('D34.2, D55: leave an item that is at work to the next process when theirs stops, which they do not keep running', async () => {
    const sent = Promise.withResolvers<void>()
    bench.main.otherwise(() => {
      sent.resolve()
      return { hangBeforeHeaders: true }
    })
    const name = await bench.publish(DEFINITION)
    const request = { items: [{ input: { text: 'a' } }], provider_instance: 'main', model: 'm-1' }
    bodyOf(await bench.call('POST', `/flows/${name}/batch`, request), 202)
    await sent.promise // After the last test of a suite, test/hooks.ts looks for timers that are left when the product is closed.
  })
})
