// Tests that runs which wait for a vendor's batch survive kill -9 (D58.6): real processes, Redis, MongoDB or SQLite, and the batch endpoints of a vendor on their wire format.

import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { ApiType } from '../../shared/platform/api/api-type.ts'
import { callApi, initOf, openStream } from '../support/api-client.ts'
import { Child } from '../support/child.ts'
import { startCluster } from '../support/cluster.ts'
import { type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { useMongo } from '../support/mongo.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'
import { VendorBatchServer } from '../support/vendor-batches.ts'

const STANDALONE = new URL('../../services/standalone/main.ts', import.meta.url).pathname
const USAGE = { input: 1_000, output: 100 }
const COST = (1_000 * 10 + 100 * 20) / 1e6 / 2
/** If a process dies while it adds a call to the pool, another process takes the call over after three minutes (D58.2). */
const TIMES = { withinMs: 300_000 }

/** `hold` ends whatever would send further calls of the pool; `move` kills the process that has the runs, and starts one that continues them. */
type Form = { url(): string; hold(): Promise<unknown>; move(): Promise<unknown>; close(): Promise<unknown> }

describe('runs that wait for a batch of a vendor when their process dies', () => {
  const mongo = useMongo()
  const folder = useTempFolder()
  let model: ModelServer
  let vendor: VendorBatchServer
  beforeEach(async () => {
    model = await startModelServer()
    model.otherwise(() => ({ steps: [{ text: 'the answer' }], usage: USAGE }))
    vendor = await new VendorBatchServer(model).listen()
  })
  afterEach(async () => {
    await vendor.close()
    await model.close()
  })

  const env = () => ({
    ...{ MASTER_KEY: randomBytes(32).toString('base64'), ALLOW_PRIVATE_URLS: 'true', WORKSPACE_DIR: folder.path },
    ...{ DURABILITY: 'runs', DRAIN_SECS: '0', RATE_LIMIT_RPM: '0' },
  })

  async function openCluster(): Promise<Form> {
    const cluster = await startCluster({ ...mongo.env, ...env() }, { gateway: 1, worker: 1 })
    const hold = async () => cluster.executors[0]?.kill('SIGKILL') // The one that sends what is in the pool.
    const move = async () => {
      await cluster.startWorker()
      await cluster.workers[0]?.kill('SIGKILL')
      await cluster.startExecutor()
    }
    return { url: () => cluster.urls[0] ?? '', hold, move, close: () => cluster.close() }
  }

  async function openStandalone(): Promise<Form> {
    const settings = { ...env(), DATA_DIR: folder.path, PORT: '0', OPS_PORT: '0' }
    let [server, url] = [undefined as Child | undefined, '']
    const start = async () => {
      server = new Child(process.execPath, [STANDALONE], settings)
      url = (JSON.parse(await server.line(/"listening"/)) as { url: string }).url
    }
    const end = async () => server?.end('SIGKILL')
    await start()
    return { url: () => url, hold: async () => {}, move: () => end().then(start), close: end }
  }

  for (const [name, open] of [
    ['at another worker', openCluster],
    ['at the next start of the standalone form', openStandalone],
  ] as const)
    it(`D58.6: go on ${name}, and join their calls in the pool and at the vendor, each of which is paid once`, async () => {
      const form = await open()
      const call = async (method: string, path: string, body?: object) => {
        const reply = await callApi(form.url() + path, initOf(method, body, { accept: 'application/json' }))
        expect(reply.status, reply.text).to.be.below(300)
        return reply.body
      }
      const start = async (prompt: string) => {
        const request = { prompt, background: true, deadline_hours: 24 }
        const { run_id: id } = (await call('POST', '/agent/run', request)) as { run_id: string }
        const stream = await openStream(`${form.url()}/runs/${id}/events`, initOf('GET'))
        while ((await stream.until('warning')).data['code'] !== 'waiting_for_batch');
        stream.leave()
        return id
      }
      /** `undefined` while no worker has the run. */
      const ended = async (id: string) => {
        const { status, body } = await callApi(`${form.url()}/runs/${id}`, initOf('GET'))
        return status === 200 && (body as ApiType<'Run'>).ended_at ? (body as ApiType<'Run'>) : undefined
      }
      try {
        const prices = { 'm-1': { input: 10, output: 20 } }
        const instance = { type: 'openai', url: `${vendor.origin}/v1`, key: 'sk-pool', prices }
        await call('PUT', '/config/instances/pool', instance)
        await call('PUT', '/config/engine', { routing: { main: { instance: 'pool', model: 'm-1' } } })
        const estimate = () => call('POST', '/agent/run?dry_run=true', { prompt: 'hi' }).then(JSON.stringify)
        await until(async () => (await estimate()).includes('m-1'), { what: 'the worker to know the route', ...TIMES })
        vendor.isHeld = true
        const sent = await start('one')
        await until(() => vendor.batches.length === 1, { what: 'the call to be at the vendor', ...TIMES })
        await form.hold()
        const pooled = await start('two')
        await form.move()
        await until(() => vendor.batches.length === 2, { what: 'the pooled call to be at the vendor', ...TIMES })
        for (const kept of vendor.batches) await vendor.release(kept)
        for (const id of [sent, pooled]) {
          const run = await until(() => ended(id), { what: `${id} to end`, ...TIMES })
          expect(run).to.deep.include({ code: 'ok', turns: 1 })
          expect(run.cost_usd).to.be.closeTo(COST, 1e-9)
          const frames = await (await openStream(`${form.url()}/runs/${id}/events`, initOf('GET'))).all()
          const texts = frames.filter(({ event }) => event === 'text').map(({ data }) => data['text'])
          expect(texts).to.deep.equal(['the answer'])
        }
        expect([[...vendor.submitted.values()], vendor.liveCalls]).to.deep.equal([[1, 1], 0])
      } finally {
        await form.close()
      }
    }).timeout(4 * TIMES.withinMs)
})
