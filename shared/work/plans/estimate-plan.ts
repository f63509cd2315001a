import { firstCallTokens, taskInput } from '../../agent/engine/run-input.ts'
import type { PriceOf } from '../../agent/providers/port.ts'
import type { ToolBox } from '../../agent/tools/port.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Budgets } from '../../tenancy/limits/budgets.ts'
import { type Estimate, estimate, type PlannedCall } from '../../tenancy/limits/estimate.ts'
import { pricesOf, type ServerModel } from '../../tenancy/limits/unpriced.ts'
import type { LiveConfigs } from '../../tenancy/tenant-config/live-configs.ts'
import { findInstance } from '../../tenancy/tenant-config/settings.ts'
import { noModel } from '../runs/models.ts'
import { STEP_SYSTEM_PROMPT, stepPrompt } from './step-output.ts'
import { checkedPlan, type PlanRequest, type StepFiles, stepFiles } from './submit.ts'

export type PlanEstimateDeps = {
  files: StepFiles
  toolBox: ToolBox
  priceOf: PriceOf
  serverModels: readonly ServerModel[]
  /** Left out together with `budgets` where runtime configuration is disabled. */
  configs?: Pick<LiveConfigs, 'get'> | undefined
  budgets?: Pick<Budgets, 'standings' | 'exhausted'> | undefined
}

/**
 * Estimates the first model calls of a plan's steps, and their cost, without the outputs that they read from each other (D57). It queues
 * nothing. Throws the errors of `submit` for a plan that cannot be carried out, and `unavailable` when there is no model for it.
 */
export async function estimatePlan(tenant: TenantId, request: PlanRequest, deps: PlanEstimateDeps): Promise<Estimate> {
  const files = await stepFiles(tenant, request, deps)
  const { steps } = checkedPlan(request)
  const target = await targetOf(tenant, deps)
  const calls: PlannedCall[] = []
  for (const [i, step] of steps.entries()) {
    const prompt = stepPrompt(step, new Map())
    const task = taskInput({ prompt, files: files[i], systemPrompt: STEP_SYSTEM_PROMPT, maxTurns: 1 })
    calls.push({ name: step.id, ...target, inputTokens: await firstCallTokens(task, deps.toolBox) })
  }
  return estimate({ tenant }, calls, deps)
}

/** The route `plan`, or else `main`, or else the server's own model. */
async function targetOf(tenant: TenantId, { configs, serverModels }: PlanEstimateDeps) {
  const config = await configs?.get(tenant)
  const route = config?.routing.plan ?? config?.routing.main
  if (config && route) {
    const { type, options, ...instance } = findInstance(config, route.instance)
    const provider = { type, instance: instance.name, prices: pricesOf(instance) }
    return { provider, model: route.model, maxOutputTokens: options?.max_output_tokens }
  }
  const [server] = serverModels
  if (!server) throw noModel('no model is configured for this tenant: set a main route with PUT /config/engine')
  return { provider: { type: server.type }, model: server.model }
}
