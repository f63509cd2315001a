import { mkdtemp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openExecutorMember } from '../../services/executor/member.ts'
import { openGatewayMember } from '../../services/gateway/member.ts'
import { openWorkerMember } from '../../services/worker/member.ts'
import { loadConfig } from '../../shared/platform/config/config.ts'
import { groupSettings } from '../../shared/platform/config/groups.ts'
import type { Objects } from '../../shared/platform/objects/port.ts'
import { callApi, initOf, openStream } from '../support/api-client.ts'
import { Child } from '../support/child.ts'
import { startClusterRedis } from '../support/cluster-redis.ts'
import type { Frame } from '../support/event-stream.ts'
import { useMongo } from '../support/mongo.ts'
import { listAll, useS3 } from '../support/s3.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const WORKER = new URL('../../services/worker/main.ts', import.meta.url).pathname
const ROLES = { gateway: openGatewayMember, worker: openWorkerMember, executor: openExecutorMember }
const write = (text: string) => `/tool Write {"path":"notes/a.txt","content":"${text}"}`
const READ = '/tool Read {"path":"notes/a.txt"}'

type Member = { url: string; dir: string; close(): Promise<void> }

describe('a cluster whose processes share no folder', () => {
  const mongo = useMongo()
  const s3 = useS3()
  let redis: Awaited<ReturnType<typeof startClusterRedis>>
  let objects: Objects
  const dirs = useTempFolder()
  let url: string
  const members = new Set<Member>()
  before(async () => {
    redis = await startClusterRedis()
    objects = s3.open()
    url = (await open('gateway')).url
  })
  after(async () => {
    await Promise.all([...members].map((member) => member.close()))
    await objects.close()
    await redis.stop()
  })

  /** The settings of a process, with a disk of its own. */
  const envOf = (dir: string, more: Record<string, string> = {}) => ({
    ...{ HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', DATA_DIR: dir, RATE_LIMIT_RPM: '0', DRAIN_SECS: '10' },
    RUN_RESUME_SECS: '1', // For which a worker that drains stays behind its runs.
    ...{ MODEL: 'demo', MODEL_PROVIDER: 'demo', DURABILITY: 'sessions', TOOL_PERMISSIONS: '{"Write":"allow"}' },
    ...{ ...mongo.env, ...s3.env, ...redis.env, ...more },
  })
  const newDisk = (role: string) => mkdtemp(join(dirs.path, `${role}-`))
  /** Opens a member in this process. `close` is what SIGTERM does. */
  async function open(role: keyof typeof ROLES, more: Record<string, string> = {}): Promise<Member> {
    const dir = await newDisk(role)
    const opened = await ROLES[role](groupSettings(loadConfig(envOf(dir, more), 'cluster')), SILENT_LOG)
    const member = {
      url: String(opened.ready['url']),
      dir,
      async close() {
        members.delete(member)
        for (const closer of opened.closers) await closer.close()
      },
    }
    members.add(member)
    return member
  }

  const say = async (id: string, prompt: string) =>
    (await openStream(`${url}/sessions/${id}/messages`, initOf('POST', { prompt }))).all()
  /** Says it until another worker has the session. */
  const sayLater = (id: string, prompt: string) =>
    until(
      async () => {
        const frames = await say(id, prompt).catch(() => [])
        return frames.at(-1)?.event === 'done' && frames
      },
      { what: 'another worker to answer', everyMs: 100 },
    )
  const outputOf = (frames: readonly Frame[]) => frames.find(({ event }) => event === 'tool_result')?.data['output']
  const codesOf = (frames: readonly Frame[]) => frames.flatMap(({ data }) => data['code'] ?? [])
  const hasFile = async ({ dir }: { dir: string }) =>
    (await readdir(dir, { recursive: true })).some((path) => path.endsWith('notes/a.txt'))
  const keptFolders = async () => (await listAll(objects, 'folders/')).map(({ key }) => key)

  it('D35: the files of a session outlive kill -9 of its worker, an outage of the store and a rolling restart', async () => {
    const id = 'walker'
    const disk = await newDisk('worker')
    const dying = new Child(process.execPath, [WORKER], envOf(disk))
    await dying.line(/"listening"/)
    await callApi(`${url}/sessions`, initOf('POST', { session_id: id }))
    expect(codesOf(await say(id, write('one')))).to.deep.equal([])
    expect(await hasFile({ dir: disk })).to.equal(true)

    const second = await open('worker')
    const stream = await openStream(
      `${url}/sessions/${id}/messages`,
      initOf('POST', { prompt: `${write('two turns')}\n/sleep 60000` }),
    )
    await stream.until('tool_result')
    await dying.end('SIGKILL') // In the middle of the run: what a result has said is stored.
    await stream.all()
    expect(outputOf(await sayLater(id, READ))).to.include('two turns')
    expect(await hasFile(second)).to.equal(true)

    await s3.server.kill('SIGSTOP')
    const frames = await say(id, write('two'))
    expect(codesOf(frames), 'the files are not said to be safe').to.deep.equal(['workspace_not_stored'])
    expect(frames.at(-1)?.event).to.equal('done')
    await s3.server.kill('SIGCONT')

    const third = await open('worker')
    await second.close()
    expect(await hasFile(second)).to.equal(false)
    expect(outputOf(await sayLater(id, READ))).to.include('two')
    expect(await hasFile(third)).to.equal(true)

    expect(await keptFolders()).to.have.length(1)
    expect((await callApi(`${url}/sessions/${id}`, initOf('DELETE'))).status).to.equal(200)
    await until(async () => (await keptFolders()).length === 0, { what: 'the files of the deleted session to go' })
    expect(await listAll(objects, 'files/')).to.deep.equal([])
  }).timeout(120_000)

  it('D37.4: a deploy is a pause for a one-shot run, too, whose tools have written files: they go along, and go with the run', async () => {
    const runs = { DURABILITY: 'runs', CLUSTER_NAME: 'runs' }
    const [gateway, first] = [await open('gateway', runs), await open('worker', runs)]
    const prompt = `${write('for later')}\n/tool WebFetch {"url":"http://127.0.0.1:9/"}\n${READ}`
    const stream = await openStream(`${gateway.url}/agent/run`, initOf('POST', { prompt }))
    const { data } = await stream.until('permission_request')
    expect(await hasFile(first)).to.equal(true)
    const second = await open('worker', runs)
    await first.close()
    const path = `${gateway.url}/sessions/${stream.runId}/permissions/${data['id']}`
    expect((await callApi(path, initOf('POST', { allow: true }))).status).to.equal(200)
    const frames = await stream.all()
    expect(codesOf(frames)).to.deep.equal(['run_recovered'])
    expect(frames.findLast(({ event }) => event === 'tool_result')?.data['output']).to.include('for later')
    expect(frames.at(-1)?.event).to.equal('done')
    await until(async () => (await keptFolders()).length === 0, { what: 'the files of the ended run to go' })
    expect([await hasFile(first), await hasFile(second)]).to.deep.equal([false, false])
  }).timeout(120_000)

  it('D35: a step of a plan reads at another executor what an earlier one has written', async () => {
    const [first, steps] = [
      await open('executor'),
      [
        { id: 'write', prompt: write('from the first') },
        { id: 'wait', prompt: '/sleep 3000\n/say waited', depends_on: ['write'] },
        { id: 'read', prompt: READ, depends_on: ['wait'] },
        { id: 'rest', prompt: '/sleep 1000', depends_on: ['read'] },
      ],
    ]
    const submitted = await callApi(`${url}/plans/submit`, initOf('POST', { steps }))
    const { id } = submitted.body as { id: string }
    const plan = async () => (await callApi(`${url}/plans/${id}`, initOf('GET'))).body as Record<string, unknown>
    const statuses = async () => (await plan())['step_statuses'] as Record<string, string>
    await until(async () => (await statuses())['wait'] === 'running', { what: 'the second step', everyMs: 50 })
    expect(await hasFile(first)).to.equal(true)
    const second = await open('executor')
    await first.close()
    expect(await statuses()).to.include({ write: 'done', wait: 'done' })
    await until(async () => (await statuses())['rest'] === 'running', { what: 'the last step', everyMs: 20 })
    expect(await hasFile(second)).to.equal(true)
    await until(async () => (await plan())['status'] === 'done', { what: 'the plan to end', everyMs: 50 })
    await until(async () => (await keptFolders()).length === 0, { what: 'the files of the ended plan to go' })
    expect(await hasFile(second)).to.equal(false)
    expect(await hasFile(first)).to.equal(false)
  }).timeout(120_000)
})
