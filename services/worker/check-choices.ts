import { allowedOnly, unknownRule } from '../../shared/agent/tools/allowed.ts'
import type { ToolBox } from '../../shared/agent/tools/port.ts'
import { policyProblems } from '../../shared/agent/tools/registry.ts'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import { invalidRequest } from '../../shared/kernel/errors.ts'
import type { JsonObject } from '../../shared/kernel/events.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { quoted } from '../../shared/kernel/text.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import { unusableSchema } from '../../shared/platform/schemas/problems.ts'

export type ChoicesDeps = { toolBox: ToolBox; schemas: Pick<SchemaCheckers, 'of'> }
export type Choices = Pick<RunRequest, 'response_schema' | 'allowed_tools' | 'tool_choice'>

/**
 * Throws `invalid_request` for a choice that this worker cannot carry out, before the run begins (D41.1, D42.1). `undefined` when there is
 * nothing to wait for.
 */
export function checkChoices(
  tenant: TenantId,
  request: Choices,
  { toolBox, schemas }: ChoicesDeps,
): Promise<void> | undefined {
  const { response_schema: schema, allowed_tools: allowed } = request
  if (allowed) checkRules(allowed, toolBox)
  checkToolChoice(request, toolBox)
  return schema && checkSchema(schema, schemas.of(tenant))
}

async function checkSchema(schema: JsonObject, checker: ReturnType<SchemaCheckers['of']>): Promise<void> {
  const [unusable] = await checker.findUnusable([schema])
  if (!unusable) return
  throw unusableSchema('/response_schema', unusable.problem)
}

function checkRules(allowed: readonly string[], toolBox: ToolBox): void {
  const unknown = unknownRule(toolBox, allowed)
  if (unknown) throw noTool(unknown[1], `/allowed_tools/${unknown[0]}`)
  for (const [at, rule] of allowed.entries()) {
    const [problem] = policyProblems('allowed_tools', new Map([[rule, 'allow']]), toolBox)
    if (problem) throw invalidRequest(problem, { param: `/allowed_tools/${at}` })
  }
}

function checkToolChoice({ allowed_tools: allowed, tool_choice: choice }: Choices, toolBox: ToolBox): void {
  const { tools } = allowed ? allowedOnly(toolBox, allowed) : toolBox
  if (choice === 'required' && tools.length === 0)
    throw invalidRequest('there is no tool that the model may call: leave tool_choice out', { param: '/tool_choice' })
  if (typeof choice === 'object' && !tools.some(({ name }) => name === choice.name))
    throw noTool(choice.name, '/tool_choice/name')
}

const noTool = (name: string, param: string) =>
  invalidRequest(`there is no tool ${quoted(name)} that this run may call; GET /tools lists the tools`, { param })
