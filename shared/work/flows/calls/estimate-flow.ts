import { firstCallTokens, taskInput } from '../../../agent/engine/run-input.ts'
import type { PriceOf } from '../../../agent/providers/port.ts'
import type { ToolBox } from '../../../agent/tools/port.ts'
import { onlyNamed } from '../../../agent/tools/unattended.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { Budgets } from '../../../tenancy/limits/budgets.ts'
import { type Estimate, estimate, type PlannedCall } from '../../../tenancy/limits/estimate.ts'
import { pricesOf } from '../../../tenancy/limits/unpriced.ts'
import type { LiveConfigs } from '../../../tenancy/tenant-config/live-configs.ts'
import { findInstance } from '../../../tenancy/tenant-config/settings.ts'
import { agentPrompts } from '../check/preview.ts'
import { CallRoutes } from '../execute/call-routes.ts'
import type { FlowMemory } from '../flow-memory.ts'
import type { StoredFlows } from '../stored-flows.ts'
import type { FlowCall } from './calls.ts'
import { type CheckDeps, checkExecution } from './start-execution.ts'

export type EstimateDeps = CheckDeps & {
  library: Pick<StoredFlows, 'published'>
  configs: Pick<LiveConfigs, 'get'>
  memory: Pick<FlowMemory, 'promptText'>
  toolBox: ToolBox
  priceOf: PriceOf
  budgets: Pick<Budgets, 'standings' | 'exhausted'>
}

type NamedCall = FlowCall & { name: string }

/**
 * Estimates the first model calls of a flow's agents, and their cost; the main agent gets sample outputs of its sub-agents, made from their schemas
 * (D57). It executes and stores nothing. Throws the same errors as a start.
 */
export async function estimateFlow(
  tenant: TenantId,
  { name: flowName, ...call }: NamedCall,
  deps: EstimateDeps,
): Promise<Estimate> {
  const [flow, config] = [
    await deps.library.published(tenant, flowName, call.request.version),
    await deps.configs.get(tenant),
  ]
  const execution = { kind: 'run', flow, ...call } as const
  const { compiled, files, primary, fallback } = await checkExecution(execution, { tenant, config, deps })
  const { request } = call
  const { definition } = flow
  const memory = compiled.usesMemory ? await deps.memory.promptText(tenant, flow.uid) : ''
  const routes = new CallRoutes(primary, fallback)
  const calls: PlannedCall[] = []
  for (const { agent, system, user } of agentPrompts(
    { ...flow, templates: compiled.templates, memory },
    request.input,
  )) {
    const own = definition.sub_agents.find(({ name }) => name === agent)
    const { route } = routes.routeOf(own)
    const { type, options, ...instance } = findInstance(config, route.instance)
    const task = taskInput({ prompt: user, files, systemPrompt: system, maxTurns: 1 })
    calls.push({
      name: agent,
      provider: { type, instance: instance.name, prices: pricesOf(instance) },
      model: route.model,
      inputTokens: await firstCallTokens(task, onlyNamed(deps.toolBox, (own ?? definition).tools)),
      maxOutputTokens: options?.max_output_tokens,
    })
  }
  return estimate({ tenant }, calls, deps)
}
