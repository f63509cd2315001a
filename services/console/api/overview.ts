import { signal } from '@preact/signals'
import { learnServerTime } from '../base/clock.ts'
import type { Overview } from '../base/overview.ts'
import { ofTab } from '../base/tab.ts'

/** The newest answer, its time, and the error if a newer one could not be read. */
export const overview = ofTab(() => signal<{ data?: Overview; readAt?: number; problem?: string }>({}))

/** The overview has no events, so it is read again after this time while the page is visible. */
const EVERY_MS = 5_000
const WITHIN_MS = 10_000

/** Reads the overview repeatedly, until the returned function is called. */
export function watchOverview(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isOver = false
  const next = async () => {
    clearTimeout(timer)
    if (!document.hidden) await readOverview()
    if (!isOver) timer = setTimeout(() => void next(), EVERY_MS)
  }
  const onVisible = () => document.hidden || void next()
  document.addEventListener('visibilitychange', onVisible)
  void next()
  return () => {
    isOver = true
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', onVisible)
  }
}

async function readOverview(): Promise<void> {
  try {
    const headers = { accept: 'application/json' }
    const response = await fetch('/', { headers, signal: AbortSignal.timeout(WITHIN_MS) })
    if (!response.ok) throw new Error(`The process answered ${response.status}.`)
    learnServerTime(response.headers.get('date'))
    overview().value = { data: (await response.json()) as Overview, readAt: Date.now() }
  } catch (cause) {
    overview().value = { ...overview().peek(), problem: cause instanceof Error ? cause.message : String(cause) }
  }
}
