import { randomUUID } from 'node:crypto'

export type IdPrefix = 'req' | 'sess' | 'run' | 'perm' | 'sub'

/** Makes an id such as `run_` + 32 hex digits (D2.8). */
export function newId<P extends IdPrefix>(prefix: P): `${P}_${string}` {
  return `${prefix}_${randomUUID().replaceAll('-', '')}`
}
