import { useEffect } from 'preact/hooks'
import type { Ask } from '../../api/pending.ts'
import { clock, runClock } from '../../base/clock.ts'
import { Countdown } from '../time.tsx'
import '../meter.css'
import './deadline.css'

/** The time that is left for an answer, as a number and a bar. */
export function Deadline({ ask }: { ask: Pick<Ask, 'created_at' | 'expires_at'> }) {
  useEffect(runClock, [])
  const [from, to] = [Date.parse(ask.created_at), Date.parse(ask.expires_at)]
  const left = Math.max(0, Math.min(1, (to - clock().value) / (to - from)))
  return (
    <span class={`deadline ${left < 0.2 ? 'late' : ''}`}>
      <progress class="meter" max={1} value={left} aria-hidden="true" />
      <span class="small" title="Without an answer the call is denied">
        {left > 0 ? 'Answer within ' : 'The time is '}
        <Countdown until={ask.expires_at} />
      </span>
    </span>
  )
}
