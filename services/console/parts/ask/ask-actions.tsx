import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Ask } from '../../api/pending.ts'
import { tellFailure } from '../../base/announce.ts'
import { Line } from '../foreign.tsx'
import { type Reply, reply } from './reply.ts'
import { NotSeen } from './whole.tsx'

/** The action that a person takes on a request. */
export type Doing = 'deciding' | 'editing' | 'denying'

/** A click that was meant for what stood here before cannot allow. */
const ARM_MS = 400

/** Whether something has been shown for long enough to be pressed. */
function useArmed(): boolean {
  const isArmed = useSignal(false)
  useEffect(() => {
    const timer = setTimeout(() => (isArmed.value = true), ARM_MS)
    return () => clearTimeout(timer)
  }, [])
  return isArmed.value
}

/** `isSeen`: all that the call does has been shown. Until then nothing allows it. */
export function AskActions({ ask, doing, isSeen }: { ask: Ask; doing: Signal<Doing>; isSeen: boolean }) {
  const isArmed = useArmed()
  const isBusy = useSignal(false)
  const answer = (given: Reply) => async () => {
    isBusy.value = true
    await reply(ask, given).catch(tellFailure)
    isBusy.value = false
  }
  const allows = { isOff: !isArmed || isBusy.value || !isSeen }
  return (
    <div class="row actions">
      {!isSeen && <NotSeen />}
      <Act letter="a" look="main" {...allows} onPress={answer({ allow: true })}>
        Allow once
      </Act>
      {isOfSession(ask) && (
        <Act letter="s" {...allows} onPress={answer({ allow: true, remember: 'session' })}>
          Allow <Line text={ask.tool_name} /> for this session
        </Act>
      )}
      <Act letter="e" isOff={isBusy.value} onPress={() => (doing.value = 'editing')}>
        Edit …
      </Act>
      <Act letter="d" look="danger" isOff={isBusy.value} onPress={() => (doing.value = 'denying')}>
        Deny …
      </Act>
    </div>
  )
}

type ActProps = {
  /** The key that goes to it. */
  letter: string
  look?: 'main' | 'danger'
  isOff: boolean
  onPress(): unknown
  children: ComponentChildren
}

const Act = ({ letter, look, isOff, onPress, children }: ActProps) => (
  <button
    type="button"
    class={`button ${look ?? ''}`}
    data-key={letter}
    disabled={isOff}
    aria-keyshortcuts={letter}
    onClick={() => void onPress()}
  >
    {children}
  </button>
)

/** A one-shot run has no session in which a tool could be remembered. */
const isOfSession = ({ session_id, run_id }: Ask) => session_id !== run_id
