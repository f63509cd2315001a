// Tests flow-jobs.ts, flow-ends.ts and flow-preparation.ts.
import { once } from 'node:events'
import { expect } from 'chai'
import { FlowJobs, type FlowJobsDeps } from '../../services/executor/flow-jobs.ts'
import { actionRecorder } from '../../services/executor/flow-preparation.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { FlowEvent } from '../../shared/kernel/events.ts'
import { runIdOf } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { NO_ADMISSION } from '../../shared/tenancy/limits/admission.ts'
import type { FlowExecution, FlowOutcome } from '../../shared/work/flows/execute/execute.ts'
import type { Dispatch, FlowDefinition } from '../../shared/work/flows/port.ts'
import { begunBy, isLost } from '../../shared/work/flows/transitions.ts'
import { Runs } from '../../shared/work/runs/runs.ts'
import { INPUT, OK, OUTPUT } from '../contract/dispatch-setup.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { until } from '../support/until.ts'
import { useHistory } from '../work/flows/history-setup.ts'
import { losingFirstClaim } from './lost-claim.ts'

const EPOCH = 7
const OUTCOME: FlowOutcome = { ...OK, ...OUTPUT, status: 'ok' }
const DEFINITION: FlowDefinition = { input_schema: {}, output_schema: {}, tools: [], sub_agents: [], evolve: true }

const started = (traceId: string): FlowEvent => ({
  type: 'started',
  trace_id: traceId,
  flow_id: 'summarize',
  flow_version: 3,
  provider_instance: 'main',
  model: 'm1',
  at: '2026-11-22T10:00:00.000Z',
})

const READER = { gateway: 3, stream: 8 }

