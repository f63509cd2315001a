import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { Child } from '../support/child.ts'
import { EventStream } from '../support/event-stream.ts'
import { type Product, startStandalone } from '../support/product.ts'
import { useRedis } from '../support/redis.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'
import { parsePage } from './prometheus-text.ts'

type Form = 'standalone' | 'gateway' | 'worker'
type Started = { child: Child; url: string; opsUrl: string }

const mainOf = (form: Form) => new URL(`../../services/${form}/main.ts`, import.meta.url).pathname

/** Requests the URL until the answer has this status, and resolves with its body. */
async function answerWith(status: number, url: string): Promise<unknown> {
  const request = async () => {
    const response = await fetch(url)
    const body: unknown = await response.json()
    return response.status === status && { body }
  }
  return (await until(request, { what: `${url} to be ${status}`, everyMs: 20 })).body
}

const runOn = (url: string, prompt: string) =>
  EventStream.open(`${url}/agent/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt }),
  })

const scrape = async (opsUrl: string) => parsePage(await (await fetch(`${opsUrl}/metrics`)).text())

function useProcesses() {
  const dataDir = useTempFolder()
  const children: Child[] = []
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.process.exitCode === null) await child.end('SIGKILL')
  })
  return async (form: Form, env: Record<string, string> = {}): Promise<Started> => {
    const places = {
      HOST: '127.0.0.1',
      PORT: '0',
      OPS_PORT: '0',
      DATA_DIR: mkdtempSync(join(dataDir.path, 'process-')),
      MODEL_PROVIDER: 'demo',
    }
    const child = new Child(process.execPath, [mainOf(form)], { ...places, ...env })
    children.push(child)
    const line = JSON.parse(await child.line(/"listening"/)) as { url?: string; ops_url: string }
    return { child, url: line.url ?? '', opsUrl: line.ops_url }
  }
}

describe('the ops listener of a standalone process', () => {
  const start = useProcesses()

  it('D1.3: OPS_TOKEN protects /metrics and is in no log line; from SIGTERM until the last run has ended /readyz is 503 and /livez 200', async () => {
    const token = 'ops-secret-1'
    const settings = { DRAIN_SECS: '20', OPS_TOKEN: token, LOG_LEVEL: 'debug' }
    const { child, url, opsUrl } = await start('standalone', settings)
    const statusWith = async (headers: Record<string, string>) => (await fetch(`${opsUrl}/metrics`, { headers })).status
    expect([await statusWith({}), await statusWith({ authorization: `Bearer ${token}` })]).to.deep.equal([401, 200])
    expect(await answerWith(200, `${opsUrl}/readyz`)).to.deep.equal({ status: 'ok' })
    const stream = await runOn(url, '/say one\n/sleep 1000\n/say two')
    await stream.until('text')
    const exited = child.end()
    expect(await answerWith(503, `${opsUrl}/readyz`)).to.deep.equal({ status: 'unavailable', failing: ['draining'] })
    expect((await fetch(`${opsUrl}/livez`)).status).to.equal(200)
    expect((await stream.all()).at(-1)?.event).to.equal('done')
    expect(await exited).to.equal(0)
    expect(child.lines.join('\n')).not.to.include(token)
  })

  it('above 80 % of its heap a process answers 503 to new runs and on /readyz, and goes on with what it has', async () => {
    const memory = { NODE_OPTIONS: '--max-old-space-size=96 --max-semi-space-size=2', SESSION_MEMORY_MB: '1000' }
    const { url, opsUrl } = await start('standalone', { ...memory, RATE_LIMIT_RPM: '0' })
    expect(await answerWith(200, `${opsUrl}/readyz`)).to.deep.equal({ status: 'ok' })
    let sessions = 0
    const post = async (path: string, body: object) => {
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
      const answer = await fetch(url + path, init)
      await answer.arrayBuffer()
      return answer.status
    }
    const fill = async () => {
      const created = await post('/sessions', { session_id: `s${sessions}` })
      if (created === 503) return true
      expect(created).to.equal(201)
      return (await post(`/sessions/s${sessions++}/messages`, { prompt: 'x'.repeat(99_000) })) === 503
    }
    // A collection of garbage may make room again after the first refusal.
    let ready = await fetch(`${opsUrl}/readyz`)
    while (ready.status === 200) {
      expect(sessions).to.be.lessThan(1_000)
      if (await fill()) ready = await fetch(`${opsUrl}/readyz`)
    }
    expect(await ready.json()).to.deep.equal({ status: 'unavailable', failing: ['memory'] })
    expect((await fetch(`${url}/sessions/s0`)).status).to.equal(200)
  })
})

describe('the metrics of a standalone product', () => {
  let product: Product
  before(async () => {
    const demo = { MODEL: 'demo', MODEL_PROVIDER: 'demo', MODEL_BASE_URL: '' }
    product = await startStandalone({ ...demo, TOOL_PERMISSIONS: '{"Glob":"ask"}' })
  })
  after(() => product.close())
  const read = () => scrape(product.opsUrls[0] ?? '')

  it('a run changes the metrics of streams, events and run states', async () => {
    const before = await read()
    const stream = await product.run({ prompt: '/say one\n/sleep 60000' })
    await stream.until('text')
    const during = await read()
    const frames = stream.frames.length
    expect(before.value('agent_engine_streams_opened_total')).to.equal(0)
    expect(during.value('agent_engine_streams_opened_total')).to.equal(1)
    expect(during.value('agent_engine_streams')).to.equal(1)
    expect(during.value('agent_engine_runs{state="running"}')).to.equal(1)
    expect(during.value('agent_engine_events_total')).to.be.at.least(frames)
    await product.call('DELETE', `/runs/${stream.runId}`)
    await stream.all()
    const after = await read()
    expect(after.value('agent_engine_streams')).to.equal(0)
    expect(after.value('agent_engine_runs{state="cancelled"}')).to.equal(1)
    expect(after.value('agent_engine_events_total')).to.equal(stream.frames.length)
  })

  it('a permission request is counted while it is pending, and its waiting time afterwards', async () => {
    const stream = await product.run({ prompt: '/tool Glob {"pattern":"*"}' })
    const { data } = await stream.until('permission_request')
    expect((await read()).value('agent_engine_permissions_pending')).to.equal(1)
    const path = `/sessions/${stream.runId}/permissions/${String(data['id'])}`
    expect((await product.call('POST', path, { allow: true })).status).to.equal(200)
    await stream.all()
    const page = await read()
    expect(page.value('agent_engine_permissions_pending')).to.equal(0)
    expect(page.value('agent_engine_permission_wait_seconds_count')).to.equal(1)
    expect(page.value('agent_engine_permission_wait_seconds_sum')).to.be.above(0)
  })
})

describe('the ops listeners of a cluster', () => {
  const redis = useRedis()
  const start = useProcesses()

  it('a gateway is starting until it knows a worker; each process counts its own part of a run; without Redis both are 503, with it again 200, and the gateway also when the worker leaves', async () => {
    const env = { REDIS_URL: redis.url, RUN_RESUME_SECS: '1' } // For which the worker stays behind its run.
    const gateway = await start('gateway', env)
    const starting = { status: 'unavailable', failing: ['starting'] }
    expect(await answerWith(503, `${gateway.opsUrl}/readyz`)).to.deep.equal(starting)
    const worker = await start('worker', env)
    const urls = [worker.opsUrl, gateway.opsUrl]
    const all = (status: number) => Promise.all(urls.map((opsUrl) => answerWith(status, `${opsUrl}/readyz`)))
    expect(await all(200)).to.deep.equal([{ status: 'ok' }, { status: 'ok' }])

    const frames = await (await runOn(gateway.url, '/say one')).all()
    const [atWorker, atGateway] = [await scrape(worker.opsUrl), await scrape(gateway.opsUrl)]
    expect(atWorker.value('agent_engine_events_total')).to.equal(frames.length)
    expect(atWorker.value('agent_engine_runs{state="done"}')).to.equal(1)
    expect(atGateway.value('agent_engine_streams_opened_total')).to.equal(1)
    expect(atGateway.value('agent_engine_events_total')).to.equal(0)

    await redis.server.kill('SIGKILL')
    const away = { status: 'unavailable', failing: ['redis'] }
    expect(await all(503)).to.deep.equal([away, away])
    for (const opsUrl of urls) expect((await fetch(`${opsUrl}/livez`)).status).to.equal(200)
    await redis.server.restart()
    await all(200)
    await worker.child.end()
    expect((await fetch(`${gateway.opsUrl}/readyz`)).status).to.equal(200)
  })
})
