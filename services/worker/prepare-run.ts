import { triedForm, withSchema } from '../../shared/agent/engine/answers/typed-answer.ts'
import type { UnstoredFile } from '../../shared/agent/engine/call-progress.ts'
import type { Conversation } from '../../shared/agent/engine/conversation.ts'
import type { OpenAsk, Permissions } from '../../shared/agent/engine/permissions.ts'
import { RememberedTools } from '../../shared/agent/engine/remembered-tools.ts'
import { calledBy, type Models, type RunResources, type Tools } from '../../shared/agent/engine/resources.ts'
import { run as runEngine } from '../../shared/agent/engine/run.ts'
import { firstCallTokens, firstModel, type RunInput } from '../../shared/agent/engine/run-input.ts'
import type { RunProgress } from '../../shared/agent/engine/run-progress.ts'
import { LAST_SHARE, LIVE_SHARE, mayWaitForBatches } from '../../shared/agent/providers/batch/pool/pool.ts'
import type { Caller, PriceOf } from '../../shared/agent/providers/port.ts'
import { allowedOnly, shownOnly } from '../../shared/agent/tools/allowed.ts'
import { type ClientTool, withClientTools } from '../../shared/agent/tools/client-tools.ts'
import type { ToolBox, ToolServices } from '../../shared/agent/tools/port.ts'
import { priorityOf, type RunRequest } from '../../shared/cluster/commands/runs.ts'
import type { Batched } from '../../shared/kernel/async/batch.ts'
import type { AttachedFile } from '../../shared/kernel/attachment.ts'
import type { AgentEvent, WarningEvent } from '../../shared/kernel/events.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { DAY_MS, HOUR_MS } from '../../shared/kernel/time.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import { leastOf, type PlannedCall } from '../../shared/tenancy/limits/estimate.ts'
import type { ModelSource } from '../../shared/work/runs/models.ts'
import type { Run } from '../../shared/work/runs/run.ts'

/** The resources that all runs of a worker share. */
export type EngineOptions = {
  models: ModelSource
  tools: Pick<Tools, 'toolBox' | 'canAct' | 'mayAct' | 'maxOutputChars'>
  openAskFor(run: Run): OpenAsk
  workspaceOf(run: Run): string
  /** Fetches and stores the files of a run, if the processes share no folder. */
  files?: RunFiles | undefined
  /** Reads the files of messages. Left out: this server keeps none. */
  readFile?: ((tenant: TenantId, file: AttachedFile) => Promise<Buffer | undefined>) | undefined
  onToolBug(run: Run, toolName: string, cause: unknown): void
  /** Checks the answers of runs with a `response_schema`. */
  schemas: Pick<SchemaCheckers, 'of'>
  /** Default of `max_turns`. */
  maxTurns: number
}

export type RunFiles = {
  /** Whether another process may continue a run outside a session; its files are then stored, too. */
  keepsOneShots: boolean
  bring(run: Run): Promise<void>
  keep(run: Run, events: AsyncIterable<Batched<AgentEvent>>): AsyncIterable<Batched<AgentEvent>>
  /** Stores the files that a tool call may have changed. Left out if no other worker can continue the session. */
  store?: ((run: Run) => Promise<readonly UnstoredFile[]>) | undefined
}

/** The state that a run starts from, besides its request. */
export type RunStart = {
  conversation: Conversation
  background: string | undefined
  services: ToolServices
  /** The tools that the client has allowed for the rest of the session. Left out: none, and only the run remembers new ones. */
  remembered?: RememberedTools | undefined
  warnings: readonly WarningEvent[]
  /** The tools of its client that the session keeps (D45). */
  clientTools?: readonly ClientTool[] | undefined
  /** Stores the run's progress. Left out: the run ends with this process. */
  progress?: RunProgress | undefined
}

/** A request that can be run: its model is known, its defaults are filled in. */
export type PreparedRun = {
  prompt: string
  /** Starts the engine. A session passes its history as it is at that moment, with the answers to all earlier messages. */
  execute(run: Run, start: RunStart): AsyncIterable<Batched<AgentEvent>>
  /** Returns the model that the run would call first, and the tokens of that call, without calling it. */
  firstCall(start: Pick<RunStart, 'conversation' | 'background'>): Promise<FirstCall>
}

export type FirstCall = Omit<PlannedCall, 'name'> & { priceOf: PriceOf }

/** Prepares a request of a tenant whose models are loaded. Throws `unavailable` when there is no model for it. */
export type PrepareRun = (tenant: TenantId, request: RunRequest) => PreparedRun

/** One engine for one-shot runs and sessions: they differ only in the state they start from (D5.7). */
export function createPrepareRun(options: EngineOptions): PrepareRun {
  return (tenant, request) => {
    const models = options.models.modelsFor(tenant, request.model)
    const inputFor = (start: InputState) => inputOf(start, { tenant, request, options })
    const boxFor = (kept: readonly ClientTool[]) => {
      const toolBox = withClientToolsOf(tenant, request.client_tools ?? kept, options)
      return toolBoxFor(request, toolBox)
    }
    return {
      prompt: request.prompt,
      execute: (run, start) => {
        const { services, remembered = new RememberedTools(), clientTools = [] } = start
        const planMode = { isOn: request.plan_mode === true }
        const toolBox = boxFor(clientTools)
        const endsWithCalls = request.ends_with_calls === true
        const permissions = { openAsk: options.openAskFor(run), remembered, planMode, endsWithCalls }
        const parts = { models: calledBy(models, callerOf(run, request)), services, permissions, toolBox }
        const events = runEngine(inputFor(start), resourcesOf(run, parts, options))
        // The folder of a run outside a session is removed with the run: its end does not wait for the store.
        return run.sessionId === undefined ? events : (options.files?.keep(run, events) ?? events)
      },
      async firstCall(start) {
        const [input, toolBox] = [inputFor(start), boxFor([])]
        const inputTokens = await firstCallTokens(input, toolBox)
        const { provider, model } = firstModel(input, models, toolBox)
        const maxOutputTokens = leastOf(provider.maxOutputTokens, request.max_output_tokens)
        return { provider, model, inputTokens, maxOutputTokens, priceOf: models.priceOf }
      },
    }
  }
}

