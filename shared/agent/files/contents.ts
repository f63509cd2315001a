import { newToken } from '../../kernel/ids.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ObjectContent, Objects } from '../../platform/objects/port.ts'
import type { Collection, Stored } from '../../platform/store/port.ts'
import type { FileContent } from './records.ts'

/** The bytes of tenants' files in the objects, each stored once for a tenant. */
export class FileContents {
  readonly #documents: Collection
  readonly #objects: Objects
  readonly #now: () => number

  constructor(documents: Collection, objects: Objects, now: () => number) {
    this.#documents = documents
    this.#objects = objects
    this.#now = now
  }

  /** Stores the bytes unless they are there, and counts one file more that has them. Throws `unavailable`. */
  async use(tenant: TenantId, content: ObjectContent): Promise<void> {
    const { sha256 } = content
    for (;;) {
      const known = await this.#documents.get(tenant, { sha256 })
      if (known) {
        if (await this.#replace(tenant, known, 1)) return
        continue
      }
      const object = `${encode(tenant)}/${sha256}.${newToken()}`
      await this.#objects.write(object, content)
      const doc: FileContent = { sha256, object, uses: 1, used_ms: this.#now() }
      if (await this.#documents.insert(tenant, doc)) return
      await this.#objects.delete(object) // Another upload of the same bytes was first.
    }
  }

  /** Counts one file less that has the bytes, and deletes them behind the last one. */
  async release(tenant: TenantId, sha256: string): Promise<void> {
    for (;;) {
      const known = await this.#documents.get(tenant, { sha256 })
      if (!known) return
      const { uses, object } = known.doc as FileContent
      if (uses > 1) {
        if (await this.#replace(tenant, known, -1)) return
      } else if (await this.#documents.delete(tenant, { sha256 }, known.version)) {
        await this.#objects.delete(object)
        return
      }
    }
  }

  async objectOf(tenant: TenantId, sha256: string): Promise<string | undefined> {
    const known = await this.#documents.get(tenant, { sha256 })
    return (known?.doc as FileContent | undefined)?.object
  }

  /** Deletes an object whose upload or release broke off: nothing refers to it, and it was not used for `restMs`. */
  async sweep(object: string, { restMs, isUsed }: Sweep): Promise<void> {
    const [tenant, sha256] = decode(object)
    const known = await this.#documents.get(tenant, { sha256 })
    const doc = known?.doc as FileContent | undefined
    if (known && doc?.object === object) {
      if (doc.used_ms > this.#now() - restMs || (await isUsed(tenant, sha256))) return
      if (!(await this.#documents.delete(tenant, { sha256 }, known.version))) return
    }
    await this.#objects.delete(object)
  }

  #replace(tenant: TenantId, known: Stored, more: 1 | -1): Promise<boolean> {
    const doc = known.doc as FileContent
    return this.#documents.replaceIfVersion(tenant, {
      ...known,
      doc: { ...doc, uses: doc.uses + more, used_ms: this.#now() },
    })
  }
}

type Sweep = { restMs: number; isUsed(tenant: TenantId, sha256: string): Promise<boolean> }

/** Keys of objects have no colon, which a tenant's id may have. */
const encode = (tenant: TenantId): string => Buffer.from(tenant).toString('hex')

/** The tenant and the hash in the key of an object. */
export function decode(object: string): [tenant: TenantId, sha256: string] {
  const [tenant = '', rest = ''] = object.split('/')
  return [Buffer.from(tenant, 'hex').toString() as TenantId, rest.slice(0, 64)]
}
