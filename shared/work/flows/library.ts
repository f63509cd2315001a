import { LRUCache } from 'lru-cache'
import { startOfPage, toPage } from '../../kernel/cursor.ts'
import { type AppError, conflict, invalidRequest, MAX_PROBLEMS, notFound } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { EventSink } from '../../tenancy/events/port.ts'
import { BUILT_IN_FLOWS, findBuiltIn } from './built-in.ts'
import type { CompileFlow, FlowProblems } from './compile.ts'
import { readDefinition } from './definition.ts'
import {
  checkSaved,
  hiddenByDraft,
  isFlowName,
  neverPublished,
  noFlow,
  noPublishedFlow,
  refuseBuiltIn,
} from './names.ts'
import { type Flow, type FlowDefinition, type FlowRef, servedVersion } from './port.ts'
import type { FlowEvaluation, FlowHead, FlowRevision, FlowVersion } from './store/flow-head.ts'
import type { FlowMemoryStore } from './store/flow-memory.ts'
import type { FlowSave, FlowStore } from './store/flows.ts'

export type FlowSummary = Omit<Flow, 'definition'>
export type FlowPage = { flows: FlowSummary[]; next_cursor: string | null }

export type LibraryDeps = {
  store: FlowStore
  memory: Pick<FlowMemoryStore, 'removeFlow'>
  compile: CompileFlow
  /** The names of the tools that flows may use. */
  tools: () => readonly string[]
  events: EventSink
  now?: () => Date
}

/** The most JSON characters of all cached definitions of a process. */
const CACHED_CHARS = 64_000_000

/** A tenant's flows and the built-in ones, from draft to deletion (api.md "Flow", D6.1–D6.3). */
export class FlowLibrary {
  readonly #store: FlowStore
  readonly #deps: Omit<LibraryDeps, 'store'>
  readonly #now: () => Date
  /** Versions never change, so a cached one is never stale. The compiler's cache uses these objects as keys. */
  readonly #definitions = new LRUCache<string, FlowDefinition>({ maxSize: CACHED_CHARS })

  constructor({ store, now = () => new Date(), ...deps }: LibraryDeps) {
    this.#store = store
    this.#deps = deps
    this.#now = now
  }

  /** In the order of their names. Throws `invalid_request` for an invalid cursor. */
  async list(tenant: TenantId, { limit, cursor }: { limit: number; cursor?: string | undefined }): Promise<FlowPage> {
    const [after = ''] = startOfPage(cursor, ['string']) ?? []
    const stored = await this.#store.heads(tenant, { limit: limit + 1, ...(after !== '' && { after }) })
    const builtIn = BUILT_IN_FLOWS.filter(({ name }) => name > after)
    const flows = [...stored.filter(({ name }) => !findBuiltIn(name)).map(toSummary), ...builtIn.map(withoutDefinition)]
    flows.sort((a, b) => (a.name < b.name ? -1 : 1))
    const { page, next_cursor } = toPage(flows, limit, ({ name }) => [name])
    return { flows: page, next_cursor }
  }

