import { isDeepStrictEqual } from 'node:util'
import { createKeyedQueue } from '../../../kernel/async/keyed-queue.ts'
import { conflict } from '../../../kernel/errors.ts'
import { newId } from '../../../kernel/ids.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { Collection, CollectionSpec, Store, Stored } from '../../../platform/store/port.ts'
import { OVERTAKEN, untilFirst } from '../../../platform/store/replace.ts'
import type { FlowDefinition } from '../port.ts'
import {
  type FlowEvaluation,
  type FlowHead,
  type FlowRevision,
  type FlowVersion,
  moved,
  newHead,
  published,
  toDoc,
  toHead,
  toRevision,
} from './flow-head.ts'
import { RecentHeads } from './recent-heads.ts'

/** The key is the uid, so that a write for a deleted flow never changes another one that was created under its name. */
export const FLOWS: CollectionSpec = {
  name: 'flows',
  key: ['uid'],
  unique: [['name']],
  order: { within: [], by: ['name'], direction: 'ascending' },
}

export const FLOW_REVISIONS: CollectionSpec = {
  name: 'flow_revisions',
  key: ['uid', 'revision'],
  order: { within: ['uid'], by: ['revision'], direction: 'descending' },
}

export type FlowSave = Pick<FlowRevision, 'definition' | 'ignored_fields' | 'keeps_published'> & {
  /** Saves a version of exactly this flow; without it, of the flow with this name, which is created if there is none. */
  uid?: string
  /** Set to save nothing if the flow's newest definition is equal. */
  isUnchangedKept?: boolean
}

export type FlowStoreOptions = {
  now?: () => Date
  /** How long a head that was read for one run is used for further ones. Each change is acknowledged this much later. */
  headMs?: number
}

const MAX_FLOWS = 1_000
const MAX_REVISIONS = 50
/** A list of revisions is read in batches, and ends after the batch that makes it longer than this. */
const BATCH = 10
const MAX_LIST_CHARS = 8_000_000
const DELETED_AT_ONCE = 20
/** Losing the race more often than this means that the cause is not a race. */
const MAX_TRIES = 100

/**
 * Stores flows: a head for each, and a revision for each of its versions. The insert of revision v + 1 decides what version v + 1
 * is; then the head moves from v to v + 1. A writer that finds revision v + 1 while the head is at v moves the head first, so a
 * process that stopped between the two writes leaves no gap and loses no revision. Readers only see versions up to the head's.
 */
export class FlowStore {
  readonly #heads: Collection
  readonly #revisions: Collection
  readonly #now: () => Date
  readonly #recent: RecentHeads
  /** The writers of one process wait for each other, so that only those of several processes compete. */
  readonly #queue = createKeyedQueue()

  constructor(store: Store, { now = () => new Date(), headMs = 0 }: FlowStoreOptions = {}) {
    this.#heads = store.collection(FLOWS)
    this.#revisions = store.collection(FLOW_REVISIONS)
    this.#now = now
    this.#recent = new RecentHeads(headMs, (tenant, name) => this.head(tenant, name))
  }

  async head(tenant: TenantId, name: string): Promise<FlowHead | undefined> {
    const found = await this.#heads.get(tenant, { name })
    return found && toHead(found)
  }

  /** The head in its present state or that of up to `headMs` ago, but with every change that was acknowledged before this call. */
  recentHead(tenant: TenantId, name: string): Promise<FlowHead | undefined> {
    return this.#recent.get(tenant, name)
  }

  /** Resolves when every process sees the heads as they are at this call. Each change waits for it. */
  settled(): Promise<void> {
    return this.#recent.forgotten()
  }

  /** In ascending order of their names. */
  async heads(tenant: TenantId, { limit, after }: { limit: number; after?: string }): Promise<FlowHead[]> {
    const page = await this.#heads.page(tenant, { limit, ...(after !== undefined && { after: [after] }) })
    return page.map(toHead)
  }

  async revision(tenant: TenantId, { uid, version }: FlowVersion): Promise<FlowRevision | undefined> {
    const found = await this.#revisions.get(tenant, { uid, revision: version })
    return found && toRevision(found)
  }

  /** The newest 50, newest first; fewer when they are very long. */
  async revisions(tenant: TenantId, { uid, version }: FlowVersion): Promise<FlowRevision[]> {
    const list: FlowRevision[] = []
    let after = version + 1
    for (let chars = 0; list.length < MAX_REVISIONS && after > 1 && chars < MAX_LIST_CHARS; ) {
      const batch = await this.#revisions.page(tenant, { where: { uid }, after: [after], limit: BATCH })
      list.push(...batch.map(toRevision))
      for (const { doc } of batch) chars += JSON.stringify(doc).length
      if (batch.length < BATCH) break
      after = list.at(-1)?.version ?? 1
    }
    return list
  }

  /**
   * Stores a definition as the next version, a draft. Returns the flow after this save; `undefined` when the flow with
   * `uid` does not exist. Throws `conflict` when the tenant has too many flows, and when the flow is deleted meanwhile.
   */
  async save(tenant: TenantId, name: string, save: FlowSave): Promise<FlowHead | undefined> {
    const trySave = async () => {
      const found = await this.#heads.get(tenant, { name })
      if (save.uid !== undefined && found?.doc['uid'] !== save.uid) return undefined
      return found ? this.#saveNext(tenant, found, save) : this.#create(tenant, name, save)
    }
    const saved = await this.#queue.run(`${tenant} ${name}`, () => untilFirst(trySave, MAX_TRIES))
    await this.settled()
    return saved
  }

