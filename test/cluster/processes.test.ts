import { once } from 'node:events'
import { request } from 'node:http'
import { expect } from 'chai'
import { Redis } from 'ioredis'
import type { Child } from '../../scripts/local-services/child.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { EventStream } from '../support/event-stream.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const DRAIN_SECS = 3

/** The names of the checks that fail in a process, as its `/readyz` lists them. */
async function failingOf({ output }: Child): Promise<string[]> {
  const line = /^\{.*"msg":"listening".*\}$/m.exec(output)?.[0] ?? '{}'
  const { ops_url } = JSON.parse(line) as { ops_url: string }
  const { failing = [] } = (await (await fetch(`${ops_url}/readyz`)).json()) as { failing?: string[] }
  return failing
}

describe('gateways and workers as separate processes', () => {
  const dataDir = useTempFolder()
  let cluster: Cluster | undefined
  const close = async () => {
    await cluster?.close()
    cluster = undefined
  }

  after(() => close())

  async function start(env: Record<string, string> = {}): Promise<Cluster> {
    await close()
    const settings = {
      MODEL_PROVIDER: 'demo',
      DATA_DIR: dataDir.path,
      RATE_LIMIT_RPM: '0',
      DRAIN_SECS: String(DRAIN_SECS),
      TOOL_PERMISSIONS: '{"Write":"allow"}',
      ...env,
    }
    cluster = await startCluster(settings, { worker: 1 })
    return cluster
  }

  it('D1.3 DRAIN_SECS: a draining gateway serves on for a sixth of it, refuses new streams, then ends the open ones with worker_draining; without any it exits', async () => {
    const { gateways, urls } = await start()
    const [[first, url], otherUrl] = [[at(gateways, 0), at(urls, 0)], at(urls, 1)]
    const stream = await run(url, '/say one\n/sleep 60000')
    await stream.until('text')
    const since = performance.now()
    await first.kill('SIGTERM')
    await first.line(/"msg":"signal"/, 5_000)

    const graced = await post(url, '/say still here')
    expect([graced.status, graced.connection]).to.deep.equal([200, 'close'])
    const refusal = async () => {
      const answer = await post(url, '/say too late')
      return answer.status !== 200 && answer
    }
    const refused = await until(refusal, { what: 'the gateway to refuse runs' })
    expect([refused.status, refused.connection]).to.deep.equal([503, 'close'])
    expect(refused.body).to.include('unavailable_error')
    expect(performance.now() - since).to.be.at.least((DRAIN_SECS * 1_000) / 6 - 100)

    const frames = await stream.all()
    expect(frames.at(-1)?.data).to.include({ code: 'worker_draining', retryable: true })
    expect(frames.at(-1)?.id).to.equal(frames.at(-2)?.id)
    expect((await first.exited).code).to.equal(0)
    expect(performance.now() - since).to.be.at.least((DRAIN_SECS * 1_000 * 4) / 6)

    const resumed = await follow(otherUrl, stream.runId, frames.at(-1)?.id ?? 0)
    await fetch(`${otherUrl}/runs/${stream.runId}`, { method: 'DELETE' })
    expect((await resumed.all()).map(({ event, data }) => [event, data['code']])).to.deep.equal([
      ['error', 'cancelled'],
    ])

    // The other one has no stream: it exits when its load balancer has had time to notice.
    const alone = performance.now()
    await at(gateways, 1).kill('SIGTERM')
    expect((await at(gateways, 1).exited).code).to.equal(0)
    expect(performance.now() - alone).to.be.at.least((DRAIN_SECS * 1_000) / 6 - 100)
  })

  it('after the crash of a gateway its clients lose no event, and runs without a client end within ten seconds', async () => {
    const { gateways, urls } = await start({ RUN_RESUME_SECS: '1' })
    const [url, otherUrl] = [at(urls, 0), at(urls, 1)]
    const [taken, left] = [await run(url, '/say one\n/sleep 60000'), await run(url, '/say one\n/sleep 60000')]
    await Promise.all([taken.until('text'), left.until('text')])
    const since = performance.now()
    await at(gateways, 0).kill('SIGKILL')
    const lastId = taken.frames.at(-1)?.id ?? 0
    await Promise.all([taken.all(), left.all()].map((end) => end.catch(() => {}))) // The connection was closed without a terminal frame.
    const resumed = await follow(otherUrl, taken.runId, lastId)
    const isGone = async () => (await fetch(`${otherUrl}/runs/${left.runId}`)).status !== 200
    await until(isGone, { what: 'the run without a client to end' })
    expect(performance.now() - since).to.be.at.least(2_000)
    expect((await fetch(`${otherUrl}/runs/${taken.runId}`)).status).to.equal(200)
    await fetch(`${otherUrl}/runs/${taken.runId}`, { method: 'DELETE' })
    expect((await resumed.next())?.id).to.equal(lastId + 1)
    await resumed.all()
  })

  it('a full Redis makes every process unready under the name redis_memory, until it takes writes again', async () => {
    const { gateways, workers, redisUrls } = cluster ?? (await start())
    const gateway = gateways.filter(({ isRunning }) => isRunning)
    const failing = () => Promise.all([at(gateway, 0), at(workers, 0)].map(failingOf))
    const areReady = async () => (await failing()).every((names) => names.length === 0)
    await until(areReady, { what: 'both to be ready' })
    const admins = redisUrls.map((url) => new Redis(url))
    const limitMemory = (bytes: string) => Promise.all(admins.map((admin) => admin.config('SET', 'maxmemory', bytes)))
    try {
      await limitMemory('1')
      const areFull = async () => (await failing()).every((names) => names.includes('redis_memory'))
      await until(areFull, { what: 'both to report a full Redis' })
      await limitMemory('0')
      await until(areReady, { what: 'both to be ready again' })
    } finally {
      for (const admin of admins) admin.disconnect()
    }
  })
})

function at<T>(list: readonly T[], index: number): T {
  const found = list[index]
  if (found === undefined) throw new Error(`there is no item ${index}: the list has ${list.length}`)
  return found
}

const run = (url: string, prompt: string) =>
  EventStream.open(`${url}/agent/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt }),
  })

const follow = (url: string, runId: string, after: number) =>
  EventStream.open(`${url}/runs/${runId}/events`, { headers: { 'last-event-id': String(after) } })

/** Posts a prompt. Uses `node:http` because `fetch` hides the `Connection` header. */
async function post(
  url: string,
  prompt: string,
): Promise<{ status: number | undefined; connection: string | undefined; body: string }> {
  const sent = request(`${url}/agent/run`, { method: 'POST', headers: { 'content-type': 'application/json' } })
  sent.end(JSON.stringify({ prompt }))
  const [response] = await once(sent, 'response')
  let body = ''
  for await (const chunk of response) body += chunk
  return { status: response.statusCode, connection: response.headers.connection, body }
}
