import { createHash } from 'node:crypto'
import { AppError } from '../../kernel/errors.ts'
import { isJsonObject } from '../../kernel/json.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Collection, CollectionSpec, Store } from './port.ts'
import { storeUnavailable } from './unavailable.ts'

export const IDEMPOTENCY: CollectionSpec = { name: 'idempotency', key: ['operation', 'key'], ttlSecs: 86_400 }

/** The use of an Idempotency-Key by a request; `operation` is the kind of request, for which the key is unique. */
export type KeyUse = { operation: string; key: string }

/** `taken`: the same request has reserved the key before, for this execution. `mismatch`: another request has reserved it. */
export type Reservation = { state: 'reserved' } | { state: 'taken'; id: string } | { state: 'mismatch' }

/**
 * Idempotency keys and their executions (D6.6). A key is forgotten 24 h after its reservation. Every method throws
 * `unavailable` when the store does not answer; repeating it is then safe.
 */
export interface Idempotency {
  /** `hash` is the hash of the request's body, `id` the id of the execution to start. */
  reserve(tenant: TenantId, use: KeyUse & { hash: string; id: string }): Promise<Reservation>
  /** Gives the key another execution. Returns `false` when its execution is not `from`. */
  replace(tenant: TenantId, use: KeyUse & { from: string; to: string }): Promise<boolean>
  /** Frees the key if this is its execution. Returns `false` when a request has already joined it. */
  release(tenant: TenantId, use: KeyUse & { id: string }): Promise<boolean>
}

/** Keys in a store, whose execution can be joined before it is known to be stored. */
export interface JoinableKeys extends Idempotency {
  /**
   * A second request with the key gets this execution as its answer, so the key can no longer be freed. Returns `false`
   * when it was already freed.
   */
  join(tenant: TenantId, use: KeyUse & { id: string }): Promise<boolean>
}

/** Losing the race more often than this means that the cause is not a race. */
const MAX_TRIES = 20

export function createIdempotency(store: Store): JoinableKeys {
  const keys = store.collection(IDEMPOTENCY)
  return {
    async reserve(tenant, { operation, key, hash, id }) {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        if (await keys.insert(tenant, { operation, key, hash, id })) return { state: 'reserved' }
        const taken = await keys.get(tenant, { operation, key })
        if (!taken) continue // The key was released or has expired in between.
        if (taken.doc['hash'] !== hash) return { state: 'mismatch' }
        if (taken.doc['id'] === id) return { state: 'reserved' }
        return { state: 'taken', id: String(taken.doc['id']) }
      }
      throw busyKey()
    },
    async replace(tenant, { operation, key, from, to }) {
      const taken = await keys.get(tenant, { operation, key })
      if (!taken) return false
      const { doc, version } = taken
      if (doc['id'] !== from) return doc['id'] === to
      return keys.replaceIfVersion(tenant, { doc: { ...doc, id: to }, version })
    },
    ...releaseOrJoin(keys),
  }
}

/** One request may free a key while another one joins its execution: the first one wins, and the other one notices it. */
const releaseOrJoin = (keys: Collection): Pick<JoinableKeys, 'release' | 'join'> => ({
  async release(tenant, { operation, key, id }) {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const taken = await keys.get(tenant, { operation, key })
      if (taken?.doc['id'] !== id) return true
      if (taken.doc['is_joined'] === true) return false
      if (await keys.delete(tenant, { operation, key }, taken.version)) return true
    }
    throw busyKey()
  },
  async join(tenant, { operation, key, id }) {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const taken = await keys.get(tenant, { operation, key })
      if (taken?.doc['id'] !== id) return false
      if (taken.doc['is_joined'] === true) return true
      const { doc, version } = taken
      if (await keys.replaceIfVersion(tenant, { doc: { ...doc, is_joined: true }, version })) return true
    }
    throw busyKey()
  },
})

const busyKey = () => storeUnavailable('the key is reserved and released too often')

/** The error for a key that another request has used; `what` names the kind of request. */
export const keyMismatch = (what = 'request'): AppError =>
  new AppError('conflict', `this Idempotency-Key was used with another ${what}: send a new key`, {
    code: 'idempotency_mismatch',
  })

/** The SHA-256, in hex, of a JSON value with the keys of its objects in order: equal for bodies that mean the same. */
export const canonicalHash = (value: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(value, (_key, each: unknown) => (isJsonObject(each) ? sortKeys(each) : each)) ?? '')
    .digest('hex')

const sortKeys = (value: object): object =>
  Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
