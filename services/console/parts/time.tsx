import { computed } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { clock, runClock } from '../base/clock.ts'
import { absolute, countdown, duration, relative } from '../base/format.ts'

/** A time relative to now; pointer or focus shows the full time. */
export function Ago({ at }: { at: string }) {
  useEffect(runClock, [])
  const text = useMemo(() => computed(() => relative(at, clock().value)), [at]) // It changes more seldom than the clock.
  return (
    <time class="number" dateTime={at} title={absolute(at)}>
      {text.value}
    </time>
  )
}

/** A duration, which keeps counting while the work continues. */
export function Took({ from, to }: { from: string; to: string | null | undefined }) {
  useEffect(to ? () => undefined : runClock, [to])
  const end = to ? Date.parse(to) : clock().value
  return <span class="number">{duration(Math.max(0, end - Date.parse(from)))}</span>
}

/** The time that is left until a deadline. */
export function Countdown({ until }: { until: string }) {
  useEffect(runClock, [])
  const leftMs = Date.parse(until) - clock().value
  return (
    <span class="number" title={absolute(until)}>
      {leftMs > 0 ? countdown(leftMs) : 'over'}
    </span>
  )
}
