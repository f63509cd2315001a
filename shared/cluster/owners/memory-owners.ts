import type { LRUCache } from 'lru-cache'
import { createCache } from '../../kernel/cache.ts'
import type { MemoryBus } from '../bus/memory-bus.ts'
import { type Claim, isSameClaim, type MovedRuns, type Owners, type SessionKey } from './owners.ts'

/** The claims on the sessions of a cluster whose processes are all in this one. */
export type ClaimTable = LRUCache<string, Claim>

export const createClaimTable = (max: number): ClaimTable => createCache(max, { ttl: 1, ttlResolution: 0 })

/** The owners of sessions as one process of the cluster reaches them. */
export function createMemoryOwners(bus: Pick<MemoryBus, 'ask'>, claims: ClaimTable): Owners {
  const set = (session: SessionKey, claim: Claim, secs: number) =>
    claims.set(keyOf(session), claim, { ttl: secs * 1000 })
  return {
    claim: (session, claim, secs) =>
      bus.ask(() => {
        const holder = claims.get(keyOf(session)) ?? claim
        if (isSameClaim(holder, claim)) set(session, claim, secs)
        return holder
      }),
    find: (session) => bus.ask(() => claims.get(keyOf(session))),
    replace: (session, { from, to }, secs) =>
      bus.ask(() => {
        const holder = claims.get(keyOf(session))
        if (isSameClaim(holder, to)) return true
        if (!isSameClaim(holder, from)) return false
        set(session, to, secs)
        return true
      }),
    takeOver: (session, { from, to }, secs) =>
      bus.ask(() => {
        const holder = claims.get(keyOf(session))
        if (isSameClaim(holder, to)) return true
        if (holder && holder.epoch !== from) return false
        set(session, to, secs)
        return true
      }),
    release: (session, claim) =>
      bus.ask(() => {
        const holder = claims.get(keyOf(session))
        if (holder && !isSameClaim(holder, claim)) return false
        claims.delete(keyOf(session))
        return true
      }),
  }
}

/** Neither id contains a space, so the key is unambiguous. */
const keyOf = ({ tenant, id }: SessionKey): string => `${tenant} ${id}`

/** The epochs of the workers that have the runs, by tenant and run. */
export type MovedRunTable = LRUCache<string, number>

const KEEP_MS = 86_400_000

export const createMovedRunTable = (max: number): MovedRunTable => createCache(max, { ttl: KEEP_MS, ttlResolution: 0 })

/** The moved runs as one process of the cluster reaches them. */
export const createMemoryMovedRuns = (bus: Pick<MemoryBus, 'ask'>, moved: MovedRunTable): MovedRuns => ({
  record: (tenant, runIds, epoch) =>
    bus.ask(() => {
      for (const runId of runIds) moved.set(`${tenant} ${runId}`, epoch)
    }),
  find: (tenant, runId) => bus.ask(() => moved.get(`${tenant} ${runId}`)),
})
