import { signal } from '@preact/signals'
import { ofTab } from './tab.ts'

/** The sentence that screen readers read out next. Deltas of a text are never announced. */
export const announcement = ofTab(() => signal(''))

export function announce(sentence: string): void {
  announcement().value = sentence
}

export type Toast = { id: number; text: string; tone: 'info' | 'bad' }

/** Short messages about what was just done. */
export const toasts = ofTab(() => signal<readonly Toast[]>([]))

const SHOWN_MS = { info: 5_000, bad: 12_000 } as const
const MOST_TOASTS = 4

export function tell(text: string, tone: Toast['tone'] = 'info'): void {
  const toast = { id: (toasts().peek().at(-1)?.id ?? 0) + 1, text, tone }
  toasts().value = [...toasts().value, toast].slice(-MOST_TOASTS)
  announce(text)
  setTimeout(() => {
    toasts().value = toasts().value.filter(({ id }) => id !== toast.id)
  }, SHOWN_MS[tone])
}

/** Tells why something could not be done. */
export const tellFailure = (cause: unknown): void => tell(cause instanceof Error ? cause.message : String(cause), 'bad')
