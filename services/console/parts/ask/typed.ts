import { type Signal, signal } from '@preact/signals'
import { ofTab } from '../../base/tab.ts'

const reasons = ofTab(() => new Map<string, Signal<string>>())
const inputs = ofTab(() => new Map<string, Signal<string | undefined>>())

/** The reason that the person is typing for a request. It is kept if someone else decides first. */
export const typedReason = (id: string): Signal<string> => of(reasons(), id, '')

/** The changed input that the person is typing, if any. It is kept in the same way. */
export const typedInput = (id: string): Signal<string | undefined> => of(inputs(), id, undefined)

function of<T>(texts: Map<string, Signal<T>>, id: string, none: T): Signal<T> {
  const known = texts.get(id) ?? signal(none)
  texts.set(id, known)
  return known
}

/**
 * Sends the typed text, and returns whether it was accepted. The field is emptied (`none`) meanwhile, and filled again
 * if the text was not accepted.
 */
export async function sendTyped<T>(typed: Signal<T>, none: T, send: () => Promise<boolean>): Promise<boolean> {
  const text = typed.peek()
  typed.value = none
  let isTaken = false
  try {
    isTaken = await send()
  } finally {
    if (!isTaken) typed.value = text
  }
  return isTaken
}
