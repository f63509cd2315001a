import type { JsonObject } from '../../shared/kernel/events.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type {
  CollectionSpec,
  Fields,
  FieldUpdate,
  OwnedDocument,
  PageQuery,
  Scalar,
  Stored,
} from '../../shared/platform/store/port.ts'

type Row = Stored & { tenant: TenantId }

/** Documents of one kind, as the database has them. Each method is one command. It knows no unique fields besides the key, and nothing expires. */
export class MemoryCollection {
  readonly #spec: CollectionSpec
  readonly #rows = new Map<string, Row>()

  constructor(spec: CollectionSpec) {
    this.#spec = spec
  }

  get(tenant: TenantId, key: Fields): Stored | undefined {
    const row = this.#rows.get(this.#keyOf(tenant, key))
    return row && copyOf(row)
  }

  insert(tenant: TenantId, doc: JsonObject): boolean {
    const key = this.#keyOf(tenant, doc as Fields)
    if (this.#rows.has(key)) return false
    this.#rows.set(key, { tenant, doc: structuredClone(doc), version: 1 })
    return true
  }

  insertMissing(docs: readonly OwnedDocument[]): OwnedDocument[] {
    return docs.filter(({ tenant, doc, json }) => {
      const whole = json === undefined ? doc : (JSON.parse(json) as JsonObject)
      return !this.insert(tenant, JSON.parse(JSON.stringify(whole)) as JsonObject)
    })
  }

  replaceIfVersion(tenant: TenantId, { doc, version }: Stored): boolean {
    const key = this.#keyOf(tenant, doc as Fields)
    if (this.#rows.get(key)?.version !== version) return false
    this.#rows.set(key, { tenant, doc: structuredClone(doc), version: version + 1 })
    return true
  }

  update(tenant: TenantId, { key, where, set }: FieldUpdate): Stored | undefined {
    const row = this.#rows.get(this.#keyOf(tenant, key))
    if (!row || !agrees(row.doc, where)) return undefined
    Object.assign(row.doc, structuredClone(set))
    row.version++
    return copyOf(row)
  }

  delete(tenant: TenantId, key: Fields, version?: number): boolean {
    const name = this.#keyOf(tenant, key)
    if (version !== undefined && this.#rows.get(name)?.version !== version) return false
    return this.#rows.delete(name)
  }

  deleteMany(tenant: TenantId, keys: readonly Fields[]): void {
    for (const key of keys) this.delete(tenant, key)
  }

  page(tenant: TenantId, { where = {}, after, until, limit }: PageQuery): Stored[] {
    const { by, direction } = this.#spec.order ?? { by: this.#spec.key, direction: 'ascending' }
    const sign = direction === 'ascending' ? 1 : -1
    const compare = (doc: JsonObject, bound: readonly Scalar[]) =>
      sign *
      compareAll(
        bound.map((_, i) => doc[by[i] ?? ''] as Scalar),
        bound,
      )
    return [...this.#rows.values()]
      .filter((row) => row.tenant === tenant && agrees(row.doc, where))
      .filter(({ doc }) => (!after || compare(doc, after) > 0) && (!until || compare(doc, until) <= 0))
      .toSorted((a, b) =>
        compare(
          a.doc,
          by.map((field) => b.doc[field] as Scalar),
        ),
      )
      .slice(0, limit)
      .map(copyOf)
  }

  nextValue(tenant: TenantId, filter: string, after = ''): string | undefined {
    const values = [...this.#rows.values()].filter((row) => row.tenant === tenant).map(({ doc }) => String(doc[filter]))
    return values.filter((value) => value > after).toSorted((a, b) => (a < b ? -1 : 1))[0]
  }

  #keyOf(tenant: TenantId, fields: Fields): string {
    return JSON.stringify([tenant, ...this.#spec.key.map((field) => fields[field])])
  }
}

const copyOf = ({ doc, version }: Row): Stored => ({ doc: structuredClone(doc), version })

const agrees = (doc: JsonObject, where: Fields): boolean =>
  Object.entries(where).every(([field, value]) => doc[field] === value)

function compareAll(one: readonly Scalar[], other: readonly Scalar[]): number {
  for (const [i, a] of one.entries()) {
    const b = other[i] ?? ''
    if (a !== b) return a < b ? -1 : 1
  }
  return 0
}