type InputState = Pick<RunStart, 'conversation' | 'background' | 'progress'> & Partial<Pick<RunStart, 'warnings'>>
type Requested = { tenant: TenantId; request: RunRequest; options: EngineOptions }

const inputOf = (
  { conversation, background, warnings = [], progress }: InputState,
  { tenant, request, options }: Requested,
): RunInput => ({
  prompt: request.prompt,
  files: request.files,
  systemPrompt: systemPromptOf(request),
  maxTurns: request.max_turns ?? options.maxTurns,
  stopSequences: request.stop_sequences ?? [],
  choices: choicesOf(request),
  output: formOf(tenant, request, options),
  conversation,
  progress,
  background,
  warnings,
})

const PLAN_MODE =
  'You are in plan mode: look, and change nothing. When you know what is to be done, show the plan with ExitPlanMode. Tools that change something are refused until the user has approved it.'

function systemPromptOf({ system_prompt: system, plan_mode, response_schema }: RunRequest): string | undefined {
  const given = plan_mode ? [PLAN_MODE, ...(system === undefined ? [] : [system])].join('\n\n') : system
  return response_schema ? withSchema(given, response_schema) : given
}

const formOf = (
  tenant: TenantId,
  { response_schema: schema }: RunRequest,
  { schemas }: Pick<EngineOptions, 'schemas'>,
): RunInput['output'] => schema && { name: 'answer', schema, checker: schemas.of(tenant), native: triedForm() }

const withClientToolsOf = (
  tenant: TenantId,
  given: readonly ClientTool[],
  { tools, schemas }: EngineOptions,
): ToolBox => (given.length === 0 ? tools.toolBox : withClientTools(tools.toolBox, given, schemas.of(tenant)))

function toolBoxFor({ allowed_tools: allowed, tool_choice: choice }: RunRequest, given: ToolBox): ToolBox {
  const toolBox = allowed ? allowedOnly(given, allowed) : given
  return choice === 'none' ? shownOnly(toolBox) : toolBox
}

const callerOf = (run: Run, request: RunRequest): Caller => ({
  priority: priorityOf(request),
  customer: request.customer_id,
  ...(run.deadlineMs !== undefined && { deadlineMs: run.deadlineMs }),
  ...(run.deadlineMs !== undefined &&
    mayWaitForBatches(request.deadline_hours) && {
      unhurried: unhurriedUntil(run.deadlineMs, run, request),
    }),
})

/** The times until which the model calls of a run with a deadline may wait for batches. Their answers are kept until a day after its deadline. */
function unhurriedUntil(deadlineMs: number, { tenant, id: runId }: Run, { deadline_hours: hours = 0 }: RunRequest) {
  const before = (share: number) => deadlineMs - share * HOUR_MS * hours
  return {
    tenant,
    runId,
    untilMs: before(LAST_SHARE),
    liveMs: before(LIVE_SHARE),
    expiresMs: deadlineMs + DAY_MS,
    asked: new Set<string>(),
  }
}

/** `undefined` for a run that chooses nothing, whose model calls then use the options of their instance as they are. */
function choicesOf(request: RunRequest): RunInput['choices'] {
  const { effort, temperature, max_output_tokens: maxOutputTokens, tool_choice: choice } = request
  const toolChoice = choice === 'auto' ? undefined : choice
  const isNone = (effort ?? temperature ?? maxOutputTokens ?? toolChoice) === undefined
  return isNone ? undefined : { effort, temperature, maxOutputTokens, toolChoice }
}

const filesOf = (run: Run, { files }: EngineOptions) =>
  run.sessionId !== undefined || files?.keepsOneShots ? files : undefined

type RunParts = { models: Models; services: ToolServices; permissions: Permissions; toolBox: ToolBox }

function resourcesOf(
  run: Run,
  { models, services, permissions, toolBox }: RunParts,
  options: EngineOptions,
): RunResources {
  const { tools, workspaceOf, onToolBug } = options
  const files = filesOf(run, options)
  const { store } = files ?? {}
  const { readFile: readOf } = options
  const readFile = readOf && ((file: AttachedFile) => readOf(run.tenant, file))
  return {
    models,
    tools: {
      ...tools,
      toolBox,
      async canAct(signal) {
        await run.whenAccepted()
        return tools.canAct(signal)
      },
      services,
      owner: { tenant: run.tenant, scope: run.workspace },
      workspace: () => workspaceOf(run),
      bringFiles: files && (() => files.bring(run)),
      storeFiles: store && (() => store(run)),
      onToolBug: (toolName, cause) => onToolBug(run, toolName, cause),
    },
    permissions,
    signal: run.signal,
    steering: run.steering,
    readFile,
  }
}
