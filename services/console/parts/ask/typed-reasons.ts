import { type Signal, signal } from '@preact/signals'
import { ofTab } from '../../base/tab.ts'

const typed = ofTab(() => new Map<string, Signal<string>>())

/** The reason that is being written for a request. It stays when somebody else decides first. */
export function typedReason(id: string): Signal<string> {
  const known = typed().get(id) ?? signal('')
  typed().set(id, known)
  return known
}
