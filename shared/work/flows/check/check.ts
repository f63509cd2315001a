import { AppError, boundedProblem, hasKind, type Problem, problemOfBody } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { ignoredFieldWarnings, type Warning } from '../../../platform/api/ignored-fields.ts'
import type { SchemaCheckers } from '../../../platform/schemas/port.ts'
import type { CompiledFlow, CompileFlow } from '../compile.ts'
import { inspectDefinition } from '../definition.ts'
import type { FlowMemory } from '../flow-memory.ts'
import { checkSaved } from '../names.ts'
import type { Flow } from '../port.ts'
import type { StoredFlows } from '../stored-flows.ts'
import { type PromptPreview, previewPrompts, type SampleWarning } from './preview.ts'

/** `prompt_preview` is `null` while there are problems, and when no sample input is found. */
export type FlowCheck = { problems: Problem[]; prompt_preview: PromptPreview | null; warnings: FlowWarning[] }

type FlowWarning = Warning | SampleWarning

export type FlowCheckDeps = {
  library: Pick<StoredFlows, 'get'>
  memory: Pick<FlowMemory, 'promptText'>
  compile: CompileFlow
  checkers: Pick<SchemaCheckers, 'of'>
}

/** The body without unknown fields: the fields of a definition, of any type, and a sample input. */
export type CheckedBody = JsonObject & { input?: JsonObject }

/** The definition to check: a body, or the newest version of the stored flow. */
type Subject = Pick<Flow, 'definition' | 'ignored_fields'> & { uid: string | undefined; problems: Problem[] }

/** The most problems that are listed. */
const MAX_LISTED = 100

/** Says what `PUT` and `publish` would refuse, and shows the prompts for a sample input. It stores nothing (D26.1). */
export class FlowChecks {
  readonly #deps: FlowCheckDeps

  constructor(deps: FlowCheckDeps) {
    this.#deps = deps
  }

  /**
   * Checks the definition in the body, and without one the newest version of the flow. Throws `not_found` for the latter, `unavailable`
   * and `rate_limit` when schemas cannot be checked at the moment.
   */
  async check(tenant: TenantId, name: string, { input, ...body }: CheckedBody): Promise<FlowCheck> {
    const subject = await this.#subject(tenant, name, body)
    const { flow, problems: found } = await this.#compile(tenant, subject)
    const inDefinition = [...subject.problems, ...found]
    const problems = [...inDefinition, ...(await this.#inputProblems(tenant, { ...subject, inDefinition }, input))]
    const { warnings: ignored = [] } = ignoredFieldWarnings(subject.ignored_fields)
    if (!flow || problems.length > 0) return refused(problems, ignored)
    const { uid, definition } = subject
    const memory = flow.usesMemory && uid !== undefined ? await this.#deps.memory.promptText(tenant, uid) : ''
    const { templates } = flow
    const { preview, warnings } = previewPrompts({ name, definition, templates, memory }, input)
    return { problems, prompt_preview: preview, warnings: [...ignored, ...warnings] }
  }

  async #subject(tenant: TenantId, name: string, body: JsonObject): Promise<Subject> {
    if (Object.keys(body).length === 0) return { ...(await this.#deps.library.get(tenant, name)), problems: [] }
    const { definition, problems } = inspectDefinition(body)
    return {
      uid: (await this.#stored(tenant, name))?.uid,
      definition,
      problems: [...nameProblems(name, body), ...problems],
    }
  }

  async #stored(tenant: TenantId, name: string): Promise<Flow | undefined> {
    try {
      return await this.#deps.library.get(tenant, name)
    } catch (cause) {
      if (hasKind(cause, 'not_found')) return undefined
      throw cause
    }
  }

  /** Problems that only follow from an already known one are left out. A definition that is too long is not compiled. */
  async #compile(
    tenant: TenantId,
    { definition, problems: known }: Subject,
  ): Promise<{ problems: Problem[]; flow?: CompiledFlow }> {
    if (known.some(({ param }) => param === '')) return { problems: [] }
    const compiled = await this.#deps.compile(tenant, definition)
    if (!('problems' in compiled)) return { problems: [], flow: compiled }
    const problems = compiled.problems.map(({ path, message }) => ({ param: path, message }))
    return { problems: problems.filter(({ param }) => !known.some((each) => isWithin(param, each.param))) }
  }

  /** The input is checked only if its schema can be used. */
  async #inputProblems(
    tenant: TenantId,
    { definition, inDefinition }: Subject & { inDefinition: readonly Problem[] },
    input: JsonObject | undefined,
  ): Promise<Problem[]> {
    const isUsable = !inDefinition.some(({ param }) => param === '' || isWithin(param, '/input_schema'))
    if (input === undefined || !isUsable) return []
    const found = await this.#deps.checkers.of(tenant).check(definition.input_schema, input)
    return found.map(({ path, message }) => ({
      param: `/input${path}`,
      message: `input${path.replaceAll('/', '.')} ${message}`,
    }))
  }
}

/** The same for a body that its schema refuses. Throws `cause` when it is another error. */
export const refusedCheck = (cause: unknown): FlowCheck => refused([problemOfBody(cause)])

const refused = (problems: readonly Problem[], warnings: FlowWarning[] = []): FlowCheck => ({
  problems: problems.slice(0, MAX_LISTED).map(boundedProblem),
  prompt_preview: null,
  warnings,
})

function nameProblems(name: string, body: JsonObject): Problem[] {
  try {
    checkSaved(name, body)
    return []
  } catch (refusal) {
    if (!(refusal instanceof AppError)) throw refusal
    return [{ param: '/name', message: refusal.message }]
  }
}

const isWithin = (param: string, outer: string): boolean => param === outer || param.startsWith(`${outer}/`)
