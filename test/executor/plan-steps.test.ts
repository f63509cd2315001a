import { expect } from 'chai'
import { LiveSteps } from '../../services/executor/live-steps.ts'
import { createPlanSteps, type PlanStepsDeps } from '../../services/executor/plan-steps.ts'
import type { ModelProvider } from '../../shared/agent/providers/port.ts'
import { succeed, type Tool, type ToolBox, type ToolContext } from '../../shared/agent/tools/port.ts'
import { recordingActions } from '../../shared/agent/tools/recording-actions.ts'
import { CursorStream } from '../../shared/cluster/journal/cursor-stream.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import type { PlanRecord } from '../../shared/work/plans/port.ts'
import type { StepRun } from '../../shared/work/plans/step-runs.ts'
import { createServerModels } from '../../shared/work/runs/models.ts'
import type { RunFacts } from '../../shared/work/runs/records/record.ts'
import { NO_TOOLS } from '../support/app-defaults.ts'
import { DEMO_MODELS } from '../support/demo-worker.ts'
import { ALL_KEPT } from '../support/kept-files.ts'
import { NO_FILES } from '../support/no-files.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'

const STEP: StepRun = { id: 'write', prompt: '/say hello', run_id: 'run_1', beforeAction: async () => {} }
const PLAN = `plan_${'0'.repeat(32)}`