  /** Throws `not_found`. */
  async get(tenant: TenantId, name: string): Promise<Flow> {
    return (await this.#find(tenant, name)) ?? raise(noFlow(name))
  }

  /**
   * The published version of a flow, or this version, which must have been published once. Throws the same `not_found` for a flow that was never
   * published as for no flow, and another one for a published version that a draft hides.
   */
  async published(tenant: TenantId, name: string, version?: number): Promise<RunnableFlow> {
    const flow = (await this.#find(tenant, name, { isRecent: true })) ?? raise(noPublishedFlow(name))
    if (version !== undefined && !(await this.#wasPublished(tenant, flow, version))) throw neverPublished(name, version)
    const runs = version ?? servedVersion(flow)
    if (runs === null) throw flow.published_version === null ? noPublishedFlow(name) : hiddenByDraft(flow)
    if (runs === flow.version) return flow
    const { uid } = flow
    const definition = await this.definitionOf(tenant, { uid, version: runs })
    return { name, uid, version: runs, definition: definition ?? raise(noPublishedFlow(name)) }
  }

  /** The definition of a version; `undefined` when the flow was deleted, though perhaps not at once. */
  async definitionOf(tenant: TenantId, { uid, version }: FlowVersion): Promise<FlowDefinition | undefined> {
    const builtIn = BUILT_IN_FLOWS.find((flow) => flow.uid === uid)
    if (builtIn) return version === builtIn.version ? builtIn.definition : undefined
    const key = `${tenant} ${uid} ${version}`
    const cached = this.#definitions.get(key)
    if (cached) return cached
    const definition = (await this.#store.revision(tenant, { uid, version }))?.definition
    if (definition) this.#definitions.set(key, definition, { size: JSON.stringify(definition).length })
    return definition
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
      await this.#store.settled() // Another call may just have published it.
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
    const head = (await this.#head(tenant, name)) ?? raise(noFlow(name))
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
    const head = isFlowName(name) ? await this.#store.remove(tenant, name) : undefined
    if (!head) throw noFlow(name)
    await this.#deps.memory.removeFlow(tenant, head.uid)
    this.#announce(tenant, 'deleted', head)
  }

  /** The 50 newest, newest first; fewer when they are very long. Throws `not_found`. */
  async revisions(tenant: TenantId, name: string): Promise<ListedRevision[]> {
    const builtIn = findBuiltIn(name)
    if (builtIn) return [shownRevision(builtIn, builtIn)]
    const head = (await this.#head(tenant, name)) ?? raise(noFlow(name))
    const revisions = await this.#store.revisions(tenant, head)
    return revisions.map((revision) => shownRevision(revision, head))
  }

  /** Stores the result for `publish` if the version is still the newest one; otherwise it is dropped. */
  async saveEvaluation(
    tenant: TenantId,
    ref: FlowVersion,
    result: Omit<FlowEvaluation, 'evaluated_at'>,
  ): Promise<void> {
    await this.#store.saveEvaluation(tenant, ref, { ...result, evaluated_at: this.#now().toISOString() })
  }

  catalogue(): readonly string[] {
    return this.#deps.tools()
  }

  async #wasPublished(tenant: TenantId, flow: Flow, version: number): Promise<boolean> {
    if (version === flow.published_version) return true
    const { uid } = flow
    return (await this.#store.revision(tenant, { uid, version }))?.was_published === true
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
    const head = (await this.#store.save(tenant, name, save)) ?? raise(noFlow(name))
    return asFlow(head, save.definition)
  }

  async #assertCompiles(tenant: TenantId, { name, definition }: Pick<Flow, 'name' | 'definition'>): Promise<void> {
    const compiled = await this.#deps.compile(tenant, definition)
    if ('problems' in compiled) throw notPublished(name, compiled.problems)
  }

  /** Publishes exactly this version. */
  async #publish(tenant: TenantId, flow: Flow): Promise<Flow> {
    const head = await this.#store.publish(tenant, flow)
    if (!head) throw conflict(`${flow.name} was changed while it was published; read it and publish it again`)
    return asFlow(head, flow.definition)
  }

  async #find(tenant: TenantId, name: string, { isRecent = false } = {}): Promise<Flow | undefined> {
    const builtIn = findBuiltIn(name)
    if (builtIn) return builtIn
    const head = await this.#head(tenant, name, isRecent)
    // If the revision is missing, the flow was deleted between the two reads.
    const definition = head && (await this.definitionOf(tenant, head))
    return definition && asFlow(head, definition)
  }

  async #head(tenant: TenantId, name: string, isRecent = false): Promise<FlowHead | undefined> {
    if (!isFlowName(name)) return undefined
    return isRecent ? this.#store.recentHead(tenant, name) : this.#store.head(tenant, name)
  }

  /** The evaluation belongs to the newest version, and `publish` fails when that is no longer this one. */
  async #checkPassRate(tenant: TenantId, { name, version }: FlowRef, required: number): Promise<void> {
    const evaluation = (await this.#store.head(tenant, name))?.evaluation
    if (!evaluation)
      throw conflict(`version ${version} of ${name} has no evaluation; POST /flows/${name}/evaluate makes one`)
    if (evaluation.pass_rate < required)
      throw conflict(
        `version ${version} of ${name} has the pass rate ${evaluation.pass_rate}, below ${required}; improve it and evaluate it again`,
      )
  }
}

type FlowChange = 'saved' | 'published' | 'deleted'

export type RunnableFlow = FlowRef & Pick<Flow, 'definition'>

export type ListedRevision = Pick<FlowRevision, 'version' | 'definition' | 'created_at'> & { was_published: boolean }

type DraftOptions = Pick<FlowSave, 'keeps_published' | 'ignored_fields'>
type SaveOptions = DraftOptions & Pick<FlowSave, 'isUnchangedKept'>

function asFlow({ evaluation: _evaluation, ...head }: FlowHead, definition: FlowDefinition): Flow {
  return { ...head, definition, is_built_in: false }
}

const toSummary = ({ evaluation: _evaluation, ...head }: FlowHead): FlowSummary => ({ ...head, is_built_in: false })

const withoutDefinition = ({ definition: _definition, ...flow }: Flow): FlowSummary => flow

const shownRevision = (
  { version, definition, created_at, was_published }: Omit<FlowRevision, 'keeps_published'>,
  { published_version: published }: Pick<Flow, 'published_version'>,
): ListedRevision => ({
  version,
  definition,
  created_at,
  was_published: was_published === true || version === published,
})

function raise(error: Error): never {
  throw error
}

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