describe('the jobs that execute flows', () => {
  const history = useHistory()

  /** An executor whose flows end as `outcome` says; `executed` holds what it has executed. */
  function createExecutor(changes: Partial<FlowJobsDeps> = {}, outcome: FlowOutcome = OUTCOME) {
    const executed: FlowExecution[] = []
    const remembered: unknown[] = []
    const announced: unknown[] = []
    const draining = new AbortController()
    const runs = new Runs(
      { maxLive: 10, resumeMs: 60_000, maxJournalBytes: 1_000_000 },
      { onBug: () => {}, onEvent: () => {}, onForgotten: () => {} },
    )
    const jobs = new FlowJobs({
      runs,
      admission: NO_ADMISSION,
      dispatches: history.dispatches,
      library: { definitionOf: async () => DEFINITION },
      compile: async () => ({ templates: { subAgents: new Map() }, usesMemory: true }),
      memory: {
        promptText: async () => 'what was corrected',
        async remember(_tenant, uid, precedent) {
          remembered.push({ uid, ...precedent })
          return true
        },
      },
      async *execute(_tenant, execution) {
        executed.push(execution)
        yield started(execution.traceId)
        return outcome
      },
      executors: { isAlive: async (epoch) => epoch === EPOCH },
      epoch: () => EPOCH,
      isHeld: () => true,
      announce: ({ id }, reader) => announced.push([id, reader]),
      draining: draining.signal,
      log: SILENT_LOG,
      ...changes,
    })
    const handle = ({ trace_id: id }: Dispatch) => jobs.handle({ kind: 'flow', tenant: TENANT, id, reader: READER })
    const eventsOf = ({ trace_id: id }: Dispatch) => {
      const run = runs.get(TENANT, runIdOf(id))
      const cursor = run.follow(0)
      let text = ''
      for (let seq = 0; seq < run.journal.lastSeq; ) {
        const frames = cursor.take()
        seq = frames?.lastSeq ?? Infinity
        text += frames?.text.toString() ?? ''
      }
      return Array.from(text.matchAll(/^id: (\d+)\nevent: (\w+)\ndata: (.*)$/gm), ([, seq, type, data = '']) => ({
        id: Number(seq),
        type,
        ...(JSON.parse(data) as object),
      }))
    }
    const drain = () => {
      draining.abort()
      return runs.endAll(0)
    }
    return { jobs, handle, eventsOf, executed, remembered, announced, drain }
  }

  const read = async ({ trace_id: id }: Dispatch) => history.dispatches.get(TENANT, id)

  it('claim the dispatch, execute it with its input and memory, and record how it ended before they say so', async () => {
    const { handle, executed, announced, eventsOf } = createExecutor()
    const dispatch = await history.queue()
    expect(await handle(dispatch)).to.equal(undefined)
    expect(executed).to.have.length(1)
    expect(executed[0]).to.deep.include({
      traceId: dispatch.trace_id,
      input: INPUT,
      route: { instance: 'main', model: 'm1' },
      fallback: { instance: 'other', model: 'm2' },
      memory: 'what was corrected',
    })
    expect(executed[0]).not.to.have.property('caller')
    expect(announced).to.deep.equal([[runIdOf(dispatch.trace_id), READER]])
    const ended = await read(dispatch)
    expect(ended).to.deep.include({ status: 'ok', executor: EPOCH, turns: 2 })
    expect(eventsOf(dispatch).map(({ type }) => type)).to.deep.equal(['started', 'result'])
    expect(eventsOf(dispatch)[1]).to.deep.include({ verdict: 'ok', output: OUTPUT.output, at: ended?.ended_at })
  })

  it("hold the flow's place among its tenant's concurrent runs until it has ended", async () => {
    const held: [string, string][] = []
    let ended: Promise<void> | undefined
    const admission: FlowJobsDeps['admission'] = {
      hold({ tenant, runId }, run) {
        held.push([tenant, runId])
        ended = new Promise((ends) => run.whenEnded(ends))
      },
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    const { handle } = createExecutor({
      admission,
      async *execute(_tenant, { traceId }) {
        yield started(traceId)
        await promise
        return OUTCOME
      },
    })
    const dispatch = await history.queue()
    const handled = handle(dispatch)
    await until(() => held.length > 0, { what: 'the place to be held' })
    expect(held).to.deep.equal([[TENANT, runIdOf(dispatch.trace_id)]])
    expect(await Promise.race([ended?.then(() => 'ended'), Promise.resolve('held')])).to.equal('held')
    resolve()
    await handled
    await ended
  })

  it('keep a confirmed output of a flow that evolves, none of an evaluation, of a wrong output, or of another flow', async () => {
    const { handle, remembered } = createExecutor()
    await handle(await history.queue({ kind: 'evaluation' }))
    expect(remembered).to.deep.equal([])
    await handle(await history.queue())
    expect(remembered).to.deep.equal([{ uid: 'flow_1', input: INPUT, output: OUTPUT.output }])

    const wrong = createExecutor({}, { ...OUTCOME, status: 'invalid_output', output: null })
    await wrong.handle(await history.queue())
    const plain = createExecutor({ library: { definitionOf: async () => ({ ...DEFINITION, evolve: false }) } })
    await plain.handle(await history.queue())
    expect([wrong.remembered, plain.remembered]).to.deep.equal([[], []])
  })

  it('answer all the same when the precedent cannot be kept', async () => {
    const memory = { promptText: async () => '', remember: async () => Promise.reject(new Error('the store is away')) }
    const { handle, eventsOf } = createExecutor({ memory })
    const dispatch = await history.queue()
    await handle(dispatch)
    expect(eventsOf(dispatch).at(-1)).to.deep.include({ type: 'result', verdict: 'ok' })
  })

  it('execute a dispatch once, however many jobs there are for it; the others wait for its end', async () => {
    const gate = Promise.withResolvers<void>()
    const executed: string[] = []
    const slow = createExecutor({
      async *execute(_tenant, { traceId }) {
        executed.push(traceId)
        yield started(traceId)
        await gate.promise
        return OUTCOME
      },
    })
    const dispatch = await history.queue()
    const first = slow.handle(dispatch)
    const other = createExecutor({ epoch: () => 8 })
    const second = other.handle(dispatch).then(() => 'the other job is over')
    const again = slow.handle(dispatch)
    expect(await Promise.race([second, first.then(() => 'done'), Promise.resolve('both wait')])).to.equal('both wait')
    gate.resolve()
    await Promise.all([first, second, again])
    expect(executed).to.deep.equal([dispatch.trace_id])
    expect(other.executed).to.deep.equal([])
    expect(await read(dispatch)).to.deep.include({ status: 'ok', executor: EPOCH })
  })

  it('end a dispatch whose executor died, and do not execute it again', async () => {
    const { handle, executed } = createExecutor()
    const dispatch = await history.queue()
    await history.dispatches.begin(TENANT, dispatch.trace_id, 3)
    const lost = { failed: `${dispatch.trace_id} failed: worker_lost` }
    expect(await handle(dispatch)).to.deep.equal(lost)
    expect(await handle(dispatch)).to.deep.equal(lost)
    expect(executed).to.deep.equal([])
    expect(await read(dispatch)).to.have.nested.property('error.code', 'worker_lost')
  })

  it('leave one to the queue that another executor has when the process shuts down', async () => {
    const { handle, drain } = createExecutor({ executors: { isAlive: async () => true } })
    const dispatch = await history.queue()
    await history.dispatches.begin(TENANT, dispatch.trace_id, 3)
    const handled = handle(dispatch)
    void drain()
    expect(await handled).to.deep.equal({ again: true })
    expect(await read(dispatch)).to.include({ status: 'running', executor: 3 })
  })

  it('leave one alone that has ended', async () => {
    const { handle, executed } = createExecutor()
    const dispatch = await history.queue()
    const ended = await history.end(dispatch)
    await handle(dispatch)
    expect(executed).to.deep.equal([])
    expect(await read(dispatch)).to.deep.equal(ended)
  })

  it('write nothing when the lease was lost meanwhile, and say that the result is not recorded', async () => {
    let isHeld = true
    const { handle, eventsOf, remembered } = createExecutor({
      isHeld: () => isHeld,
      async *execute(_tenant, { traceId }) {
        yield started(traceId)
        isHeld = false
        return OUTCOME
      },
    })
    const dispatch = await history.queue()
    await handle(dispatch)
    expect(eventsOf(dispatch).at(-1)).to.deep.include({ type: 'error', code: 'storage_unavailable', status: 503 })
    expect(remembered).to.deep.equal([])
    expect(await history.dispatches.output(TENANT, (await read(dispatch)) ?? dispatch)).to.equal(undefined)
  })

  it('end what they have claimed although the answer of the store was lost', async () => {
    const { dispatches } = history
    const { handle, executed } = createExecutor({
      dispatches: {
        create: (...args) => dispatches.create(...args),
        get: (...args) => dispatches.get(...args),
        input: (...args) => dispatches.input(...args),
        output: (...args) => dispatches.output(...args),
        takeOver: (...args) => dispatches.takeOver(...args),
        noteAction: (...args) => dispatches.noteAction(...args),
        end: (...args) => dispatches.end(...args),
        async begin(...args) {
          if (await dispatches.begin(...args)) throw new AppError('unavailable', 'no answer')
          return undefined
        },
      },
    })
    const dispatch = await history.queue()
    await handle(dispatch)
    expect(executed).to.deep.equal([])
    expect(await read(dispatch)).to.have.nested.property('error.status', 503)
  })

  it('fail a run whose flow was deleted with 502, and say so', async () => {
    const { handle, eventsOf } = createExecutor({ library: { definitionOf: async () => undefined } })
    const dispatch = await history.queue()
    await handle(dispatch)
    expect(await read(dispatch)).to.have.nested.property('error.status', 502)
    expect(eventsOf(dispatch).at(-1)).to.deep.include({ type: 'error', status: 502 })
  })

  it('read no memory that no prompt holds', async () => {
    const refuse = async () => Promise.reject(new Error('nobody needs it'))
    const { handle, executed } = createExecutor({
      compile: async () => ({ templates: { subAgents: new Map() }, usesMemory: false }),
      memory: { promptText: refuse, remember: refuse },
    })
    await handle(await history.queue())
    expect(executed.map(({ memory }) => memory)).to.deep.equal([''])
  })

  it('fail a run whose input was not stored with 503, so that it may be sent again', async () => {
    const { dispatches } = history
    const { handle, executed } = createExecutor({
      dispatches: {
        create: (...args) => dispatches.create(...args),
        get: (...args) => dispatches.get(...args),
        input: async () => undefined,
        output: (...args) => dispatches.output(...args),
        takeOver: (...args) => dispatches.takeOver(...args),
        noteAction: (...args) => dispatches.noteAction(...args),
        begin: (...args) => dispatches.begin(...args),
        end: (...args) => dispatches.end(...args),
      },
    })
    const dispatch = await history.queue()
    await handle(dispatch)
    expect(executed).to.deep.equal([])
    const ended = await read(dispatch)
    expect(ended && isLost(ended)).to.equal(true)
  })

  it('D34.2: begin a run with a key anew whose executor died, behind all numbers that its client may have got', async () => {
    const { handle, executed, eventsOf } = createExecutor()
    const dispatch = await history.queue({ idempotency_key: 'k' })
    await history.dispatches.begin(TENANT, dispatch.trace_id, 3)
    await handle(dispatch)
    expect(executed.map(({ isRecovered, input }) => [isRecovered, input])).to.deep.equal([[true, INPUT]])
    expect(await read(dispatch)).to.deep.include({ status: 'ok', executor: EPOCH, starts: 2 })
    expect(eventsOf(dispatch).map(({ id }) => id)).to.deep.equal([1_000_001, 1_000_002])
    const late = { executor: 3, result: OK }
    expect(await history.dispatches.end(TENANT, dispatch.trace_id, late), 'the dead one wakes up').to.equal(undefined)
  })

  for (const [what, more, acts] of [
    ['that had acted', { idempotency_key: 'k' }, true],
    ['without a key', {}, false],
    ['whose second executor died', { idempotency_key: 'k', starts: 2 }, false],
  ] as const)
    it(`D34.2: end a run ${what} when its executor died`, async () => {
      const { handle, executed } = createExecutor()
      const { dispatches } = history
      const dispatch = await history.queue(more)
      const { trace_id: id } = dispatch
      await dispatches.begin(TENANT, id, 3)
      if (acts) expect(await dispatches.noteAction(TENANT, id, 3)).to.equal(true)
      await handle(dispatch)
      expect(executed).to.deep.equal([])
      expect(await read(dispatch)).to.have.nested.property('error.code', 'worker_lost')
      expect(await dispatches.noteAction(TENANT, id, 3)).to.equal(false)
    })

  it('D37.5: leave a run that may begin anew elsewhere when the process shuts down, and end the others', async () => {
    const cut: FlowOutcome = {
      ...OUTCOME,
      status: 'error',
      error: { type: 'internal_error', code: 'worker_draining', message: 'x', status: 503 },
    }
    for (const [more, status, end] of [
      [{ idempotency_key: 'k' }, 'running', 'again'],
      [{}, 'error', 'failed'],
    ] as const) {
      const begun = Promise.withResolvers<void>()
      const { handle, eventsOf, drain } = createExecutor({
        async *execute(_tenant, { traceId }, signal) {
          yield started(traceId)
          begun.resolve()
          await once(signal, 'abort')
          return cut
        },
      })
      const dispatch = await history.queue(more)
      const handled = handle(dispatch)
      await begun.promise
      void drain()
      expect(await handled).to.have.property(end)
      expect(await read(dispatch)).to.include({ status, executor: EPOCH })
      expect(eventsOf(dispatch).map(({ type }) => type)).to.deep.equal(
        status === 'error' ? ['started', 'error'] : ['started'],
      )
    }
  })

  it('D34.2: record before the first action of a run that it has acted, once', async () => {
    const noted: number[] = []
    const { dispatches } = history
    const { handle } = createExecutor({
      dispatches: new Proxy(dispatches, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name)
          if (typeof value !== 'function') return value
          return (...args: unknown[]) => {
            if (name === 'noteAction') noted.push(Number(args[2]))
            return Reflect.apply(value, target, args) as unknown
          }
        },
      }),
      async *execute(_tenant, { traceId, beforeAction }) {
        yield started(traceId)
        await Promise.all([beforeAction?.(), beforeAction?.()])
        return OUTCOME
      },
    })
    const [keyed, plain] = [await history.queue({ idempotency_key: 'k' }), await history.queue()]
    await handle(keyed)
    await handle(plain)
    expect(noted).to.deep.equal([EPOCH, EPOCH])
    expect(await read(keyed)).to.deep.include({ status: 'ok', has_acted: true })
  })

  it('record the end of a run whose claim the database has lost with a member, and let no tool act for it', async () => {
    const { dispatches } = history
    const tools: string[] = []
    const { losing, count } = losingFirstClaim(dispatches, async (id) => {
      const queued = await dispatches.get(TENANT, id)
      return queued && { ...queued, ...begunBy(EPOCH) }
    })
    const { handle, eventsOf } = createExecutor({
      dispatches: losing,
      async *execute(_tenant, { traceId, beforeAction }) {
        yield started(traceId)
        await beforeAction?.().then(
          () => tools.push('acted'),
          () => tools.push('refused'),
        )
        return OUTCOME
      },
    })
    const dispatch = await history.queue()
    await handle(dispatch)
    expect(tools).to.deep.equal(['refused'])
    expect(await read(dispatch)).to.include({ status: 'ok', executor: EPOCH })
    expect(eventsOf(dispatch).at(-1)).to.include({ type: 'result' })
    expect(count.claims).to.equal(2)
  })

  it('D34.2: keep a tool from acting for a run that another executor has', async () => {
    const dispatch = { ...(await history.queue({ idempotency_key: 'k' })), executor: 3 }
    const act = actionRecorder(TENANT, dispatch, { noteAction: async () => false })
    expect(await act?.().catch((cause: Error) => cause.message)).to.equal('another executor has the run')
  })

  it('report a bug as internal error, without its text', async () => {
    const { handle } = createExecutor({
      execute() {
        throw new TypeError('sk-secret is not a function')
      },
    })
    const dispatch = await history.queue()
    const end = await handle(dispatch)
    const ended = await read(dispatch)
    expect(ended?.error).to.deep.include({ status: 500, type: 'internal_error' })
    expect(end).to.deep.equal({ failed: `${dispatch.trace_id} failed: ${ended?.error?.code ?? 'internal_error'}` })
    expect(JSON.stringify(ended)).to.not.contain('sk-secret')
  })

  it('end a dispatch as lost when its executors have died each time', async () => {
    const { jobs } = createExecutor()
    const dispatch = await history.queue()
    await history.dispatches.begin(TENANT, dispatch.trace_id, 3)
    const end = await jobs.givenUp({ kind: 'flow', tenant: TENANT, id: dispatch.trace_id })
    expect(end).to.deep.equal({ failed: `${dispatch.trace_id} failed: worker_lost` })
    expect(await read(dispatch)).to.have.nested.property('error.code', 'worker_lost')
  })
})
