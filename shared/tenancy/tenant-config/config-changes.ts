import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../kernel/events.ts'
import type { TenantConfig } from './config.ts'

/** A part of the configuration; all but the first three have names. */
export type ConfigPart = 'routing' | 'audit' | 'files' | 'limits' | 'instance' | 'secret' | 'webhook'

/** One thing that a change has created, changed or deleted, as the API shows it before and after: keys are masked (D28a). */
export type ChangedPart = { part: ConfigPart; name: string | null; from: JsonObject | null; to: JsonObject | null }

/** A change of a tenant's configuration. `subject` is the caller within the tenant (D3.5). */
export type AuditedChange = { id: string; at: string; subject: string; changes: ChangedPart[] }

type Named = { readonly name: string }

const LISTS = { instance: 'instances', secret: 'secrets', webhook: 'webhooks' } as const

/** The parts in which two configurations differ. A part that was written again is listed too: a key may differ where its masked form does not. */
export function changedParts(before: TenantConfig, after: TenantConfig): ChangedPart[] {
  const singles = (['routing', 'audit', 'files', 'limits'] as const)
    .filter((part) => !isDeepStrictEqual(before[part], after[part]))
    .map((part) => ({ part, name: null, from: before[part] as JsonObject, to: after[part] as JsonObject }))
  const named = Object.entries(LISTS).flatMap(([part, list]) =>
    changedItems(before[list], after[list]).map((change) => ({ part: part as ConfigPart, ...change })),
  )
  return [...singles, ...named]
}

function changedItems(before: readonly Named[], after: readonly Named[]): Omit<ChangedPart, 'part'>[] {
  const names = new Set([...before, ...after].map(({ name }) => name))
  return [...names].flatMap((name) => {
    const [from, to] = [before, after].map((items) => items.find((item) => item.name === name))
    return isDeepStrictEqual(from, to) ? [] : [{ name, from: shown(from), to: shown(to) }]
  })
}

/** Without the fields that the API does not show. */
function shown(item: Named | undefined): JsonObject | null {
  if (!item) return null
  const { name: _name, sealed: _sealed, id: _id, revision: _revision, ...fields } = item as Named & JsonObject
  return fields
}
