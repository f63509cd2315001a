import { expect } from 'chai'
import fc from 'fast-check'
import { Child } from '../support/child.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, useProduct } from '../support/product.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { Page, type Wire } from './branches/page.ts'
import { type Act, actsOf, asRequest, killsOf, play } from './branches/story.ts'

const STANDALONE = new URL('../../services/standalone/main.ts', import.meta.url).pathname
const KILLED = ['send', 'send', 'edit', 'kill', 'send', 'again', 'fail', 'kill', 'send', 'branch', 'edit'] as const

/** So many series of acts for each format, in each form. */
const STORIES = Number(process.env['STORIES'] ?? 4)

inBothForms('the branch that a page shows', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  const product = useProduct(() =>
    startProduct({
      DIALECTS: 'ui,ag-ui,openai',
      ...mongo?.env,
      ...(mongo && { DURABILITY: 'sessions' }),
    }),
  )

  for (const wire of ['ui', 'ag-ui'] as const satisfies readonly Wire[])
    it(`D38: ${wire}: in ${STORIES} stories of edits, regenerations, branches, failures and refusals the model reads just what the page shows`, async () => {
      await fc.assert(
        fc.asyncProperty(actsOf(), async (acts) => {
          const page = new Page(product.url, wire)
          for (const { page: shown, model } of await play(page, acts, product))
            expect(model).to.deep.equal(asRequest(shown))
        }),
        { numRuns: STORIES, endOnFailure: true },
      )
    })
})

describe('the branch that a page shows, after kill -9', () => {
  const dataDir = useTempFolder()
  let model: ModelServer
  let child: Child
  let url: string
  const start = async () => {
    child = new Child(process.execPath, [STANDALONE], {
      ...{ DATA_DIR: dataDir.path, PORT: '0', OPS_PORT: '0', RATE_LIMIT_RPM: '0', DURABILITY: 'sessions' },
      ...{ MODEL: 'test-model', MODEL_PROVIDER: 'openai-compatible', MODEL_BASE_URL: model.url },
    })
    url = (JSON.parse(await child.line(/"listening"/)) as { url: string }).url
  }
  before(async () => {
    model = await startModelServer()
    await start()
  })
  after(async () => {
    await child.end('SIGKILL')
    await model.close()
  })

  it('D23.5a: ag-ui: stories that kill the process between two messages go on in the branch that the page shows', async () => {
    const page = new Page(url, 'ag-ui')
    const kill = async () => {
      await child.end('SIGKILL')
      await start()
      page.url = url
    }
    const acts = KILLED.map((kind, i): Act => ({ kind, pick: i, keepsId: i % 2 === 0 }))
    const told = await play(page, acts, { model, kill })
    expect(told).to.have.length(KILLED.filter((kind) => !['kill', 'branch', 'refuse'].includes(kind)).length)
    for (const { page: shown, model: read } of told) expect(read).to.deep.equal(asRequest(shown))
  })
})

describe('the branch that a page shows, in a cluster whose workers are killed', () => {
  const mongo = useMongo()
  let model: ModelServer
  let cluster: Cluster
  let workers: Cluster['workers'] = []
  before(async () => {
    model = await startModelServer()
    const env = { RATE_LIMIT_RPM: '0', DURABILITY: 'sessions', DIALECTS: 'ui,ag-ui' }
    const models = { MODEL: 'test-model', MODEL_PROVIDER: 'openai-compatible', MODEL_BASE_URL: model.url }
    cluster = await startCluster({ ...mongo.env, ...env, ...models }, { gateway: 1, executor: 0 })
    workers = cluster.workers
  })
  after(async () => {
    await cluster?.close()
    await model.close()
  })

  /** Kills all workers when there is another one. */
  async function kill(): Promise<void> {
    const fresh = await cluster.startWorker()
    await Promise.all(workers.map((worker) => worker.kill('SIGKILL')))
    workers = [fresh]
  }

  it("D38: ui: the model reads just what the page shows, in stories in which kill -9 takes the session's worker twice", async () => {
    await fc.assert(
      fc.asyncProperty(killsOf(), async (acts) => {
        const page = new Page(cluster.urls[0] ?? '', 'ui')
        for (const { page: shown, model: read } of await play(page, acts, { model, kill }))
          expect(read).to.deep.equal(asRequest(shown))
      }),
      { numRuns: Math.ceil(STORIES / 8), endOnFailure: true },
    )
  })
})