describe('the steps of a plan', () => {
  function setUp(changes: Partial<PlanStepsDeps> = {}, plan: Partial<PlanRecord> = {}) {
    const reported: RunFacts[] = []
    const noted: [string, boolean][] = []
    const live = new LiveSteps()
    const runStep = createPlanSteps({
      models: createServerModels(DEMO_MODELS),
      tools: { toolBox: { ...NO_TOOLS, tools: [] }, maxOutputChars: 100, canAct: async () => true, mayAct: () => true },
      workspaces: { openKept: () => '/nowhere' },
      files: NO_FILES,
      maxTurns: 2,
      reporter: {
        open(facts) {
          reported.push(facts)
          const note = ({ type }: { type: string }, { isLast }: { isLast: boolean }) => void noted.push([type, isLast])
          return { note, abandon: () => {}, details: {}, isRecorded: false }
        },
      },
      live,
      log: SILENT_LOG,
      ...changes,
    })(TENANT, { plan_id: PLAN, ...plan })
    return { runStep, reported, noted, live }
  }
  const never = new AbortController().signal
  /** A model that keeps what it is asked, and throws what is a bug. */
  const modelOf = (stream: ModelProvider['stream']) =>
    createServerModels({
      ...DEMO_MODELS,
      primary: { provider: { ...DEMO_MODELS.primary?.provider, stream } as ModelProvider, model: 'm' },
    })

  it('D7.3: the last message of the agent is the output, and what it has used is counted', async () => {
    const { runStep, reported, noted } = setUp()
    const result = await runStep(STEP, new Map(), never)
    expect(result)
      .to.have.property('output')
      .that.match(/hello$/)
    expect(result).to.have.nested.property('spent.input_tokens')
    expect(reported[0]).to.deep.include({ run_id: 'run_1', kind: 'step', plan_id: PLAN, step_id: 'write' })
    expect(noted.at(-1)).to.deep.equal(['done', true])
    expect(noted.filter(([, isLast]) => isLast)).to.have.length(1)
  })

  it('D54.7: its model calls have the priority of its plan, `batch` unless it says, and wait until its deadline', async () => {
    const callers: unknown[] = []
    const models = modelOf(async function* ({ caller }) {
      callers.push(caller)
      yield* []
    })
    const deadline_at = '2026-11-30T10:00:00.000Z'
    for (const plan of [{}, { priority: 'interactive' as const, deadline_at }])
      await setUp({ models }, plan).runStep(STEP, new Map(), never)
    expect(callers).to.deep.equal([
      { priority: 'batch' },
      { priority: 'interactive', deadlineMs: Date.parse(deadline_at) },
    ])
  })

  it('D27.1: can be followed while it is at work, by its tenant only, and for a moment after its end', async () => {
    const { runStep, live } = setUp()
    const stop = new AbortController()
    const ended = runStep({ ...STEP, prompt: '/say one\n/sleep 60000' }, new Map(), stop.signal)
    await until(() => live.describe(TENANT, 'run_1') !== undefined, { what: 'the step to begin' })
    expect(live.get(tenantId('other'), 'run_1')).to.equal(undefined)
    let text = ''
    for await (const frames of new CursorStream(live.get(TENANT, 'run_1')?.follow(0) ?? expect.fail())) {
      text += Buffer.from(frames.text as Uint8Array).toString()
      if (text.includes('"text":"one"')) stop.abort()
    }
    expect(text).to.match(/^id: 1\nevent: turn_start[^]*event: text_delta[^]*event: error[^]*"code":"cancelled"/)
    await ended
    expect(live.describe(TENANT, 'run_1'), 'its record tells of it').to.equal(undefined)
    expect(live.get(TENANT, 'run_1')).not.to.equal(undefined)
  })

  it('D7.3: the agent reads the outputs of the steps before', async () => {
    const prompts: string[] = []
    const models = modelOf(({ messages }) => {
      prompts.push(JSON.stringify(messages))
      throw new Error('that is enough')
    })
    await setUp({ models })
      .runStep({ ...STEP, depends_on: ['collect'] }, new Map([['collect', 'all the changes']]), never)
      .catch(() => {})
    expect(prompts.join()).to.include('all the changes').and.include('/say hello')
  })

  it('D34: a call that may change something is recorded before it is made, and not made when it cannot be', async () => {
    const calls: string[] = []
    const tool = (name: string, isReadOnly: boolean): Tool => ({
      ...{
        name,
        isReadOnly,
        description: name,
        inputSchema: {},
        defaultPolicy: 'allow' as const,
        describe: () => name,
      },
      run: async () => {
        calls.push(name)
        return succeed(name)
      },
    })
    const found = [tool('Look', true), tool('Change', false)]
    const toolBox: ToolBox = {
      ...{ tools: found, policyOf: () => 'allow', problemWith: async () => undefined },
      find: (name) => found.find((each) => each.name === name),
    }
    const beforeAction = async () => {
      calls.push('recorded')
      if (calls.length > 3) throw new AppError('unavailable', 'the store is away')
    }
    const recording = recordingActions(toolBox, beforeAction)
    const call = async (name: string) => (await recording.find(name)?.run({}, {} as ToolContext))?.output
    expect([await call('Look'), await call('Change')]).to.deep.equal(['Look', 'Change'])
    expect(calls).to.deep.equal(['Look', 'recorded', 'Change'])
    expect(await call('Change')).to.include('was not run')
    expect(calls).to.deep.equal(['Look', 'recorded', 'Change', 'recorded'])
    expect(recording.tools).to.equal(found)
  })

  it('a failure of the agent is the error of the step, with what it has used', async () => {
    const { runStep, noted } = setUp()
    const result = await runStep({ ...STEP, prompt: '/fail timeout' }, new Map(), never)
    expect(result).to.have.property('error').that.is.a('string')
    expect(noted.at(-1)).to.deep.equal(['error', true])
  })

  it('a step whose plan has ended calls no model, and its run is cancelled', async () => {
    const { runStep, noted } = setUp()
    const result = await runStep(STEP, new Map(), AbortSignal.abort('the plan has ended'))
    expect(result).to.have.property('error')
    expect(noted.map(([type]) => type)).to.deep.equal(['turn_start', 'error'])
  })

  it('a bug ends the run of the step, too', async () => {
    const bugs: unknown[] = []
    const { runStep, noted } = setUp({
      log: { ...SILENT_LOG, error: (...line) => void bugs.push(line) },
      models: {
        ...createServerModels(DEMO_MODELS),
        modelsFor: () =>
          ({
            main: () => {
              throw new TypeError('a bug')
            },
          }) as never,
      },
    })
    const { spent, ...failure } = await runStep(STEP, new Map(), never)
    expect(failure).to.deep.equal({ error: 'internal error' })
    expect(spent).to.include({ input_tokens: 0, output_tokens: 0, cost_usd: 0 })
    expect(noted).to.deep.equal([['error', true]])
    expect(bugs).to.have.length(1)
  })

  describe('whose processes share no folder', () => {
    const kept = (save: () => Promise<void>) => {
      const folder = { openKept: () => '/nowhere', kept: { ...ALL_KEPT, save } }
      return setUp({ workspaces: folder }).runStep
    }

    it('D35: a step has ended when the files of its plan are stored', async () => {
      const stored = Promise.withResolvers<void>()
      let hasEnded = false
      const ending = kept(() => stored.promise)(STEP, new Map(), never).then((result) => {
        hasEnded = true
        return result
      })
      await new Promise(setImmediate)
      expect(hasEnded).to.equal(false)
      stored.resolve()
      expect(await ending).to.have.property('output')
    })

    it('D35: a step whose files cannot be stored has failed, with what it has used; a failed one keeps its error', async () => {
      const away = kept(() => Promise.reject(new AppError('unavailable', 'the store is away')))
      const failed = await away(STEP, new Map(), never)
      expect(failed).to.have.property('error', 'the files of the step could not be stored: the store is away')
      expect(failed).to.have.nested.property('spent.input_tokens')
      const other = await away({ ...STEP, prompt: '/fail timeout' }, new Map(), never)
      expect(other).to.have.property('error').that.does.not.include('stored')
    })
  })
})
