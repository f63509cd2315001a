import type { JsonObject } from '../events.ts'
import type { TenantId } from '../tenant.ts'

/** What a store can look up and order by; strings in the order of their UTF-8 bytes. */
export type Scalar = string | number
export type Fields = { readonly [field: string]: Scalar }

/**
 * What a store keeps of one kind of document, as data. Field names are top-level ones of the document, in snake_case; each
 * document has all that are named here, as strings or numbers. The tenant stands before every group by itself. A field that is
 * named later than documents were stored is not found in those (MongoDB): write them again.
 */
export type CollectionSpec = {
  readonly name: string
  /** The fields that name one document of a tenant; they never change. */
  readonly key: readonly string[]
  /** Further groups of fields whose values no two documents of a tenant share. */
  readonly unique?: readonly (readonly string[])[]
  /** How it is paged: documents that agree in `within`, in the order of `by`, which names one of them. */
  readonly order?: {
    readonly within: readonly string[]
    readonly by: readonly string[]
    readonly direction: 'ascending' | 'descending'
  }
  /** Fields by whose values a page can be narrowed besides. */
  readonly filters?: readonly string[]
  /** Documents are gone so long after they were inserted. */
  readonly ttlSecs?: number
}

/** A document as it is stored; `version` is 1 when it is inserted and grows by 1 with every replacement. */
export type Stored = { doc: JsonObject; version: number }

export type PageQuery = {
  /** All fields of the order's `within`, and any of `filters`: equality only. */
  where?: Fields
  /** Values of the order's `by`, or of the first few: the page begins behind them, in the order's direction. */
  after?: readonly Scalar[]
  /** Likewise the last ones that belong to the page. */
  until?: readonly Scalar[]
  /** 1 to 1,000. */
  limit: number
}

export type WriteOptions = {
  /**
   * The write is refused (`unavailable`) when it has not left this process so long after the call: a process that was paused
   * does not write what its lease no longer covers (reliability.md rule 4). Never prolongs the store's own deadline.
   */
  withinMs?: number
}

/**
 * Documents of one kind. A document is JSON and comes back as it went in, whatever its keys and strings hold; `undefined` is
 * left out as in JSON. Every method throws `unavailable` within 3 s when the database does not answer: a write may then have
 * happened or not. An acknowledged write outlives the processes.
 */
export interface Collection {
  /** `fields` are the key's, or those of one of the `unique` groups. */
  get(tenant: TenantId, fields: Fields): Promise<Stored | undefined>
  /** Returns whether it is stored now; not, when its key or another unique value is taken. */
  insert(tenant: TenantId, doc: JsonObject, options?: WriteOptions): Promise<boolean>
  /** Replaces the document with the key in `doc`. Returns `false` when its version is another one by now, or it is gone. */
  replaceIfVersion(tenant: TenantId, replacement: Stored): Promise<boolean>
  /** Returns whether it was there, with this version if one is given. */
  delete(tenant: TenantId, key: Fields, version?: number): Promise<boolean>
  page(tenant: TenantId, query: PageQuery): Promise<Stored[]>
}

/** The database. No transactions: single documents and unique fields carry the invariants (design §8). */
export interface Store {
  /** Throws for a collection that the store was not opened with. */
  collection(spec: CollectionSpec): Collection
  /** For how long the database has not answered; 0 while it does. */
  awayMs(): number
  close(): Promise<void>
}
