import { symlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { callApi, initOf, openStream } from '../../support/api-client.ts'
import { Child } from '../../support/child.ts'
import { type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'
import { heads, planOf, step, stepIdOf } from '../../support/plans.ts'
import { useTempFolder } from '../../support/temp-folder.ts'
import { until } from '../../support/until.ts'
import { areHanging, beforeCrash, CRASHING, checkAfterCrash } from './crash.ts'

const MAIN = new URL('../../../services/standalone/main.ts', import.meta.url).pathname

describe('plans of a standalone process that is killed', () => {
  const dataDir = useTempFolder()
  let model: ModelServer
  let url = ''
  let child: Child
  const children: Child[] = []

  beforeEach(async () => {
    model = await startModelServer()
    model.otherwise((request) => `out of ${stepIdOf(request)}`)
    await start()
  })
  afterEach(async () => {
    for (const each of children.splice(0)) await each.end('SIGKILL')
    await model.close()
  })

  /** A process that executes one plan at a time. */
  function spawn(folder: string): Child {
    const spawned = new Child(process.execPath, [MAIN], {
      DATA_DIR: folder,
      PORT: '0',
      OPS_PORT: '0',
      RATE_LIMIT_RPM: '0',
      RUNS_PER_WORKER: '8',
      SCHEDULE_LEAST_SECS: '1',
      MODEL: 'test-model',
      MODEL_PROVIDER: 'openai-compatible',
      MODEL_BASE_URL: model.url,
    })
    children.push(spawned)
    return spawned
  }

  /** Starts the process on the data of the earlier ones. */
  async function start(): Promise<void> {
    child = spawn(dataDir.path)
    url = (JSON.parse(await child.line(/"listening"/)) as { url: string }).url
  }

  const call = (method: string, path: string, body?: unknown) => callApi(`${url}${path}`, initOf(method, body))
  const submit = async (plan: object) => planOf(await call('POST', '/plans/submit', plan), 202)
  const read = async (id: string) => planOf(await call('GET', `/plans/${id}`))
  const follow = (id: string) => openStream(`${url}/plans/${id}/events`, initOf('GET'))
  const crash = async () => {
    await child.end('SIGKILL')
    model.otherwise((request) => `out of ${stepIdOf(request)}`)
    await start()
  }

  it('D34: after a restart a step that had changed a file is failed, one that had not runs again, queued plans run, ended and cancelled ones stay as they were, and schedules go on', async () => {
    const done = await submit({ steps: [step('a')] })
    await (await follow(done.id)).all()
    model.otherwise(beforeCrash)
    const running = await submit(CRASHING)
    await until(() => areHanging(model, 'once', 'again'), { what: 'the steps to run' })
    const queued = [await submit({ steps: [step('x'), step('y', 'x')] }), await submit({ steps: [step('z')] })]
    for (const { id } of queued) expect(await read(id)).to.include({ status: 'queued' })
    const cancelled = await submit({ steps: [step('c')] })
    await call('POST', `/plans/${cancelled.id}/cancel`)
    const plan = { title: 'tick', steps: [step('tick')] }
    expect((await call('PUT', '/plans/schedules/each', { every_secs: 1, plan })).status).to.equal(200)
    const ended = [await read(done.id), await read(cancelled.id)]
    await expectSecondStartRefused()
    expect(await read(running.id)).to.include({ status: 'running' })
    await crash()
    expect([await read(done.id), await read(cancelled.id)]).to.deep.equal(ended)
    expect(heads(await (await follow(running.id)).all()).at(-1)).to.equal('plan_ended failed')
    checkAfterCrash(await read(running.id), model)
    for (const { id } of queued) {
      await (await follow(id)).all()
      expect(await read(id)).to.include({ status: 'done' })
    }
    await until(() => model.requests.some((request) => stepIdOf(request) === 'tick'), { what: 'the schedule to go on' })
    const asked = model.requests.map(stepIdOf).filter((id) => ['a', 'c', 'x', 'y', 'z'].includes(id))
    expect(asked).to.deep.equal(['a', 'x', 'y', 'z'])
  })

  /** By whatever path it names the folder. */
  async function expectSecondStartRefused(): Promise<void> {
    await symlink(dataDir.path, join(dataDir.path, 'link'))
    const second = spawn(join(dataDir.path, 'link'))
    expect(await second.exited).to.equal(78)
    const said = second.lines.filter((line) => line.includes('DATA_DIR'))
    expect(said, second.lines.join('\n')).to.have.length(1)
    expect(said[0]).to.include(`in use by process ${child.process.pid} on ${hostname()} (standalone at ${url}`)
  }
})
