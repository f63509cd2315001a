import { expect } from 'chai'
import { epochOfRun } from '../../shared/kernel/ids.ts'
import { callApi, initOf, openStream } from '../support/api-client.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { useMongo } from '../support/mongo.ts'

describe('runs after the death of their processes', () => {
  const mongo = useMongo()
  let model: ModelServer
  before(async () => {
    model = await startModelServer()
  })
  after(() => model.close())

  const modelEnv = () => ({
    MODEL: 'test-model',
    MODEL_PROVIDER: 'openai-compatible',
    MODEL_BASE_URL: model.url,
    RATE_LIMIT_RPM: '0',
    DRAIN_SECS: '0',
    DURABILITY: 'runs',
  })
  const create = async (url: string) =>
    ((await callApi(`${url}/sessions`, initOf('POST', {}))).body as { session_id: string }).session_id
  const open = (url: string, id: string, prompt: string) =>
    openStream(`${url}/sessions/${id}/messages`, initOf('POST', { prompt }))

  describe('in a cluster', () => {
    let cluster: Cluster
    before(async () => {
      cluster = await startCluster({ ...mongo.env, ...modelEnv() }, { executors: 0 })
    })
    after(() => cluster.close())

    it('D32.7a: kill -9 of the worker', async () => {
      const [url = ''] = cluster.urls
      const id = await create(url)
      model.otherwise(() => [{ text: 'a' }, { hold: new Promise(() => {}) }])
      const stream = await open(url, id, 'one')
      await stream.until('text_delta')
      const epoch = epochOfRun(stream.runId)
      const worker = cluster.workers.find(({ output }) => output.includes(`wk_${epoch}"`))
      model.otherwise(() => 'ok')
      await worker?.kill('SIGKILL')
      await stream.until('warning')
      await stream.all()
      expect(stream.frames.at(-1)?.event).to.equal('done')
    })
  })
})
