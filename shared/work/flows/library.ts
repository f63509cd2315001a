import { type AppError, conflict, invalidRequest, MAX_PROBLEMS, notFound } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { EventSink } from '../../tenancy/events/port.ts'
import type { CompileFlow, FlowProblems } from './compile.ts'
import { readDefinition } from './definition.ts'
import { checkSaved, isFlowName, noFlow, refuseBuiltIn } from './names.ts'
import type { Flow, FlowRef } from './port.ts'
import type { FlowEvaluation, FlowVersion } from './store/flow-head.ts'
import type { FlowMemoryStore } from './store/flow-memory.ts'
import type { FlowSave, FlowStore } from './store/flows.ts'
import { asFlow, raise, StoredFlows } from './stored-flows.ts'

export type LibraryDeps = {
  store: FlowStore
  memory: Pick<FlowMemoryStore, 'removeFlow'>
  compile: CompileFlow
  /** The names of the tools that flows may use. */
  tools: () => readonly string[]
  events: EventSink
  now?: () => Date
}

/** The life of a tenant's flows, from draft to deletion (api.md "Flow", D6.1–D6.3). */
export class FlowLibrary extends StoredFlows {
  readonly #deps: Omit<LibraryDeps, 'store'>
  readonly #now: () => Date

  constructor({ store, now = () => new Date(), ...deps }: LibraryDeps) {
    super(store)
    this.#deps = deps
    this.#now = now
  }

  /**
   * Stores a draft, with the pointers of fields that were left out of the body. With `keeps_published` the published version stays in use;
   * otherwise the draft hides it. Throws `invalid_request`, `permission` for a built-in flow, and `conflict` when there are too many flows or
   * the flow is deleted meanwhile.
   */
  put(tenant: TenantId, name: string, body: JsonObject, options: DraftOptions = {}): Promise<Flow> {
    return this.#announced(tenant, 'saved', this.#put(tenant, name, { body, ...options }))
  }

  /** Like `put`, but a definition equal to the flow's newest one changes nothing. */
  putIfChanged(tenant: TenantId, name: string, body: JsonObject): Promise<Flow> {
    return this.#put(tenant, name, { body, isUnchangedKept: true })
  }

  /**
   * Publishes the newest version if it compiles. Throws `not_found`, `invalid_request` with the pointer into the definition, and
   * `conflict` when the flow changes meanwhile or this version has no evaluation with the pass rate required (0 to 1).
   */
  async publish(
    tenant: TenantId,
    name: string,
    { requirePassRate }: { requirePassRate?: number | undefined } = {},
  ): Promise<Flow> {
    const flow = await this.get(tenant, name)
    if (flow.state === 'published') {
      await this.store.settled() // Another call may just have published it.
      return flow
    }
    await this.#assertCompiles(tenant, flow)
    if (requirePassRate !== undefined) await this.#checkPassRate(tenant, flow, requirePassRate)
    return this.#announced(tenant, 'published', this.#publish(tenant, flow))
  }

  /**
   * Saves the definition of an earlier version as a new draft, as `put` does. With `publishes` it is published at once if it compiles, and otherwise not
   * saved. Throws `not_found`, and `permission` for a built-in flow, and what `publish` throws.
   */
  async rollback(
    tenant: TenantId,
    name: string,
    version: number,
    { publishes = false, ...options }: DraftOptions & { publishes?: boolean } = {},
  ): Promise<Flow> {
    refuseBuiltIn(name)
    const head = (await this.head(tenant, name)) ?? raise(noFlow(name))
    const { uid } = head
    const definition = version > head.version ? undefined : await this.definitionOf(tenant, { uid, version })
    if (!definition) throw notFound(`${name} has no version ${version}; GET /flows/${name}/revisions lists the newest`)
    if (publishes) await this.#assertCompiles(tenant, { name, definition })
    // The published version stays in use until the new one is published.
    const save = { definition, uid, ...options, ...(publishes && { keeps_published: true as const }) }
    const saved = await this.#announced(tenant, 'saved', this.#save(tenant, name, save))
    return publishes ? this.#announced(tenant, 'published', this.#publish(tenant, saved)) : saved
  }

