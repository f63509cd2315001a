import { expect } from 'chai'
import { callApi, initOf, openStream } from '../support/api-client.ts'
import { Child } from '../support/child.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { useModelServer } from '../support/model-server/model-server.ts'
import { useMongo } from '../support/mongo.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const STANDALONE = new URL('../../services/standalone/main.ts', import.meta.url).pathname
const WORKER = new URL('../../services/worker/main.ts', import.meta.url).pathname

describe('sessions after the death of their processes', () => {
  const mongo = useMongo()
  const model = useModelServer()

  const modelEnv = () => ({
    MODEL: 'test-model',
    MODEL_PROVIDER: 'openai-compatible',
    MODEL_BASE_URL: model.url,
    RATE_LIMIT_RPM: '0',
    DRAIN_SECS: '0',
    DURABILITY: 'sessions',
  })
  const create = async (url: string) =>
    ((await callApi(`${url}/sessions`, initOf('POST', {}))).body as { session_id: string }).session_id
  const open = (url: string, id: string, prompt: string) =>
    openStream(`${url}/sessions/${id}/messages`, initOf('POST', { prompt }))
  const say = async (url: string, id: string, prompt: string) => (await (await open(url, id, prompt)).all()).at(-1)
  /** The texts of the user's messages that the model has received with its last request. */
  const promptsSeen = () => {
    const messages = (model.requests.at(-1)?.body['messages'] ?? []) as { role: string; content: unknown }[]
    return messages.filter(({ role }) => role === 'user').map(({ content }) => content)
  }
  const listed = async (url: string) =>
    ((await callApi(`${url}/sessions`, initOf('GET'))).body as { sessions: { session_id: string }[] }).sessions.map(
      ({ session_id }) => session_id,
    )

  describe('in a cluster', () => {
    let cluster: Cluster
    const start = async () => {
      cluster = await startCluster({ ...mongo.env, ...modelEnv() }, { gateway: 1, executor: 0 })
    }
    before(start)
    after(() => cluster.close())

    it('D32: kill -9 of a worker, then of the whole cluster: the next message has the history, and deleted ones stay deleted', async () => {
      const [url = ''] = cluster.urls
      const ids = [await create(url), await create(url), await create(url), await create(url)]
      for (const id of ids) expect(await say(url, id, `first ${id}`)).to.include({ event: 'done' })
      model.otherwise(() => [{ text: 'a' }, { hold: new Promise(() => {}) }])
      const cut = await Promise.all(ids.map((id) => open(url, id, 'cut off')))
      for (const stream of cut) await stream.until('text_delta')
      for (const worker of cluster.workers) await worker.kill('SIGKILL')
      for (const stream of cut) {
        const last = (await stream.all()).at(-1)
        expect(last?.data).to.include({ code: 'worker_lost', session_kept: true })
      }
      model.otherwise(() => 'ok')
      await cluster.close()
      await start()
      const [again = ''] = cluster.urls
      expect(await listed(again)).to.have.members(ids)
      for (const id of ids.slice(0, 2)) {
        expect(await say(again, id, 'second')).to.include({ event: 'done' })
        expect(promptsSeen()).to.deep.equal([`first ${id}`, 'second'])
      }
      const [, , gone = ''] = ids
      expect((await callApi(`${again}/sessions/${gone}`, initOf('DELETE'))).status).to.equal(200)
      const [survivor, dying] = cluster.workers
      await dying?.kill('SIGKILL')
      for (const id of [...ids.slice(0, 2), ...ids.slice(3)]) {
        const isAnswered = async () => {
          const stream = await open(again, id, 'third').catch(() => undefined)
          return stream && (await stream.all()).at(-1)?.event === 'done'
        }
        await until(isAnswered, { what: 'the worker that is left to answer', everyMs: 200 })
        expect(promptsSeen().slice(0, 1)).to.deep.equal([`first ${id}`])
        expect(promptsSeen().slice(-1)).to.deep.equal(['third'])
      }
      expect((await callApi(`${again}/sessions/${gone}`, initOf('GET'))).status).to.equal(404)
      expect(survivor?.isRunning).to.equal(true)
    }).timeout(120_000)
  })

  describe('in the standalone form', () => {
    const dataDir = useTempFolder()
    const start = () =>
      new Child(process.execPath, [STANDALONE], { DATA_DIR: dataDir.path, PORT: '0', OPS_PORT: '0', ...modelEnv() })
    const urlOf = async (child: Child) => (JSON.parse(await child.line(/"listening"/)) as { url: string }).url

    it('D32: kill -9 of the process: after its next start the sessions go on', async () => {
      const first = start()
      const before = await urlOf(first)
      const [id, deleted] = [await create(before), await create(before)]
      expect(await say(before, id, 'one')).to.include({ event: 'done' })
      await callApi(`${before}/sessions/${deleted}`, initOf('DELETE'))
      await first.end('SIGKILL')
      const second = start()
      try {
        const url = await urlOf(second)
        expect(await listed(url)).to.deep.equal([id])
        expect(await say(url, id, 'two')).to.include({ event: 'done' })
        expect(promptsSeen()).to.deep.equal(['one', 'two'])
        expect((await callApi(`${url}/sessions`, initOf('POST', { session_id: id }))).status).to.equal(409)
        expect((await callApi(`${url}/sessions/${deleted}`, initOf('GET'))).status).to.equal(404)
      } finally {
        await second.end('SIGKILL')
      }
    })
  })

  it('D32: without a store the process exits with 78 and says why', async () => {
    const env = { REDIS_URL: 'redis://127.0.0.1:1', OPS_PORT: '0', DURABILITY: 'sessions' }
    const child = new Child(process.execPath, [WORKER], env)
    expect(await child.exited).to.equal(78)
    expect(child.lines.join('\n')).to.contain('DURABILITY=sessions needs a store: MONGODB_URL is not set')
  })
})
