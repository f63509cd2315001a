import { AppError } from '../../kernel/errors.ts'
import type { AgentEvent, JsonObject } from '../../kernel/events.ts'
import { showControls } from '../../kernel/text.ts'
import { fail, type Tool, type ToolOutcome } from '../tools/port.ts'
import type { EventQueue } from './event-queue.ts'
import type { RunResources } from './resources.ts'

/** A call of a known tool with a valid input. `id` is that of its `tool_use` event. */
export type ReadyCall = { id: string; tool: Tool; input: JsonObject }

type PermissionStep = Pick<RunResources, 'tools' | 'permissions'> & { events: Pick<EventQueue<AgentEvent>, 'push'> }

/** Returns the refusal of a call that plan mode, the policy or the client does not allow. */
export async function refusalOf(call: ReadyCall, step: PermissionStep): Promise<ToolOutcome | undefined> {
  const { planMode, remembered } = step.permissions
  const { tool, input } = call
  const { name } = tool
  if (planMode?.isOn && !tool.isReadOnly && !tool.endsPlanMode) return fail(`${name} is not run: ${PLAN_MODE}`)
  const policy = step.tools.toolBox.policyOf(name, input)
  if (policy === 'deny') return fail(`${name} is switched off by this server's policy. Go on without it.`)
  const mustAsk = policy === 'ask' && (tool.alwaysAsks || !remembered?.has(name))
  const refusal = mustAsk ? await askFor(call, step) : undefined
  if (!refusal && tool.endsPlanMode && planMode) planMode.isOn = false
  return refusal
}

const PLAN_MODE =
  'this run may only look until the user has approved a plan. Show the plan with ExitPlanMode before you change anything.'

/** Returns the refusal, or `undefined` when the client has allowed the call. Without a decision the answer is a refusal. */
async function askFor(
  { id: toolUseId, tool, input }: ReadyCall,
  { tools, permissions, events }: PermissionStep,
): Promise<ToolOutcome | undefined> {
  const toolName = tool.name
  const message = showControls(tool.describe(input))
  const ask = await permissions.openAsk({ toolUseId, toolName, input, message }).catch((cause: unknown) => {
    if (!(cause instanceof AppError)) tools.onToolBug(toolName, cause)
  })
  if (!ask) return fail(`Permission to use ${toolName} was denied: the permission could not be asked`)
  const { id, expiresAt } = ask
  const subject = { id, tool_use_id: toolUseId, tool_name: toolName }
  events.push({ type: 'permission_request', ...subject, input, message, expires_at: expiresAt })
  const { isAllowed, how, reason, isRemembered } = await ask.decision
  events.push({ type: 'permission_resolved', ...subject, allow: isAllowed, how, reason })
  if (isRemembered && !tool.alwaysAsks) permissions.remembered?.add(toolName)
  return isAllowed ? undefined : fail(`Permission to use ${toolName} was denied${reason && `: ${reason}`}`)
}
