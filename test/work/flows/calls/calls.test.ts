// Tests calls.ts and start-execution.ts: the calls of flows, with a history in memory and streams that a test feeds.

import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { expect } from 'chai'
import type { FrameStream } from '../../../../shared/cluster/journal/frame-stream.ts'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { AppError, notFound } from '../../../../shared/kernel/errors.ts'
import type { FlowAnswer, FlowEvent } from '../../../../shared/kernel/events.ts'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import type { SchemaChecker } from '../../../../shared/platform/schemas/port.ts'
import { NO_ADMISSION } from '../../../../shared/tenancy/limits/admission.ts'
import { EMPTY_CONFIG } from '../../../../shared/tenancy/tenant-config/config.ts'
import { FlowCalls, type FlowCallsDeps } from '../../../../shared/work/flows/calls/calls.ts'
import type { Dispatches, Flow } from '../../../../shared/work/flows/port.ts'
import type { WaitingFlow } from '../../../../shared/work/flows/transitions.ts'
import type { Job } from '../../../../shared/work/queue/port.ts'
import { FAILED, OK, OUTPUT } from '../../../contract/dispatch-setup.ts'
import { NO_FILES } from '../../../support/no-files.ts'
import { until } from '../../../support/until.ts'
import { useHistory } from '../history-setup.ts'
import { FedStream } from './fed-stream.ts'

const EPOCH = 7
const FLOW: Flow = {
  name: 'summarize',
  uid: 'flow_1',
  version: 3,
  state: 'published',
  definition: { input_schema: {}, output_schema: { title: 'output' }, tools: [], sub_agents: [], evolve: false },
  created_at: '',
  updated_at: '',
  published_version: 3,
  is_built_in: false,
}
const CONFIG = {
  ...EMPTY_CONFIG,
  instances: [{ name: 'fast', type: 'openai' as const, revision: 'rev_1', created_at: '', updated_at: '' }],
}
const CALL = {
  request: { input: { text: 'a' }, provider_instance: 'openai', model: 'm' },
  subject: 'anna',
  idempotencyKey: undefined,
}
const CHECKER: SchemaChecker = { check: async () => [], findUnusable: async () => [] }
const checkersWith = (checker: SchemaChecker) => ({ of: () => checker, close: async () => {} })
const RESULT: FlowAnswer = {
  flow_id: 'summarize',
  flow_version: 3,
  trace_id: '',
  verdict: 'ok',
  output: { text: 'a line\n\nevent: result\ndata: {}\n\n' },
  served_instance: 'fast',
}
const started = (traceId: string): FlowEvent => ({
  type: 'started',
  trace_id: traceId,
  flow_id: 'summarize',
  flow_version: 3,
  provider_instance: 'fast',
  model: 'm',
  at: 'now',
})
const NEVER = new AbortController().signal

