import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Ask } from '../../api/pending.ts'
import { tellFailure } from '../../base/announce.ts'
import { Line } from '../foreign.tsx'
import { habitOf, type Reply, reply } from './reply.ts'
import { NotSeen } from './whole.tsx'

/** The action that a person takes on a request. */
export type Doing = 'deciding' | 'editing' | 'denying'

/** A form that replaces the buttons. `onAnswer` is called when the server accepts its answer. */
export type FormProps = { ask: Ask; onDone(): void; onAnswer: (() => void) | undefined }

/** For this long after it appears, a button cannot be pressed: the click may have been meant for what was here before. */
const ARM_MS = 400

/** Whether a button has been shown for long enough to be pressed. */
export function useArmed(): boolean {
  const isArmed = useSignal(false)
  useEffect(() => {
    const timer = setTimeout(() => (isArmed.value = true), ARM_MS)
    return () => clearTimeout(timer)
  }, [])
  return isArmed.value
}

type AskActionsProps = {
  ask: Ask
  doing: Signal<Doing>
  /** Whether the whole call has been shown. Until then it cannot be allowed. */
  isSeen: boolean
  onAnswer?: (() => void) | undefined
}

export function AskActions({ ask, doing, isSeen, onAnswer }: AskActionsProps) {
  const isArmed = useArmed()
  const habit = useHabit(ask, onAnswer !== undefined)
  const isBusy = useSignal(false)
  const answer = (given: Reply) => async () => {
    isBusy.value = true
    onAnswer?.()
    await reply(ask, given).catch(tellFailure)
    isBusy.value = false
  }
  const allows = { isOff: !isArmed || isBusy.value || !isSeen }
  return (
    <div class="row actions" data-habit={habit > 0}>
      {!isSeen && isArmed && <NotSeen />}
      <Act letter="a" look="main" {...allows} onPress={answer({ allow: true })}>
        Allow once
      </Act>
      {isOfSession(ask) && (
        <Act letter="s" {...allows} onPress={answer({ allow: true, remember: 'session' })}>
          {habit > 0 ? 'Always allow' : 'Allow'} <Line text={ask.tool_name} /> {habit > 0 ? 'in' : 'for'} this session
        </Act>
      )}
      <Act letter="e" isOff={isBusy.value} onPress={() => (doing.value = 'editing')}>
        Change first …
      </Act>
      <Act letter="d" look="danger" isOff={isBusy.value} onPress={() => (doing.value = 'denying')}>
        Deny …
      </Act>
      {habit > 0 && (
        <p class="small soft suggestion">
          You have allowed <Line text={ask.tool_name} /> {habit} times in this session. Allowed always, it asks no more
          until the session ends, or until you take that back.
        </p>
      )}
    </div>
  )
}

/**
 * How often the person has allowed such calls, or 0 if that is not yet often enough for a suggestion. `isAlone`: no other request is shown, so the
 * records may be read for this one.
 */
function useHabit(ask: Ask, isAlone: boolean): number {
  const habit = useSignal(0)
  useEffect(() => {
    if (isOfSession(ask)) void habitOf(ask, isAlone).then((count) => (habit.value = count))
  }, [])
  return habit.value
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