  /** Deletes the flow, its revisions and its memory. Throws `not_found`, and `permission` for a built-in flow. */
  async remove(tenant: TenantId, name: string): Promise<void> {
    refuseBuiltIn(name)
    const head = isFlowName(name) ? await this.store.remove(tenant, name) : undefined
    if (!head) throw noFlow(name)
    await this.#deps.memory.removeFlow(tenant, head.uid)
    this.#announce(tenant, 'deleted', head)
  }

  /** Stores the result for `publish` if the version is still the newest one; otherwise it is dropped. */
  async saveEvaluation(
    tenant: TenantId,
    ref: FlowVersion,
    result: Omit<FlowEvaluation, 'evaluated_at'>,
  ): Promise<void> {
    await this.store.saveEvaluation(tenant, ref, { ...result, evaluated_at: this.#now().toISOString() })
  }

  catalogue(): readonly string[] {
    return this.#deps.tools()
  }

  async #announced(tenant: TenantId, change: FlowChange, changing: Promise<Flow>): Promise<Flow> {
    const flow = await changing
    this.#announce(tenant, change, flow)
    return flow
  }

  #announce(tenant: TenantId, change: FlowChange, { name, version }: Pick<Flow, 'name' | 'version'>): void {
    const data = { flow: name, flow_version: version, change }
    this.#deps.events.append(tenant, { type: 'flow.changed', at: this.#now().toISOString(), data })
  }

  async #put(tenant: TenantId, name: string, { body, ...options }: { body: JsonObject } & SaveOptions): Promise<Flow> {
    checkSaved(name, body)
    return this.#save(tenant, name, { definition: readDefinition(body), ...options })
  }

  async #save(tenant: TenantId, name: string, save: FlowSave): Promise<Flow> {
    const head = (await this.store.save(tenant, name, save)) ?? raise(noFlow(name))
    return asFlow(head, save.definition)
  }

  async #assertCompiles(tenant: TenantId, { name, definition }: Pick<Flow, 'name' | 'definition'>): Promise<void> {
    const compiled = await this.#deps.compile(tenant, definition)
    if ('problems' in compiled) throw notPublished(name, compiled.problems)
  }

  /** Publishes exactly this version. */
  async #publish(tenant: TenantId, flow: Flow): Promise<Flow> {
    const head = await this.store.publish(tenant, flow)
    if (!head) throw conflict(`${flow.name} was changed while it was published; read it and publish it again`)
    return asFlow(head, flow.definition)
  }

  /** The evaluation belongs to the newest version, and `publish` fails when that is no longer this one. */
  async #checkPassRate(tenant: TenantId, { name, version }: FlowRef, required: number): Promise<void> {
    const evaluation = (await this.store.head(tenant, name))?.evaluation
    if (!evaluation)
      throw conflict(`version ${version} of ${name} has no evaluation; POST /flows/${name}/evaluate makes one`)
    if (evaluation.pass_rate < required)
      throw conflict(
        `version ${version} of ${name} has the pass rate ${evaluation.pass_rate}, below ${required}; improve it and evaluate it again`,
      )
  }
}

type FlowChange = 'saved' | 'published' | 'deleted'

type DraftOptions = Pick<FlowSave, 'keeps_published' | 'ignored_fields'>
type SaveOptions = DraftOptions & Pick<FlowSave, 'isUnchangedKept'>

function notPublished(name: string, problems: FlowProblems): AppError {
  const [{ path, message }, ...others] = problems
  const listed = Math.min(others.length, MAX_PROBLEMS - 1)
  const unlisted = others.length - listed
  const more = listed === 0 ? '' : `; ${listed} more in problems`
  const further = unlisted === 0 ? '' : `, and ${unlisted} further ones that are not listed`
  return invalidRequest(`${name} cannot be published: ${message}${more}${further}`, {
    param: path,
    problems: problems.map((problem) => ({ param: problem.path, message: problem.message })),
  })
}
