import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Child } from '../../../scripts/local-services/child.ts'
import { callApi, initOf, openStream } from '../../support/api-client.ts'
import { type Cluster, startCluster } from '../../support/cluster.ts'
import { DEFINITION, GOOD } from '../../support/flows.ts'
import { type HangingTools, startHangingTools } from '../../support/hanging-tools.ts'
import { type ModelServer, type Received, startModelServer } from '../../support/model-server/model-server.ts'
import { useMongo } from '../../support/mongo.ts'
import { heads, planOf, step, stepIdOf } from '../../support/plans.ts'
import { useTempFolder } from '../../support/temp-folder.ts'
import { until } from '../../support/until.ts'

const START_MS = 90_000
const TEST_MS = 60_000
const HANGING_MS = 20_000
const LOST = 'executor lost, may have run'
const LOOKS = 'mcp__files__looks'

describe('an executor that is killed within a tool', () => {
  const mongo = useMongo()
  const dir = useTempFolder()
  let model: ModelServer
  let files: HangingTools
  let cluster: Cluster
  let executor: Child

  before(async function () {
    this.timeout(START_MS)
    model = await startModelServer()
    files = await startHangingTools([{ name: 'looks', annotations: { readOnlyHint: true } }])
    await writeFile(at('mcp.json'), JSON.stringify({ mcpServers: { files: { url: files.url, trusted: true } } }))
    await writeFile(at('hang'), '')
    const allowed = JSON.stringify({ Bash: 'allow', [LOOKS]: 'allow' })
    cluster = await startCluster(
      {
        ...mongo.env,
        MODEL: 'test-model',
        MODEL_PROVIDER: 'openai-compatible',
        MODEL_BASE_URL: model.url,
        MASTER_KEY: randomBytes(32).toString('base64'),
        ALLOW_PRIVATE_URLS: 'true',
        RATE_LIMIT_RPM: '0',
        DRAIN_SECS: '0',
        DATA_DIR: dir.path,
        ENABLE_BASH: 'true',
        MCP_CONFIG: at('mcp.json'),
        PLAN_PERMISSIONS: allowed,
      },
      { gateway: 1, worker: 1, executor: 0 },
    )
    executor = await cluster.startExecutor()
  })
  after(async () => {
    await rm(at('hang'), { force: true }) // The commands of the dead executors end with it.
    await cluster?.close()
    await model?.close()
    files?.close()
  })

  const at = (name: string) => join(dir.path, name)
  const url = (path: string) => `${cluster.urls[0]}${path}`
  const call = (method: string, path: string, body?: unknown) => callApi(url(path), initOf(method, body))
  /** Leaves a line in `effects`, and hangs. */
  const act = (mark: string) => {
    const command = `echo ${mark} >> ${at('effects')}; while test -e ${at('hang')}; do sleep 0.1; done`
    return [{ tool: 'Bash', id: `call_${mark}`, input: { command } }]
  }
  const effects = () => (existsSync(at('effects')) ? readFileSync(at('effects'), 'utf8').trim().split('\n') : [])
  const replaceExecutor = async () => {
    await executor.kill('SIGKILL')
    files.answer()
    executor = await cluster.startExecutor()
  }

  it('D7.3, D34: a step that hung in a command is not repeated, and its error says so; one that hung in a tool that only reads runs again', async function () {
    this.timeout(TEST_MS)
    model.otherwise((request: Received) => {
      const id = stepIdOf(request)
      if (request.results.length > 0 || id === 'last' || id === 'behind') return `out of ${id}`
      return id === 'acts' ? act('acts') : [{ tool: LOOKS, id: 'call_looks', input: {} }]
    })
    const steps = [step('acts'), step('looks'), step('behind', 'acts'), step('last', 'looks')]
    const { id } = planOf(await call('POST', '/plans/submit', { parallel: true, steps }), 202)
    const stream = await openStream(url(`/plans/${id}/events`), initOf('GET'))
    const areHanging = () => effects().includes('acts') && files.calls.length === 1
    await until(areHanging, { what: 'both tools to hang', withinMs: HANGING_MS })
    await replaceExecutor()
    expect(heads(await stream.all()).at(-1)).to.equal('plan_ended failed')
    const plan = planOf(await call('GET', `/plans/${id}`))
    expect(plan).to.deep.include({
      ...{ error: LOST, step_errors: { acts: LOST } },
      step_statuses: { acts: 'failed', looks: 'done', behind: 'skipped', last: 'done' },
    })
    expect(effects(), 'the command ran once').to.deep.equal(['acts'])
    expect(files.calls, 'the other tool was called again').to.have.length(2)
    expect(model.requests.filter((request) => stepIdOf(request) === 'acts')).to.have.length(1)
  })

  it('D34.2: a run of a flow with a key that hung in a command ends with 502 and is not repeated; one that hung in a tool that only reads begins anew', async function () {
    this.timeout(TEST_MS)
    files.hang()
    model.requests.length = 0
    await call('PUT', '/config/instances/main', {
      type: 'openai-compatible',
      url: model.url,
      key: 'sk-main-0123456789',
    })
    for (const [name, tool] of [
      ['acts', 'Bash'],
      ['looks', LOOKS],
    ] as const) {
      const put = () => call('PUT', `/flows/${name}`, { ...DEFINITION, tools: [tool] })
      await until(async () => (await put()).status === 200, { what: 'the flow to be stored' })
      await call('POST', `/flows/${name}/publish`)
    }
    model.otherwise((request: Received) => {
      if (request.results.length > 0) return GOOD
      const isActing = JSON.stringify(request.body).includes('"Bash"')
      return isActing ? act('flow') : [{ tool: LOOKS, id: 'call_looks', input: {} }]
    })
    const run = (name: string) => {
      const body = { input: { text: 'hello' }, provider_instance: 'main', model: 'test-model' }
      return callApi(url(`/flows/${name}/run`), initOf('POST', body, { 'idempotency-key': name }))
    }
    const [acting, looking] = [run('acts'), run('looks')]
    const areHanging = () => effects().includes('flow') && files.calls.length === 1
    await until(areHanging, { what: 'both tools to hang', withinMs: HANGING_MS })
    await replaceExecutor()
    expect(await looking).to.include({ status: 200 })
    expect(await acting).to.include({ status: 502 })
    expect(await acting).to.have.nested.property('body.error.code', 'worker_lost')
    expect(effects().filter((mark) => mark === 'flow')).to.have.length(1)
    expect(files.calls).to.have.length(2)
  })
})
