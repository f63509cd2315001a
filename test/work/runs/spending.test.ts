import { expect } from 'chai'
import fc from 'fast-check'
import { LiveSteps } from '../../../services/executor/live-steps.ts'
import { createPlanSteps } from '../../../services/executor/plan-steps.ts'
import { SessionUsage } from '../../../services/worker/sessions/session-usage.ts'
import { Conversation } from '../../../shared/agent/engine/conversation.ts'
import { run as runEngine } from '../../../shared/agent/engine/run.ts'
import { Observed } from '../../../shared/kernel/async/observed.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'
import { executeFlow } from '../../../shared/work/flows/execute/execute.ts'
import { terminalEvent } from '../../../shared/work/flows/execute/outcome.ts'
import { Runs } from '../../../shared/work/runs/runs.ts'
import { inputOf, talk } from '../../agent/engine/context/setup.ts'
import { newDispatch } from '../../contract/dispatch-setup.ts'
import { NO_FILES } from '../../support/no-files.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { definitionOf, flowOf } from '../flows/execute/setup.ts'
import {
  reports,
  resources,
  STOP,
  type Story,
  stage,
  story,
  sumOf,
  TENANT,
  totalsOf,
  withoutCache,
} from './spending-setup.ts'

/** Checks a property with this many stories, always the same ones. */
const holds = (count: number, property: (story: Story) => Promise<void>) =>
  fc.assert(fc.asyncProperty(story, property), { numRuns: count, seed: 47 })

/** Dollars are added up in different orders. */
function expectSame(
  actual: { tokens?: number | undefined; costUsd?: number | undefined; cacheRead?: number; cacheWrite?: number },
  budget: typeof actual,
  where: string,
) {
  const { cacheRead, cacheWrite } = budget
  if (actual.cacheRead !== undefined) expect(actual, `cache of ${where}`).to.include({ cacheRead, cacheWrite })
  expect(actual.tokens, `tokens of ${where}`).to.equal(budget.tokens)
  expect(actual.costUsd, `cost of ${where}`).to.be.closeTo(budget.costUsd ?? Number.NaN, 1e-6)
}

describe('what the budget shows of a run, however it ends', () => {
  it('D4.10: is what its last event, its record, /usage and its session show, to the token', async () => {
    const ends = new Map<string, number>()
    await holds(600, async (each) => {
      const on = stage(each)
      const { reporter, used } = reports()
      const hooks = { onBug: () => {}, onEvent: on.tick, onForgotten: () => {} }
      const runs = new Runs(
        { maxLive: 1, resumeMs: 60_000, maxJournalBytes: 1e9 },
        { ...hooks, report: (run) => reporter.openRun(run) },
      )
      const run = runs.open({ id: 'run_1', tenant: TENANT, sessionId: 's_1', needsNoReader: true })
      const session = new SessionUsage()
      const conversation = new Conversation({ messages: talk(each.history) })
      const events: RunEvent[] = []
      await run.execute(() => {
        const engine = runEngine(inputOf({ conversation, stopSequences: [STOP], maxTurns: 2 }), resources(on))
        const count = session.counter()
        return new Observed<RunEvent>(engine, (event) => {
          events.push(event)
          count(event)
        })
      })
      await on.settled()
      const last = events.at(-1)
      const end = last?.type === 'error' ? last.code : String(last?.type)
      ends.set(end, (ends.get(end) ?? 0) + 1)
      expectSame(totalsOf(last), on.budget, `the last event, ${end}`)
      expectSame(sumOf(run.summary), on.budget, 'the record')
      expectSame(sumOf(used[0] ?? {}), on.budget, '/usage')
      expectSame(withoutCache(session.state.usage), on.budget, 'the session')
      expect(used).to.have.length(1)
    })
    expect([...ends.keys()]).to.include.members(ALL_ENDS)
  })

  it('D4.10: is what its dispatch and its last event show, when it is the run of a flow', async () => {
    await holds(150, async (each) => {
      const on = stage(each)
      const { tools } = resources(on)
      const { reporter, used } = reports()
      const report = reporter.open({
        tenant: TENANT,
        run_id: 'run_1',
        kind: 'flow',
        started_at: '2026-11-24T10:00:00.000Z',
      })
      const definition = definitionOf({ tools: ['Agent', 'Agents', 'Look', 'Hang'] })
      const two = flowOf(['first', 'second'], { tools: ['Agent', 'Look'] })
      const flow = {
        name: 'review',
        version: 3,
        definition: { ...definition, sub_agents: two.flow?.definition.sub_agents ?? [] },
      }
      const running = executeFlow(
        {
          ...{ traceId: 'trace_1', flow, templates: two.templates ?? expect.fail(), input: { text: 'a' }, memory: '' },
          ...{ route: { instance: 'one', model: 'm' }, fallback: { instance: 'two', model: 's' } },
        },
        {
          openModel: async () => on.meter.provider(TENANT, on.main),
          ...{ priceOf: on.priceOf, windowOf: on.windowOf, tools, checker: { check: async () => [] } },
          ...{ supportsStructuredOutput: async () => true, maxTurns: 4, signal: on.caller.signal, now: () => 0 },
          onBug: (cause) => expect.fail(String(cause)),
        },
      )
      let next = await running.next()
      for (; !next.done; next = await running.next()) report.note(next.value, { bytes: 0, isLast: false })
      await on.settled()
      expectSame(sumOf(next.value), on.budget, 'the dispatch')
      const last = terminalEvent(newDispatch(0, next.value), next.value)
      report.note(last, { bytes: 0, isLast: true })
      expectSame(totalsOf(last), on.budget, 'the last event')
      expectSame(sumOf(report.details), on.budget, 'the record')
      expectSame(sumOf(used[0] ?? {}), on.budget, '/usage')
    })
  })

  it('D4.10: is what the plan and the record show, when it is a step of a plan', async () => {
    await holds(150, async (each) => {
      const on = stage(each)
      const { tools } = resources(on)
      const { reporter, used } = reports()
      const runStep = createPlanSteps({
        models: { load: () => undefined, modelsFor: () => on.models },
        ...{
          tools,
          workspaces: { openKept: () => '/nowhere' },
          files: NO_FILES,
          maxTurns: 4,
          reporter,
          live: new LiveSteps(),
          log: SILENT_LOG,
        },
      })(TENANT, { plan_id: `plan_${'0'.repeat(32)}` })
      const step = { id: 'write', prompt: 'write', run_id: 'run_1', beforeAction: async () => {} }
      const { spent = {} } = await runStep(step, new Map(), on.caller.signal)
      await on.settled()
      expectSame(withoutCache(spent), on.budget, 'the step')
      expectSame(sumOf(used[0] ?? {}), on.budget, '/usage')
      expect(used).to.have.length(1)
    })
  })
})

/** The stories end runs in all these ways. */
const ALL_ENDS = [
  ...['done', 'plan_queued', 'cancelled', 'session_deleted', 'budget_exhausted', 'internal', 'max_turns_exceeded'],
  ...['provider_rejected', 'provider_unavailable', 'timeout', 'context_too_long'],
]
