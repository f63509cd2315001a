import { type ReadonlySignal, type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { syntaxErrorAt } from '../../../../shared/reading/json-places.ts'
import type { Problem } from './json-editor.tsx'

/** How long after the last key press the server checks the text. */
const PAUSE_MS = 400

export type Checked<T> = { problems: readonly Problem[]; answer: T | undefined; isChecking: boolean }

/** Checks a text while it is written: the browser checks that it is JSON, and `check` whether the server accepts it. */
export function useCheckedJson<T extends { problems: readonly Problem[] }>(
  text: Signal<string>,
  check: (value: unknown) => Promise<T>,
): ReadonlySignal<Checked<T>> {
  const checked = useSignal<Checked<T>>({ problems: [], answer: undefined, isChecking: false })
  useEffect(() => {
    let isWanted = true
    const show = (next: Checked<T>) => isWanted && (checked.value = next)
    const timer = setTimeout(() => void run(text.value, check, show), PAUSE_MS)
    checked.value = { ...checked.peek(), isChecking: true }
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [text.value])
  return checked
}

const NO_JSON = 'From here on this is no JSON: look for a comma, a quote or a bracket.'

async function run<T extends { problems: readonly Problem[] }>(
  text: string,
  check: (value: unknown) => Promise<T>,
  show: (checked: Checked<T>) => unknown,
): Promise<void> {
  const at = syntaxErrorAt(text)
  if (at !== undefined) {
    show({ problems: [{ param: '', message: NO_JSON, at }], answer: undefined, isChecking: false })
    return
  }
  try {
    const answer = await check(JSON.parse(text))
    show({ problems: answer.problems, answer, isChecking: false })
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause)
    const param = cause instanceof Error && 'param' in cause && typeof cause.param === 'string' ? cause.param : ''
    show({ problems: [{ param, message }], answer: undefined, isChecking: false })
  }
}
