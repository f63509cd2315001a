import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { callApi, initOf, openStream } from '../support/api-client.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import type { EventStream } from '../support/event-stream.ts'
import { useMongo } from '../support/mongo.ts'
import { until } from '../support/until.ts'

type Pending = { run_id: string }

describe('a dead worker', () => {
  const mongo = useMongo()
  let cluster: Cluster
  let lostRunId: string
  before(async () => {
    const env = { ...mongo.env, MODEL_PROVIDER: 'demo', RATE_LIMIT_RPM: '0', DRAIN_SECS: '0' }
    cluster = await startCluster(env, { executor: 0 })
  })
  after(() => cluster.close())

  const url = (gateway: number) => cluster.urls[gateway % cluster.urls.length] ?? ''
  async function ask(gateway: number): Promise<EventStream> {
    const prompt = '/tool Write {"path":"a.txt","content":"b"}'
    const run = await openStream(`${url(gateway)}/agent/run`, initOf('POST', { prompt }))
    await run.until('permission_request')
    return run
  }
  async function pending(gateway: number): Promise<string[]> {
    const { body } = await callApi(`${url(gateway)}/permissions`, initOf('GET'))
    return (body as { permissions: Pending[] }).permissions.map(({ run_id }) => run_id)
  }

  it('D4.12: its permission requests are no longer listed after its eviction, and those of the other workers are', async () => {
    const [worker] = cluster.workers
    const id = /"id":"wk_(\d+)"/.exec(worker?.output ?? '')?.[1]
    const isOf = ({ runId }: EventStream) => Number.parseInt(runId.slice(4, 12), 16) === Number(id)
    const streams: EventStream[] = []
    while (!streams.some(isOf) || streams.every(isOf)) streams.push(await ask(streams.length))
    expect(await pending(0)).to.deep.equal(streams.map(({ runId }) => runId))
    await worker?.kill('SIGKILL')
    for (const stream of streams.filter(isOf)) {
      expect((await stream.all()).at(-1)?.data).to.include({ code: 'worker_lost' })
    }
    const lines = cluster.gateways.flatMap(({ output }) => output.split('\n')).filter((line) => line.includes('"warn"'))
    expect(lines.filter((line) => line.includes('a worker or executor was lost'))).to.have.length.above(0)
    for (const { runId } of streams.filter(isOf)) {
      const [ended, ...more] = lines.filter((line) => line.includes(runId)).map((line) => JSON.parse(line) as object)
      expect(ended).to.include({ msg: 'run ended', code: 'worker_lost', tenant: DEFAULT_TENANT })
      expect(more).to.deep.equal([])
    }
    lostRunId = streams.find(isOf)?.runId ?? ''
    const left = streams.filter((stream) => !isOf(stream)).map(({ runId }) => runId)
    for (const gateway of [0, 1]) {
      const isShorter = async () => (await pending(gateway)).length <= left.length
      await until(isShorter, { what: `gateway ${gateway} to list the requests of live workers only` })
      expect(await pending(gateway)).to.deep.equal(left)
    }
    for (const runId of left) await callApi(`${url(0)}/runs/${runId}`, initOf('DELETE'))
  })

  it('D20.4: a client that comes back to a run of it, wherever it was, gets worker_lost, and then nothing more', async () => {
    for (const gateway of [0, 1]) {
      const path = `${url(gateway)}/runs/${lostRunId}/events`
      const follow = async (id: string | number) =>
        (await openStream(`${path}?last_event_id=${id}`, initOf('GET'))).all()
      await until(async () => (await callApi(`${url(gateway)}/runs/${lostRunId}`, initOf('GET'))).status === 200, {
        what: 'the record of the run',
      })
      const [last, ...more] = await follow(2)
      expect(more).to.deep.equal([])
      expect(last).to.include({ event: 'error', id: 4_294_967_295 })
      expect(last?.data).to.include({ code: 'worker_lost' })
      const { status } = await callApi(`${path}?last_event_id=${last?.id}`, initOf('GET'))
      expect(status).to.equal(204)
    }
  })
})
