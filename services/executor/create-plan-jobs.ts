import { planRunId } from '../../shared/kernel/ids.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { ModelSource } from '../../shared/work/runs/models.ts'
import { RunReporter } from '../../shared/work/runs/run-report.ts'
import type { Executor } from './executor.ts'
import type { ExecutorParts, Membership } from './open-parts.ts'
import { PlanJobs } from './plan-jobs.ts'
import { createPlanSteps } from './plan-steps.ts'

type PlanParts = ExecutorParts & { executor: Executor; models: ModelSource }

/** Opens the jobs that execute plans, with the tools that ask nobody. */
export function createPlanJobs(
  { maxTurns }: Pick<Settings['executor'], 'maxTurns'>,
  parts: PlanParts,
  membership: Membership,
): PlanJobs {
  const { store, models, tools, workspaces, executor, fence, events, usage, recorder, metrics, log } = parts
  const reporter = new RunReporter({ log, metrics, usage, recorder })
  return new PlanJobs({
    ...membership,
    runs: executor.runs,
    draining: executor.draining,
    plans: store.plans,
    stepsOf: createPlanSteps({ models, tools, workspaces, files: store.files, maxTurns, reporter, log }),
    async removeFolder(tenant, planId) {
      const id = planRunId(planId)
      workspaces.openKept(tenant, id) // An earlier executor may have made it.
      await workspaces.remove(tenant, id)
    },
    leaveFolder: (tenant, planId) => workspaces.release(tenant, planRunId(planId)),
    isHeld: () => fence.isHeld(),
    events,
    metrics,
    log,
  })
}
