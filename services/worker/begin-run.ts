import { unsupported } from '../../shared/agent/files/attachable.ts'
import { refusalOf, takesFile } from '../../shared/agent/providers/shown-files.ts'
import { canShow } from '../../shared/agent/providers/strategy.ts'
import { allowedOnly, unknownRule } from '../../shared/agent/tools/allowed.ts'
import { type ClientTool, MAX_CLIENT_TOOLS_CHARS, withClientTools } from '../../shared/agent/tools/client-tools.ts'
import type { ToolBox } from '../../shared/agent/tools/port.ts'
import { policyProblems } from '../../shared/agent/tools/registry.ts'
import { MCP_PREFIX } from '../../shared/agent/tools/usable-tools.ts'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import { callersPatienceMs, withDeadline } from '../../shared/kernel/async/deadline.ts'
import type { LoopBudget } from '../../shared/kernel/async/loop-budget.ts'
import { fileKindOf } from '../../shared/kernel/attachment.ts'
import { AppError, invalidRequest } from '../../shared/kernel/errors.ts'
import type { JsonObject } from '../../shared/kernel/events.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { quoted } from '../../shared/kernel/text.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import { unusableSchema } from '../../shared/platform/schemas/problems.ts'
import { storeUnavailable } from '../../shared/platform/store/unavailable.ts'
import { type Admission, type Start, startOf } from '../../shared/tenancy/limits/admission.ts'
import type { StartWait } from '../../shared/tenancy/limits/start-lines.ts'
import type { ModelSource } from '../../shared/work/runs/models.ts'
import type { Run } from '../../shared/work/runs/run.ts'

/** The parts that check a start before its run is opened. */
export type StartChecks = ChoicesDeps &
  Pick<FileDeps, 'probes'> & {
    models: FileDeps['models'] & Pick<ModelSource, 'load'>
    admission: Admission
    /**
     * Limits the time that starts take in one turn of the event loop, so that the streams of running runs are served meanwhile.
     * `undefined`: what passes the starts on limits them.
     */
    turns?: LoopBudget | undefined
  }

type Starting = {
  runId: string
  request: Choices & RunRequest
  kept?: readonly ClientTool[] | undefined
}

/**
 * Returns the function that opens a run as soon as its choices are checked, its tenant's models are loaded and its limits allow it. The run
 * keeps its place in the limits until it ends.
 */
export function createBegin(options: StartChecks, loadingRuns: LoadingRuns<StartWait | undefined>) {
  const { models, admission, turns } = options
  const admit = (start: Start, { request, kept }: Starting) => {
    const { tenant } = start
    const checked = checkChoices(tenant, { request, kept }, options)
    const loading = checked ? checked.then(() => models.load(tenant)) : models.load(tenant)
    const taken = request.files ? Promise.resolve(loading).then(() => checkFiles(tenant, request, options)) : loading
    return taken ? taken.then(() => admission.admit(start)) : admission.admit(start)
  }
  return (tenant: TenantId, starting: Starting, open: (wait?: StartWait) => Run): Promise<void> | void => {
    const { runId, request } = starting
    const start = startOf({ tenant, runId }, request)
    const turn = turns?.enter()
    const loading = turn ? turn.then(() => admit(start, starting)) : admit(start, starting)
    const opening = loadingRuns.open(tenant, runId, {
      loading,
      open: (wait) => admission.hold(start, open(wait), wait),
    })
    return opening?.catch((cause: unknown) => {
      void loading?.then(
        (wait) => wait?.leave(),
        () => {},
      )
      admission.release(start)
      throw cause
    })
  }
}

/** Runs that wait until their tenant's models are loaded. They do not exist yet, but can be cancelled. */
export class LoadingRuns<T> {
  readonly #waiting = new Set<string>()

  /**
   * Calls `open` now, or when `loading` has ended. Rejects as `loading` does, when the run was cancelled meanwhile, and when `loading` takes longer than the
   * caller waits.
   */
  open(
    tenant: TenantId,
    runId: string,
    { loading, open }: { loading: Promise<T> | undefined; open: (loaded?: T) => void },
  ) {
    return loading === undefined ? open() : this.#openLater(keyOf(tenant, runId), loading, open)
  }

  /** Returns whether the run was waiting; if so, it will not be opened. */
  cancel(tenant: TenantId, runId: string): boolean {
    return this.#waiting.delete(keyOf(tenant, runId))
  }

  async #openLater(key: string, loading: Promise<T>, open: (loaded: T) => void): Promise<void> {
    this.#waiting.add(key)
    let loaded: T
    try {
      loaded = await withDeadline(loading, callersPatienceMs(), () => storeUnavailable('too slow'))
    } catch (cause) {
      this.#waiting.delete(key)
      throw cause
    }
    if (!this.#waiting.delete(key)) throw new AppError('unavailable', 'the run was cancelled before it began')
    open(loaded)
  }
}

/** Unique, because neither id contains a blank. */
const keyOf = (tenant: TenantId, runId: string): string => `${tenant} ${runId}`

export type ChoicesDeps = { toolBox: ToolBox; schemas: Pick<SchemaCheckers, 'of'> }
type Given = 'response_schema' | 'allowed_tools' | 'tool_choice' | 'client_tools' | 'deadline_hours' | 'background'
export type Choices = Pick<RunRequest, Given>

/**
 * Throws `invalid_request` for a choice that this worker cannot carry out, before the run begins (D41.1, D42.1). `undefined` when there is
 * nothing to wait for.
 */
export function checkChoices(
  tenant: TenantId,
  { request, kept = [] }: { request: Choices; kept?: readonly ClientTool[] | undefined },
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
