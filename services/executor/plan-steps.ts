import { calledBy, type RunResources, type Tools } from '../../shared/agent/engine/resources.ts'
import type { Task } from '../../shared/agent/engine/run-input.ts'
import { runUnattended } from '../../shared/agent/engine/unattended-run.ts'
import type { Files } from '../../shared/agent/files/files.ts'
import { recordingActions } from '../../shared/agent/tools/recording-actions.ts'
import { AppError, toAppError } from '../../shared/kernel/errors.ts'
import { type AgentEvent, errorEvent } from '../../shared/kernel/events.ts'
import { planRunId } from '../../shared/kernel/ids.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { inSpan } from '../../shared/kernel/trace.ts'
import { titleOf } from '../../shared/reading/title.ts'
import type { PlanRecord } from '../../shared/work/plans/port.ts'
import { STEP_SYSTEM_PROMPT, stepPrompt } from '../../shared/work/plans/step-output.ts'
import type { RunStep, StepResult } from '../../shared/work/plans/step-runs.ts'
import { TooMuch } from '../../shared/work/runs/kept/scan.ts'
import type { ModelSource } from '../../shared/work/runs/models.ts'
import { TITLE_CHARS } from '../../shared/work/runs/records/record.ts'
import { RunFigures } from '../../shared/work/runs/run-figures.ts'
import type { RunReporter } from '../../shared/work/runs/run-report.ts'
import { saveFiles } from '../../shared/work/runs/save-files.ts'
import type { Workspaces } from '../../shared/work/runs/workspaces.ts'
import type { LiveSteps } from './live-steps.ts'

export type PlanStepsDeps = {
  models: ModelSource
  /** Their policies never ask for a permission (`unattended`). */
  tools: Pick<Tools, 'toolBox' | 'maxOutputChars' | 'canAct' | 'mayAct'>
  workspaces: Pick<Workspaces, 'openKept' | 'kept'>
  files: Pick<Files, 'attached' | 'read'>
  maxTurns: number
  reporter: Pick<RunReporter, 'open'>
  live: Pick<LiveSteps, 'open'>
  log: Log
}

/** Returns the function that runs the steps of a plan: each is a run of the engine in the plan's folder (D7.3). */
export const createPlanSteps =
  (deps: PlanStepsDeps) =>
  (tenant: TenantId, plan: CalledFor): RunStep =>
  async (step, outputs, signal) => {
    await deps.models.load(tenant)
    const { plan_id: planId } = plan
    const task = { prompt: stepPrompt(step, outputs), systemPrompt: STEP_SYSTEM_PROMPT, maxTurns: deps.maxTurns }
    return inSpan(
      'invoke_agent step',
      { attributes: { ...STEP_SPAN, 'agent_engine.step_id': step.id } },
      async (fail) => {
        const facts = {
          tenant,
          run_id: step.run_id,
          kind: 'step' as const,
          plan_id: planId,
          step_id: step.id,
          started_at: new Date().toISOString(),
          title: titleOf(step.prompt, TITLE_CHARS),
        }
        const live = deps.live.open(facts, deps.reporter.open(facts))
        const { tools } = deps
        const toolBox = recordingActions(tools.toolBox, () => step.beforeAction())
        const resources = resourcesOf(tenant, plan, { deps: { ...deps, tools: { ...tools, toolBox } }, signal })
        const onBug = (cause: unknown) => deps.log.error('a step failed by a bug', { run_id: step.run_id, cause })
        const files = (step.attachments ?? []).map(({ file_id: id }) => id)
        const find = () => deps.files.attached(tenant, files, () => '/attachments')
        const ended = await runStep(async () => ({ ...task, files: await find() }), resources, { live, onBug })
        const { kept } = deps.workspaces
        const result =
          kept && !signal.aborted
            ? await keepFiles(ended, () => saveFiles(kept, { tenant, scope: planRunId(planId) }, SAVE_WAIT_MS))
            : ended
        if ('error' in result) fail('step_failed')
        return result
      },
    )
  }

const STEP_SPAN = { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'step' }

type CalledFor = Pick<PlanRecord, 'plan_id' | 'priority' | 'deadline_at'>
type StepResources = Omit<RunResources, 'permissions'>

function resourcesOf(
  tenant: TenantId,
  { plan_id: planId, priority = 'batch', deadline_at }: CalledFor,
  { deps, signal }: { deps: PlanStepsDeps; signal: AbortSignal },
): StepResources {
  const { models, tools, workspaces, files, log } = deps
  const { kept } = workspaces
  const runId = planRunId(planId)
  return {
    models: calledBy(models.modelsFor(tenant, undefined, 'plan'), {
      priority,
      ...(deadline_at !== undefined && { deadlineMs: Date.parse(deadline_at) }),
    }),
    tools: {
      ...tools,
      services: {},
      owner: { tenant, scope: runId },
      workspace: () => workspaces.openKept(tenant, runId),
      bringFiles: kept && (() => kept.bring(tenant, runId)),
      onToolBug: (tool, cause) => log.error('a tool failed by a bug', { run_id: runId, tool, cause }),
    },
    readFile: ({ file_id: id }) => files.read(tenant, id),
    signal: withCode(signal),
  }
}

/** The same signal with the reason that the engine expects. */
function withCode(signal: AbortSignal): AbortSignal {
  const controller = new AbortController()
  const abort = () => controller.abort('cancelled')
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return controller.signal
}

async function runStep(
  taskOf: () => Promise<Task>,
  resources: StepResources,
  { live, onBug }: { live: ReturnType<LiveSteps['open']>; onBug(cause: unknown): void },
): Promise<StepResult> {
  const figures = new RunFigures()
  const note = (event: AgentEvent) => {
    figures.note(event)
    live.note(event)
  }
  try {
    const end = await runUnattended(await taskOf(), resources, (event) => {
      note(event)
      return live.journal.waitForDrain(resources.signal)
    })
    const { spent } = figures
    return 'failure' in end ? { error: end.failure.error, spent } : { output: end.answer.text, spent }
  } catch (cause) {
    if (figures.code === undefined) note(errorEvent('internal', 'internal error')) // The run of the step has an end, too.
    const refusal = toAppError(cause)
    if (refusal.kind === 'internal') onBug(cause)
    return { error: refusal.message, spent: figures.spent }
  }
}

/** How long a step waits at its end for the files of its plan while the store accepts nothing. */
const SAVE_WAIT_MS = 30_000

/** Stores the files of the plan: its next step may run at another executor. If its files cannot be stored, the step fails (D35). */
async function keepFiles(result: StepResult, save: () => Promise<void>): Promise<StepResult> {
  const { spent } = result
  try {
    await save()
    return result
  } catch (cause) {
    if ('error' in result) return result
    const reason = cause instanceof AppError || cause instanceof TooMuch ? cause.message : 'internal error'
    return { error: `the files of the step could not be stored: ${reason}`, ...(spent && { spent }) }
  }
}
