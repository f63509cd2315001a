import type { ComponentChildren } from 'preact'
import { has, may } from '../../api/caller.ts'
import { hrefOf } from '../../base/router.ts'
import { Notice } from '../notice.tsx'
import { StateBadge } from '../state-badge.tsx'
import { causeOf } from './causes.ts'

type FailedTurnProps = {
  code: string
  /** The server's message, if the event is known. */
  error?: string
  suggestion?: string
  /** Set for a run that is not shown on its own page. */
  runId?: string | undefined
  onRetry?: (() => void) | undefined
  /** Further actions. */
  children?: ComponentChildren
}

/** Why a run has no answer: the cause first, then what the reader can do. */
export function FailedTurn({ code, error, suggestion, runId, onRetry, children }: FailedTurnProps) {
  if (code === 'cancelled') return <StateBadge state="cancelled" word="Stopped" />
  const { text, mayHelp, settings } = causeOf(code)
  const canSet = settings !== undefined && may('admin') && has('config')
  return (
    <Notice tone="bad">
      <div class="stack close failed-turn">
        <strong>{text}</strong>
        {error !== undefined && <p>{error}</p>}
        {suggestion !== undefined && !SAYS_WHAT_TO_DO.test(error ?? '') && <p class="soft">{suggestion}</p>}
        <div class="row">
          {onRetry && mayHelp && (
            <button type="button" class="button" onClick={onRetry}>
              Try again
            </button>
          )}
          {runId !== undefined && (
            <a class="button" href={hrefOf(`/activity/${runId}`)}>
              Open the run
            </a>
          )}
          {canSet && (
            <a class="button" href={hrefOf(settings)}>
              Open Settings
            </a>
          )}
          {children}
          <code class="small soft">{code}</code>
        </div>
      </div>
    </Notice>
  )
}

/** Errors of providers end so. */
const SAYS_WHAT_TO_DO = /: (check|set) \S/