  /**
   * Publishes exactly this version. Returns `undefined` when it is not the flow's newest one. The previously published version is marked
   * first, so that the mark is not lost if a later step fails.
   */
  async publish(tenant: TenantId, version: FlowVersion): Promise<FlowHead | undefined> {
    const found = await this.#heads.get(tenant, { uid: version.uid })
    if (found?.doc['version'] === version.version) await this.#markPublished(tenant, toHead(found))
    const head = await this.#change(tenant, version, (draft) => published(draft, this.#now().toISOString()))
    await this.settled()
    return head
  }

  /** Returns whether this version is still the newest one; otherwise nothing is stored. */
  async saveEvaluation(tenant: TenantId, version: FlowVersion, evaluation: FlowEvaluation): Promise<boolean> {
    return (await this.#change(tenant, version, (head) => ({ ...head, evaluation }))) !== undefined
  }

  /** Returns the flow that was deleted with all its revisions; `undefined` when there was none. */
  async remove(tenant: TenantId, name: string): Promise<FlowHead | undefined> {
    const tryRemove = async () => {
      const found = await this.#heads.get(tenant, { name })
      if (!found) return undefined
      const head = toHead(found)
      if (!(await this.#heads.delete(tenant, { uid: head.uid }, found.version))) return OVERTAKEN
      await this.#removeRevisions(tenant, head)
      return head
    }
    const removed = await this.#queue.run(`${tenant} ${name}`, () => untilFirst(tryRemove, MAX_TRIES))
    await this.settled()
    return removed
  }

  async #saveNext(tenant: TenantId, found: Stored, save: FlowSave): Promise<FlowHead | typeof OVERTAKEN> {
    const head = toHead(found)
    if (save.isUnchangedKept && (await this.#isNewest(tenant, head, save.definition))) return head
    const revision = this.#newRevision(head.version + 1, save)
    const isStored = await this.#revisions.insert(tenant, toDoc(head.uid, revision))
    const decided = isStored ? revision : await this.revision(tenant, { uid: head.uid, version: revision.version })
    const isMoved = decided !== undefined && (await this.#move(tenant, found, decided))
    if (!isStored) return OVERTAKEN
    if (!isMoved) throw conflict(`${head.name} was deleted while it was saved; save it again to create it anew`)
    return moved(head, revision)
  }

  async #isNewest(tenant: TenantId, head: FlowHead, definition: FlowDefinition): Promise<boolean> {
    return isDeepStrictEqual((await this.revision(tenant, head))?.definition, definition)
  }

  async #create(tenant: TenantId, name: string, save: FlowSave): Promise<FlowHead | typeof OVERTAKEN> {
    if ((await this.heads(tenant, { limit: MAX_FLOWS })).length >= MAX_FLOWS)
      throw conflict(`a tenant has at most ${MAX_FLOWS} flows; delete one first`)
    const [uid, revision] = [newId('flow'), this.#newRevision(1, save)]
    await this.#revisions.insert(tenant, toDoc(uid, revision))
    const head = newHead(name, uid, revision)
    if (await this.#heads.insert(tenant, head)) return head
    await this.#revisions.delete(tenant, { uid, revision: 1 })
    return OVERTAKEN
  }

  /** Moves the head to a stored revision, unless another writer has done so. Returns `false` when the flow was deleted. */
  async #move(tenant: TenantId, first: Stored, revision: FlowRevision): Promise<boolean> {
    const { uid } = toHead(first)
    let found: Stored | undefined = first
    return untilFirst(async () => {
      if (!found) {
        // The flow may have been deleted before the revision was stored.
        await this.#revisions.delete(tenant, { uid, revision: revision.version })
        return false
      }
      const head = toHead(found)
      if (head.version >= revision.version) return true
      const change = { doc: moved(head, revision), version: found.version }
      if (await this.#heads.replaceIfVersion(tenant, change)) return true
      found = await this.#heads.get(tenant, { uid })
      return OVERTAKEN
    }, MAX_TRIES)
  }

  /** Changes the head of exactly this version by compare-and-set. */
  #change(
    tenant: TenantId,
    { uid, version }: FlowVersion,
    change: (head: FlowHead) => FlowHead,
  ): Promise<FlowHead | undefined> {
    return untilFirst(async () => {
      const found = await this.#heads.get(tenant, { uid })
      if (found?.doc['version'] !== version) return undefined
      const head = change(toHead(found))
      if (head === found.doc) return head
      return (await this.#heads.replaceIfVersion(tenant, { doc: head, version: found.version })) ? head : OVERTAKEN
    }, MAX_TRIES)
  }

  async #markPublished(tenant: TenantId, { uid, version, published_version: former }: FlowHead): Promise<void> {
    if (former === null || former === version) return
    const found = await this.#revisions.get(tenant, { uid, revision: former })
    if (!found || found.doc['was_published'] === true) return
    // Nothing else changes a revision: another writer can only have set the same mark.
    await this.#revisions.replaceIfVersion(tenant, {
      doc: { ...found.doc, was_published: true },
      version: found.version,
    })
  }

  /** Also deletes the next version, which a writer may have stored without moving the head. */
  async #removeRevisions(tenant: TenantId, { uid, version }: FlowHead): Promise<void> {
    for (let newest = version + 1; newest > 0; newest -= DELETED_AT_ONCE) {
      const numbers = Array.from({ length: Math.min(DELETED_AT_ONCE, newest) }, (_, i) => newest - i)
      await Promise.all(numbers.map((revision) => this.#revisions.delete(tenant, { uid, revision })))
    }
  }

  #newRevision(version: number, { definition, ignored_fields, keeps_published }: FlowSave): FlowRevision {
    const created_at = this.#now().toISOString()
    return {
      version,
      definition,
      created_at,
      ...(ignored_fields && { ignored_fields }),
      ...(keeps_published && { keeps_published }),
    }
  }
}
