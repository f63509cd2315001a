import { globSync } from 'node:fs'
import { expect } from 'chai'
import { epochOfRun } from '../../shared/kernel/ids.ts'
import { callApi, initOf, openStream } from '../support/api-client.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import type { EventStream } from '../support/event-stream.ts'
import { type Answer, type Received, useModelServer } from '../support/model-server/model-server.ts'
import { useMongo } from '../support/mongo.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const HOLD = { hold: new Promise(() => {}) }
/** The last line of the message that asks for a corrected answer. */
const CORRECTED = 'Answer again with the whole corrected JSON, and with nothing else.'
const TYPED = {
  response_schema: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
  metadata: { team: 'red' },
}
/** Goes on until its worker is dead. */
const WORK = 'echo begun >> effect.txt; while [ -d /proc/$PPID ]; do sleep 0.1; done'

describe('one-shot runs after the death of their processes', () => {
  const mongo = useMongo()
  const folder = useTempFolder()
  /** Whether the processes have died: a model that kept its caller waiting answers from then on. */
  let hasDied = false
  const model = useModelServer()
  before(async () => {
    model.otherwise(answer)
  })
  beforeEach(() => {
    hasDied = false
  })

  /** What the model answers to a prompt: to the first request, and with the results of its calls. */
  const SCRIPTS: Record<string, (results: readonly string[]) => Answer> = {
    text: () => (hasDied ? 'whole' : [{ text: 'par' }, { text: 'tial' }, HOLD]),
    effect: ([done, seen]) =>
      seen ?? [done ? { tool: 'Read', input: { path: 'effect.txt' } } : { tool: 'Bash', input: { command: WORK } }],
    typed: () => 'no number',
    [CORRECTED]: () => (hasDied ? '{"sum":3}' : [{ text: '{"sum"' }, HOLD]),
    ask: ([written]) => written ?? [{ tool: 'Write', input: { path: 'a.txt', content: 'x' } }],
  }
  function answer({ body }: Received): Answer {
    const messages = body['messages'] as { role: string; content: unknown }[]
    const begin = messages.findLastIndex(({ role }) => role === 'user')
    const results = messages.slice(begin).flatMap(({ role, content }) => (role === 'tool' ? [String(content)] : []))
    const prompt = String(messages[begin]?.content).split('\n').at(-1)
    return SCRIPTS[prompt ?? '']?.(results) ?? `answer to ${prompt}`
  }

  const env = () => ({
    MODEL: 'test-model',
    MODEL_PROVIDER: 'openai-compatible',
    MODEL_BASE_URL: model.url,
    RATE_LIMIT_RPM: '0',
    DRAIN_SECS: '0',
    DURABILITY: 'runs',
    ENABLE_BASH: 'true',
    TOOL_PERMISSIONS: '{"Bash":"allow"}',
  })
  /** A busy machine may refuse a start for its store's sake: it is sent again. */
  const open = (url: string, prompt: string, more: object = {}) =>
    until(
      () =>
        openStream(`${url}/agent/run`, initOf('POST', { prompt, ...more })).catch((cause: unknown) => {
          if (!String(cause).includes('storage_unavailable')) throw cause
          return undefined
        }),
      { what: 'a run to be accepted' },
    )
  const follow = async (url: string, runId: string, after: number): Promise<EventStream> => {
    const init = initOf('GET', undefined, { 'last-event-id': String(after) })
    const opening = async () => openStream(`${url}/runs/${runId}/events`, init).catch(() => undefined)
    return until(opening, { what: 'the run to be found', everyMs: 200 })
  }
  const get = async (url: string) => (await callApi(url, initOf('GET'))).body as Record<string, unknown>
  const reply = async (url: string, runId: string, requestId: unknown) =>
    (await callApi(`${url}/sessions/${runId}/permissions/${requestId}`, initOf('POST', { allow: true }))).status
  const of = ({ frames }: EventStream, type: string, field: string) =>
    frames.filter(({ event }) => event === type).map(({ data }) => data[field])
  /** Those of this cluster. One that the machine has stalled is evicted, too, and its runs move once more. */
  let workers: Cluster['workers'] = []
  const evictions = () => workers.flatMap(({ output }) => output.match(/"msg":"this process was evicted/g) ?? []).length
  const expectRecovered = async ({ frames }: EventStream) => {
    const warnings = frames.filter(({ data }) => data['code'] === 'run_recovered')
    expect(warnings.length).to.be.at.least(1)
    // A worker that is stalled says that it was evicted when it goes on, which may be after the end of its runs elsewhere.
    const isExplained = () => warnings.length <= 1 + evictions()
    await until(isExplained, { what: 'the eviction that moved the run again', lastSeen: () => warnings })
    expect(frames.at(-1)?.event).to.equal('done')
    const numbers = frames.map(({ id }) => id)
    expect(numbers).to.deep.equal([...new Set(numbers)].toSorted((a, b) => a - b))
  }

  describe('in a cluster', () => {
    let cluster: Cluster
    before(async () => {
      const settings = { ...mongo.env, ...env(), WORKSPACE_DIR: folder.path }
      cluster = await startCluster(settings, { gateway: 1, executor: 0 })
      workers = cluster.workers
    })
    after(() => cluster.close())
    const workerOf = (runId: string) =>
      cluster.workers.find(({ output }) => output.includes(`wk_${epochOfRun(runId)}"`))
    /** Starts a run at the worker that has the other one. A customer's runs have the same worker, so that each try has another customer. */
    async function openBeside({ runId }: EventStream, prompt: string, moreOf: (n: number) => object = () => ({})) {
      for (let n = 1; ; n++) {
        const stream = await open(cluster.urls[0] ?? '', prompt, moreOf(n))
        if (epochOfRun(stream.runId) === epochOfRun(runId)) return stream
        await callApi(`${cluster.urls[0]}/runs/${stream.runId}`, initOf('DELETE'))
        await stream.all()
      }
    }

    it('D32.7c: kill -9 of a worker is a pause, also for runs with a customer, a tool, a permission or a typed answer (D41.4)', async () => {
      const [url = ''] = cluster.urls
      const text = await open(url, 'text')
      await text.until('text_delta')
      const line = await openBeside(text, 'text', (n) => ({ customer_id: `c${n}` }))
      await line.until('text_delta')
      const effect = await openBeside(text, 'effect')
      await effect.until('tool_use')
      const ask = await openBeside(text, 'ask')
      const asking = await ask.until('permission_request')
      const typed = await openBeside(text, 'typed', () => TYPED)
      await typed.until('turn_end')
      await typed.until('text_delta')
      const moving = await openBeside(text, 'text')
      const seen = await moving.until('text_delta')
      moving.leave()
      const cancelled = await openBeside(text, 'text')
      await cancelled.until('text_delta')
      hasDied = true
      await workerOf(text.runId)?.kill('SIGKILL')

      for (const stream of [text, line]) {
        await stream.all()
        await expectRecovered(stream)
        expect(of(stream, 'text', 'text')).to.deep.equal(['whole'])
      }
      const summary = await get(`${url}/runs/${line.runId}`)
      expect(summary).to.include({ status: 'done' }).and.not.have.property('session_id')
      expect((await get(`${url}/customers/${summary['customer_id']}/ledger`))['entries']).to.have.length(1)
      await typed.all()
      await expectRecovered(typed)
      expect(typed.frames.at(-1)?.data).to.deep.include({ output: { sum: 3 }, turn_count: 2 })
      expect(await get(`${url}/runs/${typed.runId}`)).to.deep.include({ status: 'done', metadata: TYPED.metadata })
      await effect.all()
      await expectRecovered(effect)
      expect(of(effect, 'tool_result', 'output')[0]).to.match(/Bash was interrupted.*may have run/)
      expect(of(effect, 'text', 'text')[0])
        .to.include('begun')
        .and.not.match(/begun[^]*begun/)
      await ask.until('permission_request')
      expect(await reply(url, ask.runId, asking.data['id'])).to.equal(200)
      await ask.all()
      await expectRecovered(ask)
      const again = await follow(url, moving.runId, seen.id)
      await again.all()
      await expectRecovered(again)
      expect((await get(`${url}/sessions`))['sessions']).to.deep.equal([])
    })

    it('D32.7c: a run in the background that nobody follows goes on at another worker, to its end, and has its effect once', async () => {
      const [url = ''] = cluster.urls
      const fresh = await cluster.startWorker()
      workers = [...workers, fresh]
      const begin = { prompt: 'effect', background: true }
      const { status, body } = await callApi(`${url}/agent/run`, initOf('POST', begin))
      const { run_id: runId } = body as { run_id: string }
      expect(status).to.equal(202)
      const hasBegun = () => globSync(`*/${runId}/effect.txt`, { cwd: folder.path }).length > 0
      await until(hasBegun, { what: 'the tool to begin' })
      const worker = workers.find(({ output }) => output.includes(`wk_${epochOfRun(runId)}"`))
      await worker?.kill('SIGKILL')
      const stream = await follow(url, runId, 0)
      await stream.all()
      await expectRecovered(stream)
      expect(of(stream, 'tool_result', 'output')[0]).to.match(/Bash was interrupted.*may have run/)
      expect(of(stream, 'text', 'text')[0])
        .to.include('begun')
        .and.not.match(/begun[^]*begun/)
      expect(await get(`${url}/runs/${runId}`)).to.include({ run_id: runId, status: 'done' })
    })
  })
})
