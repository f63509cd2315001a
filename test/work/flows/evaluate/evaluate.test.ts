import { expect } from 'chai'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import type { StartedFlow } from '../../../../shared/work/flows/calls/calls.ts'
import { FlowEvaluator } from '../../../../shared/work/flows/evaluate/evaluate.ts'
import type { Flow } from '../../../../shared/work/flows/port.ts'
import { newDispatch, START } from '../../../contract/dispatch-setup.ts'
import { until } from '../../../support/until.ts'

const FLOW: Flow = {
  name: 'triage',
  uid: 'flow_1',
  version: 2,
  state: 'draft',
  definition: { input_schema: {}, output_schema: {}, tools: [], sub_agents: [], evolve: false },
  created_at: '',
  updated_at: '',
  published_version: 1,
  is_built_in: false,
}

describe('the evaluation of a flow', () => {
  /** An evaluator over recorded executions. Each answer waits until the test lets it come, or its caller leaves. */
  function setUp(count = 12) {
    const seen = { started: 0, saved: 0, listed: [] as unknown[] }
    const answers = Promise.withResolvers<void>()
    const recorded = Array.from({ length: count }, (_, n) =>
      newDispatch(START, { trace_id: `trace_${n}`, flow: { ...FLOW, version: 1 }, status: 'ok' }),
    )
    const started: StartedFlow = {
      traceId: 'trace_0',
      isReplayed: false,
      async answer(signal) {
        const { promise: left, reject } = Promise.withResolvers<never>()
        signal.addEventListener('abort', () => reject(signal.reason as Error))
        await Promise.race([answers.promise, left])
        throw new Error('the failure of an execution')
      },
      frames: () => Promise.reject(new Error('not read')),
    }
    const evaluator = new FlowEvaluator({
      library: { get: async () => FLOW, saveEvaluation: async () => void seen.saved++ },
      evaluations: { add: async (...added) => void seen.listed.push(added) },
      now: () => new Date(START),
      compile: async () => ({ templates: { subAgents: new Map() }, usesMemory: false }),
      dispatches: {
        list: async () => ({ dispatches: recorded, next_cursor: null }),
        get: async () => recorded[0],
        input: async () => ({}),
        output: async () => undefined,
      },
      async execute() {
        seen.started++
        return started
      },
    })
    return { evaluator, seen, answers }
  }

  for (const recorded of [4, 12])
    it(`a caller that leaves at the first 4 of ${recorded} executions starts no other, and nothing is stored`, async () => {
      const { evaluator, seen } = setUp(recorded)
      const caller = new AbortController()
      const evaluated = evaluator.evaluate(TENANT, 'triage', { limit: 12 }, { subject: 's', signal: caller.signal })
      await until(() => seen.started === 4, { what: 'the first executions to start' })
      caller.abort()
      expect(await evaluated.catch((cause: unknown) => cause)).to.equal(caller.signal.reason)
      expect(seen).to.deep.include({ started: 4, saved: 0 })
    })

  it('a caller that has left before the first execution starts none', async () => {
    const { evaluator, seen } = setUp()
    const signal = AbortSignal.abort()
    const failure = await evaluator
      .evaluate(TENANT, 'triage', {}, { subject: 's', signal })
      .catch((cause: unknown) => cause)
    expect(failure).to.equal(signal.reason)
    expect(seen).to.deep.include({ started: 0, saved: 0 })
  })

  it('a failed execution is a result: the others go on, and the report is stored', async () => {
    const { evaluator, seen, answers } = setUp()
    answers.resolve()
    const caller = { subject: 's', signal: new AbortController().signal }
    const report = await evaluator.evaluate(TENANT, 'triage', { limit: 12 }, caller)
    expect(report.runs).to.have.length(12)
    expect(seen).to.deep.include({ started: 12, saved: 1 })
  })
})
