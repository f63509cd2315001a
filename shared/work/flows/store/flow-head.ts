import type { JsonObject } from '../../../kernel/events.ts'
import type { Stored } from '../../../platform/store/port.ts'
import { type Flow, type FlowRef, servedVersion } from '../port.ts'

/** A stored flow without its definition, which is in the revision of its version. */
export type FlowHead = Omit<Flow, 'definition' | 'is_built_in'> & {
  /** The newest evaluation of exactly this version. */
  evaluation?: FlowEvaluation
}

/** The result of an evaluation: the share of its runs, 0 to 1, that passed. */
export type FlowEvaluation = { pass_rate: number; runs: number; evaluated_at: string }

/** A saved version of a flow. Only `was_published` is set later. */
export type FlowRevision = Pick<Flow, 'version' | 'definition' | 'created_at' | 'ignored_fields'> & {
  /** Whether the published version stays in use. It is stored, because another writer may move the head. */
  keeps_published?: true
  /** Set when another version replaces it as the published one. */
  was_published?: true
}

export type FlowVersion = Pick<FlowRef, 'uid' | 'version'>

export const newHead = (name: string, uid: string, { version, created_at, ...rest }: FlowRevision): FlowHead => ({
  name,
  uid,
  version,
  state: 'draft',
  created_at,
  updated_at: created_at,
  published_version: null,
  ...ignoredOf(rest),
})

/** Every save makes a draft (api.md "Flow"). The evaluation and the ignored fields belong to the former version. */
export function moved(former: FlowHead, { version, created_at, keeps_published, ...rest }: FlowRevision): FlowHead {
  const { evaluation: _evaluation, ignored_fields: _fields, kept_version: _kept, ...head } = former
  const kept = keeps_published ? servedVersion(former) : null
  const updated_at = later(head.updated_at, created_at)
  return {
    ...head,
    version,
    state: 'draft',
    updated_at,
    ...(kept !== null && { kept_version: kept }),
    ...ignoredOf(rest),
  }
}

const ignoredOf = ({ ignored_fields }: Pick<Flow, 'ignored_fields'>) => ignored_fields && { ignored_fields }

/** Returns the same object if it is already published. */
export function published(draft: FlowHead, at: string): FlowHead {
  if (draft.state === 'published') return draft
  const { kept_version: _kept, ...head } = draft
  return { ...head, state: 'published', published_version: head.version, updated_at: later(head.updated_at, at) }
}

/** The clocks of two processes may differ. */
const later = (one: string, other: string) => (one > other ? one : other)

export const toHead = ({ doc }: Stored): FlowHead => doc as FlowHead

export const toDoc = (uid: string, { version, ...rest }: FlowRevision): JsonObject => ({
  uid,
  revision: version,
  ...rest,
})

export function toRevision({ doc }: Stored): FlowRevision {
  const {
    uid: _uid,
    revision: version,
    ...rest
  } = doc as { uid: string; revision: number } & Omit<FlowRevision, 'version'>
  return { version, ...rest }
}
