import type { JsonObject } from '../../../kernel/events.ts'
import type { Stored } from '../../../platform/store/port.ts'
import type { Flow, FlowRef } from '../port.ts'

/** A stored flow without its definition, which is in the revision of its version. */
export type FlowHead = Omit<Flow, 'definition' | 'is_built_in'> & {
  /** The newest evaluation of exactly this version. */
  evaluation?: FlowEvaluation
}

/** The result of an evaluation: the share of its runs, 0 to 1, that passed. */
export type FlowEvaluation = { pass_rate: number; runs: number; evaluated_at: string }

/** A version of a flow as it was saved. It never changes. */
export type FlowRevision = { version: number; created_at: string } & Pick<Flow, 'definition' | 'ignored_fields'>

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
export function moved(
  { evaluation: _evaluation, ignored_fields: _fields, ...head }: FlowHead,
  { version, created_at, ...rest }: FlowRevision,
): FlowHead {
  return { ...head, version, state: 'draft', updated_at: later(head.updated_at, created_at), ...ignoredOf(rest) }
}

const ignoredOf = ({ ignored_fields }: Pick<Flow, 'ignored_fields'>) => ignored_fields && { ignored_fields }

/** The same object when it is published already. */
export const published = (head: FlowHead, at: string): FlowHead =>
  head.state === 'published'
    ? head
    : { ...head, state: 'published', published_version: head.version, updated_at: later(head.updated_at, at) }

/** The clocks of two processes may differ. */
const later = (one: string, other: string) => (one > other ? one : other)

export const toHead = ({ doc }: Stored): FlowHead => doc as FlowHead

export const toDoc = (uid: string, { version, ...rest }: FlowRevision): JsonObject => ({
  uid,
  revision: version,
  ...rest,
})

export function toRevision({ doc }: Stored): FlowRevision {
  const { revision, definition, created_at, ...rest } = doc as { revision: number } & Omit<FlowRevision, 'version'>
  return { version: revision, definition, created_at, ...ignoredOf(rest) }
}
