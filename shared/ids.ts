import { randomUUID } from 'node:crypto'

export type IdPrefix = 'req' | 'sess' | 'run' | 'perm' | 'sub' | 'chg' | 'rev'

/** Creates a random id: the prefix and 32 hex digits, for example `run_…` (D2.8). */
export function newId<P extends IdPrefix>(prefix: P): `${P}_${string}` {
  return `${prefix}_${randomUUID().replaceAll('-', '')}`
}
