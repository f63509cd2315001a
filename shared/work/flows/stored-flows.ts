import { LRUCache } from 'lru-cache'
import { startOfPage, toPage } from '../../kernel/cursor.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { BUILT_IN_FLOWS, findBuiltIn } from './built-in.ts'
import { hiddenByDraft, isFlowName, neverPublished, noFlow, noPublishedFlow } from './names.ts'
import { type Flow, type FlowDefinition, type FlowRef, servedVersion } from './port.ts'
import type { FlowHead, FlowRevision, FlowVersion } from './store/flow-head.ts'
import type { FlowStore } from './store/flows.ts'

export type FlowSummary = Omit<Flow, 'definition'>
export type FlowPage = { flows: FlowSummary[]; next_cursor: string | null }

/** The most JSON characters of all cached definitions of a process. */
const CACHED_CHARS = 64_000_000

/** A tenant's flows and the built-in ones, as they are stored: by name, by version, and as they run. */
export class StoredFlows {
  protected readonly store: FlowStore
  /** Versions never change, so a cached one is never stale. The compiler's cache uses these objects as keys. */
  readonly #definitions = new LRUCache<string, FlowDefinition>({ maxSize: CACHED_CHARS })

  constructor(store: FlowStore) {
    this.store = store
  }

  /** In the order of their names. Throws `invalid_request` for an invalid cursor. */
  async list(tenant: TenantId, { limit, cursor }: { limit: number; cursor?: string | undefined }): Promise<FlowPage> {
    const [after = ''] = startOfPage(cursor, ['string']) ?? []
    const stored = await this.store.heads(tenant, { limit: limit + 1, ...(after !== '' && { after }) })
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
    const definition = (await this.store.revision(tenant, { uid, version }))?.definition
    if (definition) this.#definitions.set(key, definition, { size: JSON.stringify(definition).length })
    return definition
  }

  /** The 50 newest, newest first; fewer when they are very long. Throws `not_found`. */
  async revisions(tenant: TenantId, name: string): Promise<ListedRevision[]> {
    const builtIn = findBuiltIn(name)
    if (builtIn) return [shownRevision(builtIn, builtIn)]
    const head = (await this.head(tenant, name)) ?? raise(noFlow(name))
    const revisions = await this.store.revisions(tenant, head)
    return revisions.map((revision) => shownRevision(revision, head))
  }

  async #wasPublished(tenant: TenantId, flow: Flow, version: number): Promise<boolean> {
    if (version === flow.published_version) return true
    const { uid } = flow
    return (await this.store.revision(tenant, { uid, version }))?.was_published === true
  }

  async #find(tenant: TenantId, name: string, { isRecent = false } = {}): Promise<Flow | undefined> {
    const builtIn = findBuiltIn(name)
    if (builtIn) return builtIn
    const head = await this.head(tenant, name, isRecent)
    // If the revision is missing, the flow was deleted between the two reads.
    const definition = head && (await this.definitionOf(tenant, head))
    return definition && asFlow(head, definition)
  }

  protected async head(tenant: TenantId, name: string, isRecent = false): Promise<FlowHead | undefined> {
    if (!isFlowName(name)) return undefined
    return isRecent ? this.store.recentHead(tenant, name) : this.store.head(tenant, name)
  }
}

export type RunnableFlow = FlowRef & Pick<Flow, 'definition'>

export type ListedRevision = Pick<FlowRevision, 'version' | 'definition' | 'created_at'> & { was_published: boolean }

export function asFlow({ evaluation: _evaluation, ...head }: FlowHead, definition: FlowDefinition): Flow {
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

export function raise(error: Error): never {
  throw error
}
