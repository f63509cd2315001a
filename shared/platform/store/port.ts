import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'

/** A value that a store can look up and order by. Strings are ordered by their UTF-8 bytes. */
export type Scalar = string | number
export type Fields = { readonly [field: string]: Scalar }

/**
 * Describes one kind of document as data. Field names are top-level fields of the document, in snake_case, and every document
 * has a string or a number in each of them. Each group of fields is unique or ordered within a tenant. After a field is added
 * here, MongoDB does not find older documents by it until they are written again.
 */
export type CollectionSpec = {
  readonly name: string
  /** The fields that identify one document of a tenant; they never change. */
  readonly key: readonly string[]
  /** Further groups of fields whose values are unique within a tenant. */
  readonly unique?: readonly (readonly string[])[]
  /** A page contains the documents with equal `within` fields, ordered by the `by` fields, which identify each of them. */
  readonly order?: {
    readonly within: readonly string[]
    readonly by: readonly string[]
    readonly direction: 'ascending' | 'descending'
  }
  /** At most two further fields that a page can be filtered by, one or both. Each way to filter has an index of its own. */
  readonly filters?: readonly [string] | readonly [string, string]
  /** `total` adds up the number in `of`, over the documents with equal `within` fields. Not allowed in a collection whose documents expire. */
  readonly total?: { readonly within: readonly string[]; readonly of: string }
  /** Documents expire this long after they were inserted. */
  readonly ttlSecs?: number
  /**
   * A field that holds the time at which the document expires, in milliseconds since 1970; a replacement can change it. Give it to a
   * collection from its first version on: older documents without an expiry would not be found. Not together with `ttlSecs`.
   */
  readonly expiresBy?: string
  /** Documents may have a body: a text beside them, which `insertMissing` writes, and which `get` returns and pages leave out. */
  readonly hasBody?: boolean
}

/** A stored document. `version` is 1 after the insert and grows by 1 with every replacement. */
export type Stored = { doc: JsonObject; version: number; body?: string | undefined }

/** `json` is the document as JSON, for a caller that can make it with less work than the store. `doc` then needs only the indexed fields. */
export type OwnedDocument = { tenant: TenantId; doc: JsonObject; json?: string; body?: string | undefined }

export type PageQuery = {
  /** Values of all fields of the order's `within`, and of some, all or none of `filters`; compared for equality. */
  where?: Fields
  /** Values of the order's `by` fields, or of the first few: the page begins after them, in the order's direction. */
  after?: readonly Scalar[] | undefined
  /** The same for the end of the page, inclusive. */
  until?: readonly Scalar[] | undefined
  /** 1 to 1,000. */
  limit: number
}

export type Total = { count: number; sum: number }

/** `where`: values of indexed fields, beside the key. `set`: top-level fields, none of which is unique, part of the key or the document's expiry. */
export type FieldUpdate = { key: Fields; where: Fields; set: JsonObject }

export type WriteOptions = {
  /** Refuses the write (`unavailable`) if it was not sent within this time after the call. Never extends the store's own deadline. */
  withinMs?: number
  /**
   * The time until which this process may write, by `performance.now()`. Read right before each time that the write is sent. A write that
   * is sent later, or reaches the database later, is refused (`unavailable`), because another process may have taken over.
   */
  mayWriteUntil?: () => number
  /** With other values than `full`, the default, a store may answer sooner. */
  durability?: Durability
}

/**
 * The failures that an acknowledged write survives, besides a crash of this process. `full`: a power failure, and the loss of a minority
 * of the database's members. `ordered`: the failures that the next `full` write survives; for documents that are useless without that write.
 * `weak`: perhaps none; for documents whose loss their readers can detect.
 */
export type Durability = 'full' | 'ordered' | 'weak'

/**
 * Documents of one kind. A document is JSON and is returned exactly as it was stored, whatever its keys and strings contain;
 * `undefined` is left out as in JSON. A document that has expired is never returned, replaced or deleted. Every method throws
 * `unavailable` within 3 s when the database does not answer; a write may then have happened or not. Unless stated otherwise, an
 * acknowledged write has the durability `full`.
 */
export interface Collection {
  /** `fields` are the fields of the key or of one of the `unique` groups. */
  get(tenant: TenantId, fields: Fields): Promise<Stored | undefined>
  /** Returns `false`, and stores nothing, when the key or another unique value is taken. */
  insert(tenant: TenantId, doc: JsonObject, options?: WriteOptions): Promise<boolean>
  /**
   * Inserts each document whose key and other unique values are free, with one command for all of them, and skips the others, which it returns. When
   * it throws, some may have been inserted; it may be repeated.
   */
  insertMissing(docs: readonly OwnedDocument[], options?: Pick<WriteOptions, 'durability'>): Promise<OwnedDocument[]>
  /**
   * Replaces the document with the key in `doc`. Returns `false`, and changes nothing, when its current version is not
   * `version`, when it does not exist, or when another unique value is taken.
   */
  replaceIfVersion(tenant: TenantId, replacement: Stored, options?: Pick<WriteOptions, 'durability'>): Promise<boolean>
  /**
   * Sets fields of the document with this key if its fields equal `where`, with a single command. Returns the new document, or `undefined` when no
   * document matches.
   */
  update(tenant: TenantId, update: FieldUpdate, options?: Pick<WriteOptions, 'durability'>): Promise<Stored | undefined>
  /** Returns whether the document existed, with this version if one is given. */
  delete(tenant: TenantId, key: Fields, version?: number): Promise<boolean>
  /** Deletes the existing documents with these keys, with one command. When it throws, some may have been deleted; it may be repeated. */
  deleteMany(tenant: TenantId, keys: readonly Fields[], options?: Pick<WriteOptions, 'durability'>): Promise<void>
  page(tenant: TenantId, query: PageQuery): Promise<Stored[]>
  /** The smallest value above `after` that a document has in `filter`, the first of the filters, in a collection whose order has no `within`. */
  nextValue(tenant: TenantId, filter: string, after?: string): Promise<string | undefined>
  /**
   * The number of documents that match `where` (the fields of the total's `within`), and the sum of their numbers. It includes every
   * insert that was acknowledged to any process, and no deleted document.
   */
  total(tenant: TenantId, where: Fields): Promise<Total>
}

/**
 * The database. Concurrent operations of one collection may be sent with one command: each has its own result, and is acknowledged as if it had
 * been sent alone. It has no transactions: writes of single documents and unique fields are enough for the product's invariants. */
export interface Store {
  /** Throws when the store was not opened with this collection. */
  collection(spec: CollectionSpec): Collection
  /** How long the database has not answered; 0 while it answers. */
  awayMs(): number
  close(): Promise<void>
}
