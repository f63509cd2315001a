import { SYSTEM_TENANT, type TenantId } from '../../kernel/tenant.ts'
import type { ObjectContent, Objects } from '../../platform/objects/port.ts'
import type { Collection, Store } from '../../platform/store/port.ts'
import { FILE_CONTENTS, FILE_DUES, type FileContent, type FileDue } from './records.ts'

const DUE_PAGE = 100

/** A file that has, or has had, these bytes. */
export type ContentUse = { tenant: TenantId; fileId: string; sha256: string }

/** The bytes of tenants' files in the objects, each stored once for a tenant, and the list of files that need work at a certain time. */
export class FileContents {
  readonly #documents: Collection
  readonly #dues: Collection
  readonly #objects: Objects
  readonly #now: () => number

  constructor(store: Store, objects: Objects, now: () => number) {
    this.#documents = store.collection(FILE_CONTENTS)
    this.#dues = store.collection(FILE_DUES)
    this.#objects = objects
    this.#now = now
  }

  /** Announces a file, before anything of it is stored. `sha256` is empty while its bytes arrive in parts. */
  async announce({ tenant, fileId, sha256 }: ContentUse, dueMs: number): Promise<void> {
    const due: FileDue = {
      ...{ file_id: fileId, owner: tenant, content: contentKey(tenant, sha256) },
      ...{ is_upload: sha256 === '', due_ms: dueMs },
    }
    await this.#dues.insert(SYSTEM_TENANT, due)
  }

  /** Says which bytes an announced file is about to have. Returns `undefined` when it has been forgotten meanwhile. */
  async announceBytes({ tenant, fileId, sha256 }: ContentUse): Promise<FileDue | undefined> {
    const set = { content: contentKey(tenant, sha256) }
    const found = await this.#dues.update(SYSTEM_TENANT, { key: { file_id: fileId }, where: {}, set })
    return found?.doc as FileDue | undefined
  }

  async setDue(fileId: string, dueMs: number): Promise<FileDue | undefined> {
    const set = { due_ms: dueMs }
    const found = await this.#dues.update(SYSTEM_TENANT, { key: { file_id: fileId }, where: {}, set })
    return found?.doc as FileDue | undefined
  }

  /** Yields all entries that are due now, the oldest first. */
  async *due(): AsyncGenerator<FileDue> {
    const until = [this.#now()]
    for (let after: [number, string] | undefined; ; ) {
      const page = await this.#dues.page(SYSTEM_TENANT, { until, after, limit: DUE_PAGE })
      const dues = page.map(({ doc }) => doc as FileDue)
      yield* dues
      const last = dues.at(-1)
      if (!last || dues.length < DUE_PAGE) return
      after = [last.due_ms, last.file_id]
    }
  }

  /** Stores the bytes of an announced file unless they are already stored. Throws `unavailable`. */
  async use({ tenant, fileId, sha256 }: ContentUse, content: ObjectContent): Promise<void> {
    for (;;) {
      const known = await this.#documents.get(tenant, { sha256 })
      if (known) {
        const doc = { ...known.doc, used_ms: this.#now() }
        if (await this.#documents.replaceIfVersion(tenant, { ...known, doc })) return
        continue
      }
      const object = objectKey(tenant, sha256, fileId)
      await this.#objects.write(object, content)
      const doc: FileContent = { sha256, object, used_ms: this.#now() }
      if (await this.#documents.insert(tenant, doc)) return
      await this.#objects.delete(object) // Another upload has stored the same bytes first.
    }
  }

  async objectOf(tenant: TenantId, sha256: string): Promise<string | undefined> {
    const known = await this.#documents.get(tenant, { sha256 })
    return (known?.doc as FileContent | undefined)?.object
  }

  /** Forgets a file whose record is gone: deletes its bytes unless another file has the same, and then its entry in the list. It can be repeated. */
  async forget({ owner: tenant, file_id: fileId, content, object }: FileDue): Promise<void> {
    const sha256 = content.slice(content.indexOf(' ') + 1)
    if (object !== undefined && object !== (await this.objectOf(tenant, sha256))) await this.#objects.delete(object)
    if (sha256 !== '') await this.#release({ tenant, fileId, sha256 })
    await this.#dues.delete(SYSTEM_TENANT, { file_id: fileId })
  }

  async #release(use: ContentUse): Promise<void> {
    const { tenant, fileId, sha256 } = use
    const own = objectKey(tenant, sha256, fileId)
    for (;;) {
      const known = await this.#documents.get(tenant, { sha256 })
      const object = (known?.doc as FileContent | undefined)?.object
      if (object !== own) await this.#objects.delete(own) // The object was written, but no record names it.
      if (!known || object === undefined || (await this.#isUsedBeside(use))) return
      // Stored first, so that the deletion can be completed if it is interrupted.
      await this.#dues.update(SYSTEM_TENANT, { key: { file_id: fileId }, where: {}, set: { object } })
      if (!(await this.#documents.delete(tenant, { sha256 }, known.version))) continue // Another file has begun to use these bytes meanwhile.
      return this.#objects.delete(object)
    }
  }

  /** Deletes the objects whose keys begin with `prefix`. */
  async deleteAll(prefix: string): Promise<void> {
    for await (const { key } of this.#objects.list(prefix)) await this.#objects.delete(key)
  }

  async #isUsedBeside({ tenant, fileId, sha256 }: ContentUse): Promise<boolean> {
    const where = { content: contentKey(tenant, sha256) }
    const found = await this.#dues.page(SYSTEM_TENANT, { where, limit: 2 })
    return found.some(({ doc }) => (doc as FileDue).file_id !== fileId)
  }
}

const contentKey = (tenant: TenantId, sha256: string): string => `${tenant} ${sha256}`

/**
 * The key of an object: `name` identifies the bytes, `end` the file that has brought them. The tenant's id is encoded,
 * because it may contain a colon.
 */
export const objectKey = (tenant: TenantId, name: string, end: string): string =>
  `${Buffer.from(tenant).toString('hex')}/${name}.${end}`

/** The prefix of the keys of an upload's parts. */
export const partsOf = ({ owner, file_id }: FileDue): string => objectKey(owner, file_id, '')
