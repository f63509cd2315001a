import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { Redis } from 'ioredis'
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
import { areHanging, beforeCrash, CRASHING, checkAfterCrash } from './crash.ts'

/** Longer than the submit waits for Redis, and shorter than an executor's lease. */
const PAUSED_MS = 1_800
const LOST = 'executor lost, may have run'
/** A tool that only reads. */
const LOOKS = 'mcp__files__looks'
const LOOK = [{ tool: LOOKS, id: 'call_looks', input: {} }]

type Planned = { id: string; status: string }

/** The tests build on each other: the cluster begins without an executor. */
describe('plans and the executors of a cluster', () => {
  const mongo = useMongo()
  const dir = useTempFolder()
  let model: ModelServer
  let files: HangingTools
  let cluster: Cluster
  const executors: Child[] = []

  before(async () => {
    model = await startModelServer()
    files = await startHangingTools([{ name: 'looks', annotations: { readOnlyHint: true } }])
    await writeFile(at('mcp.json'), JSON.stringify({ mcpServers: { files: { url: files.url, trusted: true } } }))
    await writeFile(at('hang'), '')
    const env = {
      ...mongo.env,
      MODEL: 'test-model',
      MODEL_PROVIDER: 'openai-compatible',
      MODEL_BASE_URL: model.url,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ALLOW_PRIVATE_URLS: 'true',
      RATE_LIMIT_RPM: '0',
      DRAIN_SECS: '0',
      SCHEDULE_LEAST_SECS: '1',
      DATA_DIR: dir.path,
      ENABLE_BASH: 'true',
      MCP_CONFIG: at('mcp.json'),
      PLAN_PERMISSIONS: JSON.stringify({ Bash: 'allow', [LOOKS]: 'allow' }),
    }
    cluster = await startCluster(env, { gateway: 1, worker: 1, executor: 0 })
  })
  beforeEach(() => {
    model.requests.length = 0
    model.otherwise((request) => `out of ${stepIdOf(request)}`)
  })
  after(async () => {
    await rm(at('hang'), { force: true }) // The commands of the dead executors end with it.
    await cluster?.close()
    await model?.close()
    files?.close()
  })

  const at = (name: string) => join(dir.path, name)
  /** Leaves a line in `effects`, and hangs. */
  const act = (mark: string) => {
    const command = `echo ${mark} >> ${at('effects')}; while test -e ${at('hang')}; do sleep 0.1; done`
    return [{ tool: 'Bash', id: `call_${mark}`, input: { command } }]
  }
  const effects = () => (existsSync(at('effects')) ? readFileSync(at('effects'), 'utf8').trim().split('\n') : [])
  const inTools = (mark: string) => {
    const areHung = () => effects().includes(mark) && files.calls.length === 1
    return until(areHung, { what: 'both tools to hang' })
  }
  const replaceExecutors = async () => {
    for (const executor of executors.splice(0)) await executor.kill('SIGKILL')
    files.answer()
  }

  const start = async () => executors.push(await cluster.startExecutor())
  const url = (path: string) => `${cluster.urls[0]}${path}`
  const call = (method: string, path: string, body?: unknown) => callApi(url(path), initOf(method, body))
  const submit = async (plan: object) => planOf(await call('POST', '/plans/submit', plan), 202)
  const read = async (id: string) => planOf(await call('GET', `/plans/${id}`))
  const follow = (id: string) => openStream(url(`/plans/${id}/events`), initOf('GET'))
  const fired = async () => ((await call('GET', '/plans?limit=200')).body as { plans: Planned[] }).plans

  it('without an executor plans are accepted, wait, and can be cancelled; they run when an executor starts', async () => {
    const plans = [await submit({ steps: [step('a'), step('b', 'a')] }), await submit({ steps: [step('c')] })]
    const cancelled = await submit({ steps: [step('d')] })
    expect(planOf(await call('POST', `/plans/${cancelled.id}/cancel`))).to.include({ status: 'cancelled' })
    for (const { id } of plans) expect(await read(id)).to.include({ status: 'queued', started_at: null })
    const stream = await follow(plans[0]?.id ?? '')
    expect(model.requests).to.be.empty

    await start()
    expect(heads(await stream.all()).at(-1)).to.equal('plan_ended done')
    await (await follow(plans[1]?.id ?? '')).all()
    for (const { id } of plans) expect(await read(id)).to.include({ status: 'done' })
    expect(model.requests.map(stepIdOf).toSorted()).to.deep.equal(['a', 'b', 'c'])
  })

  it('a plan whose job was lost, because Redis did not answer its submit, runs soon after Redis answers again', async () => {
    for (const redisUrl of cluster.redisUrls) {
      const redis = new Redis(redisUrl)
      await redis.call('CLIENT', 'PAUSE', `${PAUSED_MS}`, 'ALL')
      redis.disconnect()
    }
    const { id } = await submit({ steps: [step('late')] })
    await until(async () => (await read(id)).status === 'done', {
      what: 'the plan to run',
      everyMs: 100,
    })
  })

  it('two executors submit one plan for each tick of a schedule', async () => {
    await start()
    const { length: earlier } = await fired()
    const startedAt = Date.now()
    await call('PUT', '/plans/schedules/each', { every_secs: 1, plan: { steps: [step('tick')] } })
    const hasFired = async () => (await fired()).length >= earlier + 3
    await until(hasFired, { what: 'three ticks', everyMs: 50 })
    await call('DELETE', '/plans/schedules/each')
    const ticks = (await fired()).length - earlier
    expect(ticks).to.be.at.most(Math.floor(Date.now() / 1_000) - Math.floor(startedAt / 1_000))
    const areDone = async () => (await fired()).every(({ status }) => status === 'done' || status === 'cancelled')
    await until(areDone, { what: 'the plans of the ticks to end', everyMs: 50 })
    expect(model.requests).to.have.length(ticks)
  })

  it('D34, D7.3: plans of a killed executor go on at another: a step that had changed a file, or hung in a command, is failed, and one that had not, or hung in a tool that only reads, runs again', async () => {
    const answer = (request: Received, other: typeof beforeCrash) => {
      const isFirst = request.results.length === 0
      if (isFirst && stepIdOf(request) === 'acts') return act('acts')
      return isFirst && stepIdOf(request) === 'looks' ? LOOK : other(request)
    }
    model.otherwise((request) => answer(request, beforeCrash))
    const { id } = await submit(CRASHING)
    const steps = [step('acts'), step('looks'), step('behind-acts', 'acts'), step('behind-looks', 'looks')]
    const { id: hanging } = await submit({ parallel: true, steps })
    const watched = await submit({ steps: [step('held'), step('after', 'held')] })
    const stream = await follow(watched.id)
    await until(() => areHanging(model, 'once', 'again', 'held'), { what: 'the steps to run' })
    await inTools('acts')
    await replaceExecutors()
    model.otherwise((request) => answer(request, () => `out of ${stepIdOf(request)}`))
    await start()
    expect(heads(await stream.all())).to.deep.equal([
      'plan_started',
      'step_started held',
      'step_ended held failed',
      'step_ended after skipped',
      'plan_ended failed',
    ])
    const hasEnded = async () => (await read(id)).ended_at !== null && (await read(hanging)).ended_at !== null
    await until(hasEnded, { what: 'the other plans to end', everyMs: 50 })
    checkAfterCrash(await read(id), model)
    expect(await read(hanging)).to.deep.include({
      ...{ status: 'failed', error: LOST, step_errors: { acts: LOST } },
      step_statuses: { acts: 'failed', looks: 'done', 'behind-acts': 'skipped', 'behind-looks': 'done' },
    })
    expect(effects(), 'the command ran once').to.deep.equal(['acts'])
    expect(files.calls, 'the other tool was called again').to.have.length(2)
    expect(model.requests.filter((request) => stepIdOf(request) === 'acts')).to.have.length(1)
  })

  it('D34.2: runs of flows with a key whose executor is killed begin anew at another, unless they have changed a file or hung in a command: those end with 502', async () => {
    files.hang()
    await call('PUT', '/config/instances/main', {
      type: 'openai-compatible',
      url: model.url,
      key: 'sk-main-0123456789',
    })
    for (const [name, tool] of [
      ['reads', 'Glob'],
      ['writes', 'Write'],
      ['acts', 'Bash'],
      ['looks', LOOKS],
    ] as const) {
      const put = () => call('PUT', `/flows/${name}`, { ...DEFINITION, tools: [tool] })
      await until(async () => (await put()).status === 200, { what: 'the flow to be stored' })
      await call('POST', `/flows/${name}/publish`)
    }
    const lastTool = ({ results }: { results: readonly { id: string }[] }) => results.at(-1)?.id
    const has = ({ body }: Received, tool: string) => JSON.stringify(body).includes(`"${tool}"`)
    model.otherwise((asked) => {
      if (lastTool(asked)) return [{ hang: true } as const]
      if (has(asked, 'Bash')) return act('flow')
      if (has(asked, LOOKS)) return LOOK
      return has(asked, 'Glob')
        ? [{ tool: 'Glob', id: 'read', input: { pattern: '*' } }]
        : [{ tool: 'Write', id: 'write', input: { path: 'a.txt', content: 'a' } }]
    })
    const request = { input: { text: 'hello' }, provider_instance: 'main', model: 'test-model' }
    const run = (name: string, key: string) =>
      callApi(url(`/flows/${name}/run`), initOf('POST', request, { 'idempotency-key': key }))
    const [answer, failure] = [run('reads', 'answer'), run('writes', 'failure')]
    const [looking, acting] = [run('looks', 'looks'), run('acts', 'acts')]
    const stream = await openStream(
      url('/flows/reads/run'),
      initOf('POST', request, { 'idempotency-key': 'stream', accept: 'text/event-stream' }),
    )
    const cancelled = await openStream(
      url('/flows/reads/run'),
      initOf('POST', request, { 'idempotency-key': 'cancelled', accept: 'text/event-stream' }),
    )
    const hanging = () => model.requests.filter((each) => lastTool(each)).length === 4
    await until(hanging, { what: 'the tools to have been called' })
    await inTools('flow')
    await replaceExecutors()
    const runs = { paused: stream.runId, cancelled: cancelled.runId }
    const isAnswered = async () => (await call('GET', `/runs/${runs.paused}`)).status !== 503
    await until(isAnswered, { what: 'the dead executors to be noticed' })
    expect((await call('GET', `/runs/${runs.paused}`)).body).to.include({ status: 'running', ended_at: null })
    expect((await call('DELETE', `/runs/${runs.cancelled}`)).body).to.deep.equal({ status: 'cancelled' })
    model.otherwise((asked) => (has(asked, LOOKS) && asked.results.length === 0 ? LOOK : GOOD))
    model.requests.length = 0
    await start()
    expect((await cancelled.all()).at(-1)?.data).to.include({ code: 'cancelled' })
    for (const ended of [await failure, await acting]) {
      expect(ended).to.have.nested.property('body.error.code', 'worker_lost')
      expect(ended).to.include({ status: 502 })
    }
    expect(await answer).to.include({ status: 200 })
    expect(await looking).to.include({ status: 200 })
    expect(effects().filter((mark) => mark === 'flow')).to.have.length(1)
    expect(files.calls).to.have.length(2)
    const frames = await stream.all()
    const behind = frames.slice(frames.findIndex(({ data }) => data['code'] === 'run_recovered'))
    expect(behind.map(({ event }) => event)).to.deep.equal(['warning', 'started', 'warning', 'progress', 'result'])
    expect(behind.map(({ id }) => id)).to.deep.equal([1, 2, 3, 4, 5].map((n) => 1_000_000 + n))
    expect(frames[0]).to.include({ event: 'started', id: 1 })
    expect(model.requests.filter((asked) => !has(asked, LOOKS))).to.have.length(2)
  })
})
