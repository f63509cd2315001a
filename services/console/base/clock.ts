import { signal } from '@preact/signals'
import { ofTab } from './tab.ts'

/**
 * The clock of the server. `offsetMs`: how far this machine's clock is behind it, measured with the newest answer.
 * Deadlines are given in the server's time.
 */
const server = ofTab(() => ({
  offsetMs: 0,
  readers: 0,
  timer: undefined as ReturnType<typeof setInterval> | undefined,
}))

export function learnServerTime(date: string | null): void {
  const at = date === null ? Number.NaN : Date.parse(date)
  if (!Number.isNaN(at)) server().offsetMs = Math.abs(at - Date.now()) > 1_500 ? at - Date.now() : 0
}

export const serverNow = (): number => Date.now() + server().offsetMs

/** The server's time, once a second while something shows it. */
export const clock = ofTab(() => signal(serverNow()))

/** Lets the clock run until the returned function is called. */
export function runClock(): () => void {
  const [own, shown] = [server(), clock()]
  if (own.readers++ === 0) shown.value = serverNow() // It runs for the others.
  own.timer ??= setInterval(() => {
    shown.value = serverNow()
  }, 1_000)
  return () => {
    if (--own.readers > 0) return
    clearInterval(own.timer)
    own.timer = undefined
  }
}