describe('the calls of flows', () => {
  const history = useHistory()

  function createCalls(changes: Partial<FlowCallsDeps> = {}) {
    const queued: Job[] = []
    const streams: FedStream[] = []
    const calls = new FlowCalls({
      library: { published: async () => FLOW, definitionOf: async () => FLOW.definition },
      compile: async () => ({ templates: { subAgents: new Map() }, usesMemory: true }),
      checkers: checkersWith(CHECKER),
      files: NO_FILES,
      dispatches: history.dispatches,
      idempotency: { reserve: refuse, replace: refuse, release: refuse },
      configs: { get: async () => CONFIG },
      queue: { add: async (job) => void queued.push(job), remove: async () => {} },
      broker: {
        async followRun(): Promise<FrameStream> {
          const stream = new FedStream()
          streams.push(stream)
          return stream
        },
      },
      replay: refuse,
      admission: NO_ADMISSION,
      executors: { hasAny: () => true, isAlive: async (epoch) => epoch === EPOCH },
      keepsHistory: true,
      now: history.now,
      ...changes,
    })
    return { calls, queued, streams }
  }

  const refuse = async (): Promise<never> => {
    throw new Error('this test does not need it')
  }

  /** The places of admitted runs. */
  function createPlaces() {
    const held = new Set<string>()
    const admission: FlowCallsDeps['admission'] = {
      admit: async ({ runId }) => void held.add(runId),
      release: ({ runId }) => void held.delete(runId),
      isWaiting: async () => false,
    }
    return { admission, held }
  }

  const withoutReads = (): Dispatches => ({
    create: async () => {},
    get: refuse,
    input: refuse,
    output: refuse,
    begin: refuse,
    takeOver: refuse,
    noteAction: refuse,
    end: refuse,
  })
  const read = (traceId: string) => history.dispatches.get(TENANT, traceId)
  const errorOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (cause: unknown) => cause as AppError,
    )

  /** An executor that runs the dispatch and ends its stream. */
  async function execute(traceId: string, stream: FedStream | undefined, result = OK): Promise<void> {
    await history.dispatches.begin(TENANT, traceId, EPOCH)
    await history.dispatches.end(TENANT, traceId, { executor: EPOCH, result, output: OUTPUT })
    stream?.end()
  }

  it('a job names who waits for its run, and whether that needs the end alone', async () => {
    const broker = { followRun: async () => new FedStream(), expectRun: () => ({ gateway: 5, stream: 2 }) }
    const { calls, queued } = createCalls({ broker })
    for (const readsEnd of [true, false]) await calls.start(TENANT, 'summarize', { ...CALL, readsEnd })
    expect(queued.map(({ reader }) => reader)).to.deep.equal([
      { gateway: 5, stream: 2, readsEnd: true },
      { gateway: 5, stream: 2, readsEnd: false },
    ])
  })

  it('store the dispatch with the names of its instances, queue ids only, and answer when it has ended', async () => {
    const { calls, queued, streams } = createCalls()
    const { traceId, isReplayed, answer } = await calls.start(TENANT, 'summarize', CALL)
    expect(isReplayed).to.equal(false)
    expect(queued).to.deep.equal([{ kind: 'flow', tenant: TENANT, id: traceId }])
    expect(await read(traceId)).to.deep.include({
      status: 'queued',
      provider_instance: 'fast',
      model: 'm',
      subject: 'anna',
    })
    const answered = answer(NEVER)
    await history.dispatches.input(TENANT, traceId) // The stream is open after this.
    await execute(traceId, streams[0])
    expect(await answered).to.deep.equal({
      flow_id: 'summarize',
      flow_version: 3,
      trace_id: traceId,
      verdict: 'ok',
      output: OUTPUT.output,
      served_instance: 'main',
    })
  })

  it('are kept no longer than the work needs where the server keeps no history', async () => {
    const audit = { store_payloads: true, retention_days: 90 }
    const configs = { get: async () => ({ ...CONFIG, audit }) }
    const keptFor = async (keepsHistory: boolean) => {
      const { traceId } = await createCalls({ configs, keepsHistory }).calls.start(TENANT, 'summarize', CALL)
      const dispatch = await read(traceId)
      const days = (Date.parse(dispatch?.expires_at ?? '') - history.now().getTime()) / 86_400_000
      return [dispatch?.keeps_payloads, Math.round(days)]
    }
    expect(await keptFor(true)).to.deep.equal([true, 90])
    expect(await keptFor(false)).to.deep.equal([false, 1])
  })

  it('throw the failure of the execution, with its status and trace id', async () => {
    const { calls, streams } = createCalls()
    const { traceId, answer } = await calls.start(TENANT, 'summarize', CALL)
    const failed = errorOf(answer(NEVER))
    await history.dispatches.input(TENANT, traceId)
    await execute(traceId, streams[0], FAILED)
    expect(await failed).to.include({ status: 502, kind: 'upstream', traceId, message: 'the main agent failed' })
  })

  it('check the output once more before they answer', async () => {
    const checker = {
      check: async (schema: object) => ('title' in schema ? [{ path: '', message: 'wrong' }] : []),
      findUnusable: async () => [],
    }
    const { calls, streams } = createCalls({ checkers: checkersWith(checker) })
    const { traceId, answer } = await calls.start(TENANT, 'summarize', CALL)
    const answered = answer(NEVER)
    await history.dispatches.input(TENANT, traceId)
    await execute(traceId, streams[0])
    expect(await answered).to.deep.include({ verdict: 'invalid_output', output: null })
  })

  it('answer with the result that the execution sends, and read no record for it, but check the output all the same', async () => {
    const dispatches = { ...withoutReads(), create: history.dispatches.create.bind(history.dispatches) }
    const wrong = { check: async (schema: object) => ('title' in schema ? [{ path: '', message: 'wrong' }] : []) }
    for (const checker of [{}, wrong]) {
      const { calls, streams } = createCalls({ dispatches, checkers: checkersWith({ ...CHECKER, ...checker }) })
      const { traceId, answer } = await calls.start(TENANT, 'summarize', CALL)
      const sent = { ...RESULT, trace_id: traceId }
      const answered = answer(NEVER)
      await nextLoopTurn()
      const frames = [renderFrame(1, started(traceId)), renderFrame(2, { type: 'result', ...sent, at: 'now' })].join('')
      streams[0]?.push({ text: Buffer.from(frames), lastSeq: 2 })
      streams[0]?.end()
      const isWrong = 'check' in checker
      const refused = { verdict: 'invalid_output', output: null, problems: [{ path: '', message: 'wrong' }] }
      expect(await answered).to.deep.equal(isWrong ? { ...sent, ...refused } : sent)
    }
  })

  it('answer 503 when the record of the execution was lost before it began', async () => {
    const { calls, streams } = createCalls({ dispatches: { ...withoutReads(), get: async () => undefined } })
    const { answer } = await calls.start(TENANT, 'summarize', CALL)
    const failed = errorOf(answer(NEVER))
    await nextLoopTurn()
    streams[0]?.end()
    expect(await failed).to.include({ status: 503, kind: 'unavailable' })
  })

  it('answer a reader of the stream with 503, too, when the record was lost', async () => {
    const followRun = async (): Promise<never> => {
      throw notFound('no run')
    }
    const dispatches = { ...withoutReads(), get: async () => undefined }
    const { calls } = createCalls({ dispatches, broker: { followRun }, replay: followRun })
    const { frames } = await calls.start(TENANT, 'summarize', CALL)
    expect(await errorOf(frames())).to.include({ status: 503, kind: 'unavailable' })
  })

  it('record a refusal as rejected, queue nothing, and name the execution', async () => {
    const { calls, queued } = createCalls()
    const call = { ...CALL, request: { ...CALL.request, provider_instance: 'nobody' } }
    const refusal = await errorOf(calls.start(TENANT, 'summarize', call))
    expect(refusal).to.include({ status: 400, param: '/provider_instance' })
    expect(queued).to.deep.equal([])
    expect(await read(refusal?.traceId ?? '')).to.deep.include({
      status: 'rejected',
      provider_instance: 'nobody',
      duration_ms: 0,
    })
  })

  it('record nothing for a flow that is not published', async () => {
    const published = async () => {
      throw notFound('no flow')
    }
    const { calls } = createCalls({ library: { published, definitionOf: async () => undefined } })
    const refusal = await errorOf(calls.start(TENANT, 'other', CALL))
    expect(refusal).to.include({ status: 404, traceId: undefined })
  })

  it('refuse with 503 when no executor takes work', async () => {
    const { calls, queued } = createCalls({ executors: { hasAny: () => false, isAlive: async () => false } })
    expect(await errorOf(calls.start(TENANT, 'summarize', CALL))).to.include({ status: 503 })
    expect(queued).to.deep.equal([])
  })

  it('D54.5: a second request with the key of a start that waits says so, and waits with it until its client leaves', async () => {
    const asked: string[] = []
    const isWaiting = async (_tenant: unknown, runId: string) => {
      asked.push(runId)
      if (asked.length > 1) throw new AppError('unavailable', 'Redis is away')
      return true
    }
    const traceId = `trace_${'1'.repeat(32)}`
    const { calls } = createCalls({
      admission: { ...NO_ADMISSION, isWaiting },
      idempotency: { reserve: async () => ({ state: 'taken', id: traceId }), replace: refuse, release: refuse },
    })
    const [client, told] = [new AbortController(), Promise.withResolvers<WaitingFlow>()]
    const request = { ...CALL.request, wait_secs: 60 }
    const call = { ...CALL, request, idempotencyKey: 'k', left: client.signal, onWait: told.resolve }
    const starting = errorOf(calls.start(TENANT, 'summarize', call))
    expect(await told.promise).to.deep.equal({ traceId, wait: { standing: undefined } })
    await until(() => asked.length > 1, { what: 'it to look again' })
    client.abort()
    expect(await starting).to.include({ kind: 'unavailable' })
    expect(new Set(asked)).to.deep.equal(new Set([`run_${'1'.repeat(32)}`]))
  })

  for (const [how, turn, expected] of [
    ['is late', 'late', { kind: 'rate_limit', code: 'no_room', retryAfterSecs: 9 }],
    ['has left', undefined, { kind: 'unavailable' }],
    ['has its turn', 'placed', undefined],
  ] as const)
    it(`D54.5: store nothing of a start that waits before it ${how}`, async () => {
      const { admission, held } = createPlaces()
      const [waits, asked] = [Promise.withResolvers<'placed' | 'late'>(), Promise.withResolvers<void>()]
      const wait = { turn: waits.promise, standing: undefined, retryAfterSecs: 9, leave: () => {} }
      const admit: FlowCallsDeps['admission']['admit'] = async ({ waitSecs, priority, runId }) => {
        held.add(runId)
        asked.resolve()
        expect([waitSecs, priority]).to.deep.equal([60, 'batch'])
        return wait
      }
      const { calls, queued } = createCalls({ admission: { ...admission, admit } })
      const client = new AbortController()
      const request = { ...CALL.request, wait_secs: 60, priority: 'batch' as const }
      const told: WaitingFlow[] = []
      const onWait = (waiting: WaitingFlow) => void told.push(waiting)
      const starting = calls.start(TENANT, 'summarize', { ...CALL, request, left: client.signal, onWait })
      await asked.promise
      await until(() => told[0]?.wait === wait, { what: 'the start to be told of' })
      expect(queued).to.deep.equal([])
      if (turn) waits.resolve(turn)
      else client.abort()
      const refusal = await errorOf(starting)
      if (expected) expect(refusal).to.include(expected)
      else expect(refusal).to.equal(undefined)
      expect(queued.length).to.equal(expected ? 0 : 1)
      expect((await read(told[0]?.traceId ?? ''))?.priority, 'that of its model calls').to.equal('batch')
      expect(held.size, 'its place is given back when its client has left').to.equal(turn ? 1 : 0)
    })

  it('end the dispatch when it cannot be queued, and give its place among the runs of its tenant back', async () => {
    const { admission, held } = createPlaces()
    const add = async () => {
      expect(held.size).to.equal(1)
      throw new AppError('unavailable', 'the queue is away')
    }
    const { calls } = createCalls({ admission, queue: { add, remove: async () => {} } })
    const refusal = await errorOf(calls.start(TENANT, 'summarize', CALL))
    expect(refusal).to.include({ status: 503, message: 'the queue is away' })
    expect(await read(refusal?.traceId ?? '')).to.deep.include({ status: 'rejected' })
    expect([...held]).to.deep.equal([])
  })

  it('D36.1: say again to a store that did not answer that an execution was not queued, whose job the queue may still have', async () => {
    let ends = 0
    const end: Dispatches['end'] = async (...args) => {
      if (ends++ === 0) throw new AppError('unavailable', 'the store is away')
      return history.dispatches.end(...args)
    }
    const { dispatches } = history
    const stored: string[] = []
    const create: Dispatches['create'] = async (...args) => {
      stored.push(args[1].trace_id)
      return dispatches.create(...args)
    }
    const { calls } = createCalls({
      dispatches: { ...withoutReads(), create, end },
      queue: { add: async () => Promise.reject(new AppError('unavailable', 'no answer')), remove: async () => {} },
    })
    expect(await errorOf(calls.start(TENANT, 'summarize', CALL))).to.include({ status: 503 })
    await until(() => ends === 2, { what: 'the second try' })
    expect(await dispatches.begin(TENANT, stored[0] ?? '', EPOCH)).to.equal(undefined)
  })

  it('D36.5: take the id of an execution that the store did not answer for before its key is free, so that it never begins', async () => {
    const released: string[] = []
    const idempotency: FlowCallsDeps['idempotency'] = {
      reserve: async () => ({ state: 'reserved' }),
      replace: refuse,
      release: async (_tenant, { id }) => released.push(id) > 0,
    }
    let late: Parameters<Dispatches['create']> | undefined
    const create: Dispatches['create'] = async (...args) => {
      if (late) return history.dispatches.create(...args)
      late = args
      throw new AppError('unavailable', 'the store did not answer')
    }
    const { dispatches } = history
    const { calls } = createCalls({
      idempotency,
      dispatches: { ...withoutReads(), create, get: (...args) => dispatches.get(...args) },
    })
    const refusal = await errorOf(calls.start(TENANT, 'summarize', { ...CALL, idempotencyKey: 'k' }))
    expect(refusal).to.include({ status: 503, message: 'the store did not answer' })
    const traceId = late?.[1].trace_id ?? ''
    expect([released, (await read(traceId))?.status]).to.deep.equal([[traceId], 'rejected'])
    const carriedOut = errorOf(dispatches.create(...(late as Parameters<Dispatches['create']>)))
    expect(await carriedOut).to.include({ status: 503 })
    expect(await dispatches.begin(TENANT, traceId, EPOCH)).to.equal(undefined)
  })

  it('give the place of a dispatch back that cannot be stored', async () => {
    const { admission, held } = createPlaces()
    const create = async () => {
      expect(held.size).to.equal(1)
      throw new AppError('unavailable', 'the store is away')
    }
    const { calls } = createCalls({ admission, dispatches: { ...withoutReads(), create } })
    expect(await errorOf(calls.start(TENANT, 'summarize', CALL))).to.include({ status: 503 })
    expect([...held]).to.deep.equal([])
  })

  it('go on when only the answer of the queue was lost: an executor has begun the job', async () => {
    const add = async ({ id }: Job) => {
      await execute(id, undefined)
      throw new AppError('unavailable', 'the queue is away')
    }
    const broker = { followRun: () => Promise.reject(new AppError('unavailable', 'the relay is away')) }
    const { admission, held } = createPlaces()
    const { calls } = createCalls({ admission, broker, queue: { add, remove: async () => {} } })
    const { answer } = await calls.start(TENANT, 'summarize', CALL)
    expect(await answer(NEVER)).to.deep.include({ verdict: 'ok' })
    expect(held.size, 'the place that the executor holds').to.equal(1)
  })

  it('give the events of an execution whose executor does not answer for a while', async () => {
    const stream = new FedStream()
    let tries = 0
    const followRun = async () => {
      if (++tries < 3) throw new AppError('unavailable', 'the worker does not answer')
      return stream
    }
    const { calls } = createCalls({ broker: { followRun } })
    const { frames } = await calls.start(TENANT, 'summarize', CALL)
    stream.end()
    const reader = (await frames())[Symbol.asyncIterator]()
    expect((await reader.next()).done).to.equal(true)
    expect(tries).to.equal(3)
  })

  it('answer 503, and not 404, when the execution goes on and is not found for too long', async () => {
    const followRun = async (): Promise<never> => {
      throw notFound('no run')
    }
    const { calls } = createCalls({ broker: { followRun }, followWithinMs: 0 })
    const { traceId, frames } = await calls.start(TENANT, 'summarize', CALL)
    await history.dispatches.begin(TENANT, traceId, EPOCH)
    expect(await errorOf(frames())).to.include({ kind: 'unavailable', code: 'relay_unavailable', traceId })
  })

  it('give the stored events of an execution that ended while its executor did not answer', async () => {
    const followRun = async () => {
      throw new AppError('unavailable', 'the worker does not answer')
    }
    const stored = new FedStream()
    const { calls } = createCalls({ broker: { followRun }, replay: async () => stored })
    const { traceId, frames } = await calls.start(TENANT, 'summarize', CALL)
    await execute(traceId, undefined)
    expect(await frames()).to.equal(stored)
  })

  it('stop waiting when the client leaves, and detach from the run', async () => {
    const { calls, streams } = createCalls()
    const { traceId, answer } = await calls.start(TENANT, 'summarize', CALL)
    const left = new AbortController()
    const answered = errorOf(answer(left.signal))
    await history.dispatches.input(TENANT, traceId)
    left.abort()
    expect(await answered).to.equal(left.signal.reason)
    expect(streams[0]?.returns).to.be.greaterThan(0)
  })

  it('answer from the record when the run cannot be followed', async () => {
    const broker = {
      followRun: async () => {
        throw new AppError('unavailable', 'the relay is away')
      },
    }
    const { calls } = createCalls({ broker })
    const { traceId, answer } = await calls.start(TENANT, 'summarize', CALL)
    await execute(traceId, undefined)
    expect(await answer(NEVER)).to.deep.include({ verdict: 'ok' })
  })
})
