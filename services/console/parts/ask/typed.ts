import { type Signal, signal } from '@preact/signals'
import { ofTab } from '../../base/tab.ts'

const reasons = ofTab(() => new Map<string, Signal<string>>())
const inputs = ofTab(() => new Map<string, Signal<string | undefined>>())

/** The reason that is being written for a request. It stays when somebody else decides first. */
export const typedReason = (id: string): Signal<string> => of(reasons(), id, '')

/** The input that is being written in place of the one that was asked for, if any; the same holds for it. */
export const typedInput = (id: string): Signal<string | undefined> => of(inputs(), id, undefined)

function of<T>(texts: Map<string, Signal<T>>, id: string, none: T): Signal<T> {
  const known = texts.get(id) ?? signal(none)
  texts.set(id, known)
  return known
}

/** Sends what was typed, and returns whether it was taken. It is taken out meanwhile (`none`), and stands there again when it was not taken. */
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
