import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { epochOfRun } from '../../shared/kernel/ids.ts'
import { callApi, initOf, openStream } from '../support/api-client.ts'
import { Child } from '../support/child.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import type { EventStream, Frame } from '../support/event-stream.ts'
import { type Answer, type ModelServer, type Received, startModelServer } from '../support/model-server/model-server.ts'
import { useMongo } from '../support/mongo.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const STANDALONE = new URL('../../services/standalone/main.ts', import.meta.url).pathname
const HOLD = { hold: new Promise(() => {}) }

describe('runs after the death of their processes', () => {
  const mongo = useMongo()
  let model: ModelServer
  let site: Server
  const folder = useTempFolder()
  /** Whether the processes have died: a model or page that kept its caller waiting answers from then on. */
  let hasDied = false
  const waiting: ServerResponse[] = []
  before(async () => {
    model = await startModelServer()
    model.otherwise(answer)
    site = createServer((_req, res) => void (hasDied ? res.end('the page') : waiting.push(res))).listen(0, '127.0.0.1')
  })
  beforeEach(() => {
    hasDied = false
    model.requests.length = 0
  })
  after(async () => {
    for (const res of waiting) res.destroy()
    site.closeAllConnections()
    await new Promise((resolve) => site.close(resolve))
    await model.close()
  })

  const PAGE = () => `http://127.0.0.1:${(site.address() as AddressInfo).port}/`
  /** Goes on until its worker is dead. */
  const WORK = 'echo begun >> effect.txt; while [ -d /proc/$PPID ]; do sleep 0.1; done'
  const task = (name: string) => ({ description: name, prompt: name })
  /** What the model answers to a prompt: to the first request, and with the results of its calls. */
  const SCRIPTS: Record<string, (results: readonly string[]) => Answer> = {
    text: () => (hasDied ? 'whole' : [{ text: 'par' }, { text: 'tial' }, HOLD]),
    slow: () => (hasDied ? 'slow answer' : [{ text: 's' }, HOLD]),
    held: () => [{ text: 'h' }, HOLD],
    read: ([page]) => page ?? [{ tool: 'WebFetch', input: { url: PAGE() } }],
    effect: ([done, seen]) =>
      seen ?? [done ? { tool: 'Read', input: { path: 'effect.txt' } } : { tool: 'Bash', input: { command: WORK } }],
    ask: ([written]) => written ?? [{ tool: 'Write', input: { path: 'a.txt', content: 'x' } }],
    calls: (outputs) => (outputs.length > 0 ? outputs.join(' and ') : ['o1', 'o2'].map((id) => ({ tool: 'own', id }))),
    told: () => [{ text: 't' }, HOLD],
    team: ([reports]) => reports ?? [{ tool: 'Team', input: { agents: [task('quick'), task('slow')] } }],
  }
  const ofRole = (body: Received['body'], role: string) =>
    (body['messages'] as { role: string; content: unknown }[]).filter((message) => message.role === role)
  const promptOf = ({ body }: Received) => String(ofRole(body, 'user').at(-1)?.content)
  function answer(request: Received): Answer {
    const { body } = request
    const messages = body['messages'] as { role: string; content: unknown }[]
    const begin = messages.findLastIndex(({ role }) => role === 'user')
    const results = messages.slice(begin).flatMap(({ role, content }) => (role === 'tool' ? [String(content)] : []))
    return SCRIPTS[promptOf(request)]?.(results) ?? `answer to ${promptOf(request)}`
  }
  const asked = (prompt: string) => model.requests.filter((request) => promptOf(request) === prompt).length

  const env = () => ({
    MODEL: 'test-model',
    MODEL_PROVIDER: 'openai-compatible',
    MODEL_BASE_URL: model.url,
    RATE_LIMIT_RPM: '0',
    DRAIN_SECS: '0',
    DURABILITY: 'runs',
    ENABLE_BASH: 'true',
    ALLOW_PRIVATE_URLS: 'true',
    TOOL_PERMISSIONS: '{"Bash":"allow","WebFetch":"allow"}',
  })
  const create = async (url: string) =>
    ((await callApi(`${url}/sessions`, initOf('POST', {}))).body as { session_id: string }).session_id
  const open = (url: string, id: string, prompt: string) =>
    openStream(`${url}/sessions/${id}/messages`, initOf('POST', { prompt, client_tools: [{ name: 'own' }] }))
  const answerCall = async (url: string, runId: string, id: string, output: string) =>
    (await callApi(`${url}/runs/${runId}/tool-calls/${id}`, initOf('POST', { output }))).status
  const follow = async (url: string, runId: string, after: number): Promise<EventStream> => {
    const init = initOf('GET', undefined, { 'last-event-id': String(after) })
    const opening = async () => openStream(`${url}/runs/${runId}/events`, init).catch(() => undefined)
    return until(opening, { what: 'the run to be found', everyMs: 200 })
  }
  const runOf = async (url: string, runId: string) =>
    (await callApi(`${url}/runs/${runId}`, initOf('GET'))).body as Record<string, unknown>
  const reply = async (url: string, id: string, requestId: unknown) =>
    (await callApi(`${url}/sessions/${id}/permissions/${requestId}`, initOf('POST', { allow: true }))).status
  const eventsOf = (frames: readonly Frame[]) => frames.map(({ event }) => event).join(' ')
  const results = ({ frames }: EventStream) =>
    frames.filter(({ event }) => event === 'tool_result').map(({ data }) => String(data['output']))
  const texts = ({ frames }: Pick<EventStream, 'frames'>) =>
    frames.filter(({ event }) => event === 'text').map(({ data }) => data['text'])
  const expectRecovered = ({ frames }: EventStream, turn: number) => {
    const [warning, ...others] = frames.filter(({ data }) => data['code'] === 'run_recovered')
    expect(warning?.data['detail']).to.include({ turn_number: turn })
    expect([others, frames.at(-1)?.event]).to.deep.equal([[], 'done'])
    const numbers = frames.map(({ id }) => id)
    expect(numbers).to.deep.equal([...new Set(numbers)].toSorted((a, b) => a - b))
  }

  describe('in a cluster', () => {
    let cluster: Cluster
    let started: Cluster['workers'][number] | undefined
    before(async () => {
      const settings = { ...mongo.env, ...env(), WORKSPACE_DIR: folder.path }
      cluster = await startCluster(settings, { executor: 0 })
    })
    after(() => cluster.close())
    const workerOf = (runId: string) =>
      cluster.workers.find(({ output }) => output.includes(`wk_${epochOfRun(runId)}"`))
    /** Sends a message to a new session that this worker has. */
    async function openAt(worker: Cluster['workers'][number] | undefined, url: string, prompt: string) {
      for (;;) {
        const id = await create(url)
        const stream = await open(url, id, prompt)
        if (workerOf(stream.runId) === worker) return { id, stream }
        await callApi(`${url}/sessions/${id}`, initOf('DELETE'))
        await stream.all()
      }
    }
    /** A session that has the same worker as the run. */
    async function createBeside(url: string, runId?: string): Promise<string> {
      for (;;) {
        const id = await create(url)
        const first = await open(url, id, 'hello')
        await first.all()
        if (runId === undefined || epochOfRun(first.runId) === epochOfRun(runId)) return id
      }
    }

    it('D32.7a, D45.4b, D49.6: kill -9 of a worker is a pause: texts, tools, permissions, calls of the client, steered texts, sub-agents and messages that wait go on at another one', async () => {
      const [url = '', other = ''] = cluster.urls
      const textId = await createBeside(url)
      const text = await open(url, textId, 'text')
      const begin = async (prompt: string) => {
        const id = await createBeside(url, text.runId)
        return { id, stream: await open(url, id, prompt) }
      }
      const team = await begin('team')
      await team.stream.until('subagent_end')
      const effect = await begin('effect')
      await effect.stream.until('tool_use')
      const ask = await begin('ask')
      const asking = await ask.stream.until('permission_request')
      const meanwhile = await begin('ask')
      const decided = await meanwhile.stream.until('permission_request')
      const read = await begin('read')
      await read.stream.until('tool_use')
      const { body: accepted } = await callApi(
        `${url}/sessions/${await createBeside(url, text.runId)}/messages`,
        initOf('POST', { prompt: 'slow', background: true }),
      )
      const background = (accepted as { run_id: string }).run_id
      const queued = await open(url, textId, 'queued')
      const held = await begin('held')
      await held.stream.until('text_delta')
      await text.until('text_delta')
      await text.until('text_delta')
      const moving = await open(other, await createBeside(url, text.runId), 'text')
      const seen = await moving.until('text_delta')
      moving.leave()
      await until(() => waiting.length > 0, { what: 'the page to be fetched' })
      await until(() => asked('slow') > 1, { what: 'the background run to begin' })
      const calls = await begin('calls')
      for (const id of ['o1', 'o2']) expect((await calls.stream.until('tool_use')).data).to.include({ id })
      const told = await begin('told')
      await told.stream.until('text_delta')
      const steer = `${url}/runs/${told.stream.runId}/steer`

      hasDied = true
      expect((await callApi(steer, initOf('POST', { prompt: 'more' }))).status).to.equal(202)
      expect(await answerCall(url, calls.stream.runId, 'o1', 'first')).to.equal(200)
      await workerOf(text.runId)?.kill('SIGKILL')
      // Until the worker is known to be dead the answer is 503.
      const inPause = (path: string, method: string) =>
        until(
          async () => {
            const { status, body } = await callApi(`${other}${path}`, initOf(method))
            return status === 503 ? undefined : body
          },
          { what: `${method} ${path} to be answered` },
        )
      const { runId } = held.stream
      const paused = (await inPause(`/runs/${runId}`, 'GET')) as Record<string, unknown>
      expect([paused['run_id'], paused['ended_at']]).to.deep.equal([runId, null])
      expect(await inPause(`/runs/${runId}`, 'DELETE')).to.deep.equal({ status: 'cancelled' })
      expect((await held.stream.all()).at(-1)?.data).to.include({ code: 'cancelled' })
      expect(await runOf(url, runId)).to.include({ status: 'cancelled' })
      expect(await reply(other, meanwhile.id, decided.data['id'])).to.equal(200)
      const { body: pending } = await callApi(`${other}/tool-calls`, initOf('GET'))
      expect(
        (pending as { tool_calls: { tool_use_id: string }[] }).tool_calls.map((each) => each.tool_use_id),
      ).to.deep.equal(['o2'])
      expect(await answerCall(other, calls.stream.runId, 'o1', 'again')).to.equal(409)
      expect(await answerCall(other, calls.stream.runId, 'o2', 'second')).to.equal(200)

      await text.until('warning')
      await text.all()
      expectRecovered(text, 1)
      expect(texts(text)).to.deep.equal(['whole'])
      expect(eventsOf(text.frames)).to.match(/^turn_start text_delta text_delta warning turn_start text_delta text /)
      expect(texts({ frames: await queued.all() })).to.deep.equal(['answer to queued'])

      const moved = await follow(url, moving.runId, seen.id)
      await moved.all()
      expectRecovered(moved, 1)
      expect(moved.frames[0]?.data['code']).to.equal('run_recovered')

      await read.stream.all()
      expectRecovered(read.stream, 1)
      expect(results(read.stream)).to.have.length(1)
      expect(texts(read.stream)[0]).to.include('the page')

      await effect.stream.all()
      expectRecovered(effect.stream, 1)
      expect(results(effect.stream)[0]).to.match(/Bash was interrupted.*may have run/)
      expect(texts(effect.stream)[0])
        .to.include('begun')
        .and.not.match(/begun[^]*begun/)

      await ask.stream.until('permission_request')
      const isListed = async () => {
        const { body } = await callApi(`${other}/permissions`, initOf('GET'))
        return (body as { permissions: { id: string }[] }).permissions.some(({ id }) => id === asking.data['id'])
      }
      await until(isListed, { what: 'the permission request to be listed' })
      expect(await reply(other, ask.id, asking.data['id'])).to.equal(200)
      for (const { stream } of [ask, meanwhile]) {
        await stream.all()
        expectRecovered(stream, 1)
        const [first, again] = stream.frames.filter(({ event }) => event === 'permission_request')
        expect(again?.data).to.deep.equal(first?.data)
        expect(results(stream)[0]).to.include('a.txt')
      }

      await calls.stream.all()
      expectRecovered(calls.stream, 1)
      expect(new Set(results(calls.stream)), 'the first may have come before, in the void turn').to.deep.equal(
        new Set(['first', 'second']),
      )
      expect(texts(calls.stream)).to.deep.equal(['first and second'])
      await told.stream.all()
      expectRecovered(told.stream, 1)
      expect(told.stream.frames.filter(({ event }) => event === 'steered')).to.have.length(1)
      expect(texts(told.stream)).to.deep.equal(['answer to told\n\nmore'])

      await team.stream.all()
      expectRecovered(team.stream, 1)
      expect(results(team.stream)[0]).to.include('answer to quick').and.to.include('slow answer')
      expect(asked('quick')).to.equal(1)

      const isDone = async () => (await runOf(url, background))['status'] === 'done'
      await until(isDone, { what: 'the background run to end' })
      const replayed = await follow(other, text.runId, 0)
      expect(texts({ frames: await replayed.all() })).to.deep.equal(['whole'])
      const { body } = await callApi(`${url}/sessions/${textId}/messages`, initOf('GET'))
      expect((body as { messages: { role: string }[] }).messages.map(({ role }) => role).join(' ')).to.equal(
        'user assistant user assistant user assistant',
      )
    })

    it('D32.5: a worker that was only frozen has no effect when it continues, and leaves the requests of its runs open', async () => {
      const [url = ''] = cluster.urls
      started = await cluster.startWorker()
      const frozen = cluster.workers.find(({ isRunning }) => isRunning)
      const begin = (prompt: string) => openAt(frozen, url, prompt)
      const [text, ask] = [await begin('text'), await begin('ask')]
      await text.stream.until('text_delta')
      const asking = await ask.stream.until('permission_request')
      hasDied = true
      process.kill(frozen?.pid ?? 0, 'SIGSTOP')
      for (const { stream } of [text, ask]) await stream.until('warning')
      process.kill(frozen?.pid ?? 0, 'SIGCONT')
      await frozen?.line(/it rejoins under a new epoch/, 10_000)
      expect((await text.stream.all()).at(-1)?.event).to.equal('done')
      expect(await reply(url, ask.id, asking.data['id'])).to.equal(200)
      expect((await ask.stream.all()).at(-1)?.event).to.equal('done')
      expect(results(ask.stream)[0]).to.include('a.txt')
    })

    it('D32.7a: when worker and gateway die, a client that comes back to another gateway goes on with its run', async () => {
      const [dying = '', url = ''] = cluster.urls
      const stream = await open(dying, await create(dying), 'text')
      const isAtStarted = started?.output.includes(`wk_${epochOfRun(stream.runId)}"`)
      const worker = isAtStarted ? started : cluster.workers.find(({ isRunning }) => isRunning)
      const seen = await stream.until('text_delta')
      hasDied = true
      await Promise.all([worker?.kill('SIGKILL'), cluster.gateways[0]?.kill('SIGKILL')])
      const again = await follow(url, stream.runId, seen.id)
      await again.all()
      expectRecovered(again, 1)
      expect(texts(again)).to.deep.equal(['whole'])
    })
  })

  describe('in the standalone form', () => {
    let server: Child | undefined
    /** Of the process that a test has left running. */
    let url: string | undefined
    after(() => server?.end('SIGKILL'))
    /** Starts the process that has the folder next, and resolves with its address. */
    async function start(): Promise<string> {
      const places = { DATA_DIR: join(folder.path, 'data'), PORT: '0', OPS_PORT: '0', DRAIN_SECS: '60' }
      server = new Child(process.execPath, [STANDALONE], { ...env(), ...places })
      return (JSON.parse(await server.line(/"listening"/)) as { url: string }).url
    }

    it('D32.7a, D32.7c: kill -9 of the process: after its next start the runs go on, one-shot ones, too', async () => {
      const before = await start()
      const [id, asking] = [await create(before), await create(before)]
      const stream = await open(before, id, 'text')
      const seen = await stream.until('text_delta')
      const oneShot = await openStream(`${before}/agent/run`, initOf('POST', { prompt: 'text' }))
      const seenOfOneShot = await oneShot.until('text_delta')
      const ask = await open(before, asking, 'ask')
      const request = await ask.until('permission_request')
      const queued = await open(before, id, 'queued')
      hasDied = true
      await server?.end('SIGKILL')
      url = await start()
      expect(await reply(url, asking, request.data['id'])).to.equal(200)
      for (const [{ runId }, last] of [
        [stream, seen.id],
        [oneShot, seenOfOneShot.id],
      ] as const) {
        const again = await follow(url, runId, last)
        await again.all()
        expectRecovered(again, 1)
        expect(texts(again)).to.deep.equal(['whole'])
      }
      const { body } = await callApi(`${url}/sessions`, initOf('GET'))
      expect((body as { sessions: object[] }).sessions).to.have.length(2)
      const after = await follow(url, queued.runId, 0)
      expect(texts({ frames: await after.all() })).to.deep.equal(['answer to queued'])
      const allowed = await follow(url, ask.runId, request.id)
      await allowed.all()
      expectRecovered(allowed, 1)
      expect(results(allowed)[0]).to.include('a.txt')
    })

    it('D37.4: SIGTERM of the process leaves what waits for a person to its next start, and ends at once', async () => {
      const before = url ?? (await start())
      const id = await create(before)
      const ask = await open(before, id, 'ask')
      const request = await ask.until('permission_request')
      const queued = await open(before, id, 'queued')
      expect(await server?.end('SIGTERM')).to.equal(0)
      url = await start()
      expect(await reply(url, id, request.data['id'])).to.equal(200)
      const allowed = await follow(url, ask.runId, request.id)
      await allowed.all()
      expectRecovered(allowed, 1)
      const warning = allowed.frames.find(({ data }) => data['code'] === 'run_recovered')
      expect(warning?.data['detail']).to.include({ reason: 'drained' })
      expect(results(allowed)[0]).to.include('a.txt')
      const after = await follow(url, queued.runId, 0)
      expect(texts({ frames: await after.all() })).to.deep.equal(['answer to queued'])
    })
  })
})
