import { signal } from '@preact/signals'

/** How far this machine's clock is behind the server's, by the newest answer. Deadlines are the server's times. */
let offsetMs = 0

export function learnServerTime(date: string | null): void {
  const at = date === null ? Number.NaN : Date.parse(date)
  if (!Number.isNaN(at) && Math.abs(at - Date.now()) > 1_500) offsetMs = at - Date.now()
  else if (!Number.isNaN(at)) offsetMs = 0
}

export const serverNow = (): number => Date.now() + offsetMs

/** The server's time, once a second while something shows it. */
export const clock = signal(serverNow())

let readers = 0
let timer: ReturnType<typeof setInterval> | undefined

/** Lets the clock run until the returned function is called. */
export function runClock(): () => void {
  if (readers++ === 0) clock.value = serverNow() // It runs for the others.
  timer ??= setInterval(() => {
    clock.value = serverNow()
  }, 1_000)
  return () => {
    if (--readers > 0) return
    clearInterval(timer)
    timer = undefined
  }
}
