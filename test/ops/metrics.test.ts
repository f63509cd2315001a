// Tests exposition.ts: the text that Prometheus reads.
import { expect } from 'chai'
import { COUNTERS, GAUGES, HISTOGRAMS } from '../../shared/kernel/metrics.ts'
import { parsePage } from './prometheus-text.ts'
import { type TestOps, useOps } from './setup.ts'

describe('/metrics', () => {
  const open = useOps()

  const scrape = async ({ get }: TestOps) => {
    const response = await get('/metrics')
    expect(response.headers.get('content-type')).to.match(/^text\/plain; version=0\.0\.4/)
    return parsePage(await response.text())
  }

  it('D1.3 OPS_PORT: every metric is present before anything was counted', async () => {
    const { types, value } = await scrape(await open())
    for (const name of Object.keys(COUNTERS)) {
      expect(types.get(`agent_engine_${name}_total`)).to.equal('counter')
      expect(value(`agent_engine_${name}_total`), name).to.equal(0)
    }
    for (const name of Object.keys(GAUGES)) expect(types.get(`agent_engine_${name}`)).to.equal('gauge')
    for (const name of Object.keys(HISTOGRAMS)) expect(value(`agent_engine_${name}_count`), name).to.equal(0)
  })

  it('a counter shows what was counted, at each scrape', async () => {
    const ops = await open()
    ops.metrics.count('events')
    ops.metrics.count('events', 41)
    expect((await scrape(ops)).value('agent_engine_events_total')).to.equal(42)
    ops.metrics.count('events')
    expect((await scrape(ops)).value('agent_engine_events_total')).to.equal(43)
  })

  it('a gauge is read at each scrape, as one number or one per state; an unregistered one has no sample', async () => {
    const ops = await open()
    const now = { streams: 1, runs: { running: 2, waiting: 0 } as Record<string, number> }
    ops.metrics.gauge('streams', () => now.streams)
    ops.metrics.gauge('runs', () => now.runs)
    const first = await scrape(ops)
    expect(first.value('agent_engine_streams')).to.equal(1)
    expect(first.value('agent_engine_runs{state="running"}')).to.equal(2)
    expect(first.samples.filter(({ name }) => name === 'agent_engine_sessions')).to.deep.equal([])
    Object.assign(now, { streams: 5, runs: { done: 3 } })
    const second = await scrape(ops)
    expect(second.value('agent_engine_streams')).to.equal(5)
    expect(second.value('agent_engine_runs{state="done"}')).to.equal(3)
    expect(second.samples.filter(({ name }) => name === 'agent_engine_runs')).to.have.length(1)
  })

  it('the buckets of a histogram are cumulative, each bound is inclusive, and the last bucket counts all', async () => {
    const ops = await open()
    const { bounds } = HISTOGRAMS.relay_batch_bytes
    for (const value of [1, bounds[0], bounds[0] + 1, bounds.at(-1) ?? 0, 9e9])
      ops.metrics.observe('relay_batch_bytes', value)
    const { samples, value } = await scrape(ops)
    const buckets = samples.filter(({ name }) => name === 'agent_engine_relay_batch_bytes_bucket')
    expect(buckets.map(({ labels }) => labels['le'])).to.deep.equal([...bounds.map(String), '+Inf'])
    expect(buckets.map((bucket) => bucket.value)).to.deep.equal([2, 3, 3, 3, 3, 3, 4, 5])
    expect(value('agent_engine_relay_batch_bytes_count')).to.equal(5)
    expect(value('agent_engine_relay_batch_bytes_sum')).to.equal(1 + 256 + 257 + 1_048_576 + 9e9)
  })

  it('the metrics of the process and its event loop have their customary names', async () => {
    const { value } = await scrape(await open())
    expect(value('process_resident_memory_bytes')).to.be.greaterThan(1e6)
    expect(value('process_cpu_seconds_total')).to.be.greaterThan(0)
    expect(value('nodejs_eventloop_lag_p99_seconds')).to.be.within(0.001, 5)
    expect(value('nodejs_heap_size_used_bytes')).to.be.greaterThan(1e6)
  })

  it('the names keep the conventions of Prometheus: only counters end with _total, and every one has a help text', async () => {
    const text = await (await (await open()).get('/metrics')).text()
    const helps = [...text.matchAll(/^# HELP (\S+) \S/gm)].map(([, name]) => name)
    const { types } = parsePage(text)
    expect([...types.keys()]).to.deep.equal(helps)
    for (const [name, type] of types) {
      expect(name.endsWith('_total'), name).to.equal(type === 'counter')
      expect(name, name)
        .to.match(/^[a-z][a-z0-9_]*$/)
        .and.not.match(/_(count|sum|bucket|ms|milliseconds|percent)(_total)?$/)
    }
  })

  it('concurrent scrapes do not disturb each other, also the first ones', async () => {
    const ops = await open()
    const pages = await Promise.all(Array.from({ length: 5 }, () => scrape(ops)))
    for (const { types } of pages) expect([...types.keys()]).to.deep.equal([...(pages[0]?.types.keys() ?? [])])
  })
})
