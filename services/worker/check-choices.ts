import { unsupported } from '../../shared/agent/files/attachable.ts'
import { refusalOf, takesFile } from '../../shared/agent/providers/shown-files.ts'
import { canShow } from '../../shared/agent/providers/strategy.ts'
import { allowedOnly, unknownRule } from '../../shared/agent/tools/allowed.ts'
import { type ClientTool, MAX_CLIENT_TOOLS_CHARS, withClientTools } from '../../shared/agent/tools/client-tools.ts'
import type { ToolBox } from '../../shared/agent/tools/port.ts'
import { policyProblems } from '../../shared/agent/tools/registry.ts'
import { MCP_PREFIX } from '../../shared/agent/tools/usable-tools.ts'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import { fileKindOf } from '../../shared/kernel/attachment.ts'
import { invalidRequest } from '../../shared/kernel/errors.ts'
import type { JsonObject } from '../../shared/kernel/events.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { quoted } from '../../shared/kernel/text.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import { unusableSchema } from '../../shared/platform/schemas/problems.ts'
import type { ModelSource } from '../../shared/work/runs/models.ts'

export type ChoicesDeps = { toolBox: ToolBox; schemas: Pick<SchemaCheckers, 'of'> }
type Given = 'response_schema' | 'allowed_tools' | 'tool_choice' | 'client_tools' | 'deadline_hours' | 'background'
export type Choices = Pick<RunRequest, Given>

/**
 * Throws `invalid_request` for a choice that this worker cannot carry out, before the run begins (D41.1, D42.1). `undefined` when there is
 * nothing to wait for.
 */
export function checkChoices(
  tenant: TenantId,
  { kept = [], ...request }: Choices & { kept?: readonly ClientTool[] | undefined },
  { toolBox: ofServer, schemas }: ChoicesDeps,
): Promise<void> | undefined {
  const { response_schema: schema, allowed_tools: allowed, client_tools: own } = request
  if (request.deadline_hours !== undefined && !request.background)
    throw invalidRequest('deadline_hours is for a run that nobody waits for: send "background": true with it', {
      param: '/deadline_hours',
    })
  if (own) checkClientTools(own, ofServer)
  const clients = own ?? kept
  const toolBox = clients.length > 0 ? withClientTools(ofServer, clients, schemas.of(tenant)) : ofServer
  if (allowed) checkRules(allowed, toolBox)
  checkToolChoice(request, toolBox)
  const given = [
    ...(schema ? [{ at: '/response_schema', schema }] : []),
    ...(own ?? []).flatMap(({ input_schema }, i) =>
      input_schema ? [{ at: `/client_tools/${i}/input_schema`, schema: input_schema }] : [],
    ),
  ]
  return given.length > 0 ? checkSchemas(given, schemas.of(tenant)) : undefined
}

type PlacedSchema = { at: string; schema: JsonObject }

async function checkSchemas(given: readonly PlacedSchema[], checker: ReturnType<SchemaCheckers['of']>): Promise<void> {
  const [unusable] = await checker.findUnusable(given.map(({ schema }) => schema))
  if (!unusable) return
  throw unusableSchema(given[unusable.at]?.at ?? '', unusable.problem)
}

function checkClientTools(tools: readonly ClientTool[], toolBox: ToolBox): void {
  if (JSON.stringify(tools).length > MAX_CLIENT_TOOLS_CHARS)
    throw invalidRequest(`client_tools must have at most ${MAX_CLIENT_TOOLS_CHARS} characters as JSON; shorten them`, {
      param: '/client_tools',
    })
  for (const [i, { name }] of tools.entries()) {
    const param = `/client_tools/${i}/name`
    if (toolBox.find(name) || name.startsWith(MCP_PREFIX))
      throw invalidRequest(`${quoted(name)} is a tool of this server, or may be one: give yours another name`, {
        param,
      })
    if (tools.findIndex((tool) => tool.name === name) < i)
      throw invalidRequest(`${quoted(name)} is there twice: leave one out`, { param })
  }
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

/** Returns the result of the last probe of a tenant's model; `undefined` for a model that was not probed. */
export type Probes = (tenant: TenantId, model: string) => Promise<{ vision: boolean } | undefined>

export type FileDeps = { models: Pick<ModelSource, 'modelsFor'>; probes?: Probes | undefined }

/** Throws `invalid_request` for a file that the model is known not to accept (D47). The tenant's models must be loaded. */
export async function checkFiles(
  tenant: TenantId,
  { files = [], model: chosen }: Pick<RunRequest, 'files' | 'model'>,
  { models, probes }: FileDeps,
): Promise<void> {
  const { primary, fallback, strategy = 'order' } = models.modelsFor(tenant, chosen).main()
  if (strategy !== 'order' && fallback && files.every((file) => canShow(fallback, file))) return
  const isImage = files.map(({ media_type }) => fileKindOf(media_type) === 'image')
  const isBlind = isImage.includes(true) && (await probes?.(tenant, primary.model))?.vision === false
  const index = files.findIndex((file, i) => !takesFile(primary, file) || (isBlind && isImage[i]))
  const refused = files[index]
  if (refused) throw unsupported(refusalOf(refused, primary.model), `/attachments/${index}`)
}
