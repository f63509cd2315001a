import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { may } from '../../api/caller.ts'
import type { Ask } from '../../api/pending.ts'
import { isChord, isTyping } from '../../base/keys.ts'
import { hrefOf, navigate } from '../../base/router.ts'
import { Line, Lines } from '../foreign.tsx'
import { Icon } from '../icon.tsx'
import { lazy } from '../lazy.tsx'
import { AskActions, type Doing, type FormProps } from './ask-actions.tsx'
import { Deadline } from './deadline.tsx'
import { useSight } from './in-sight.ts'
import { Preview } from './preview.tsx'
import { Whole } from './whole.tsx'
import './ask.css'
import { tellFailure } from '../../base/announce.ts'
import { FormButtons } from '../form-buttons.tsx'
import { ReasonField } from '../reason-field.tsx'
import { reply } from './reply.ts'
import { sendTyped, typedReason } from './typed.ts'

/** It brings the editor. */
const EditForm = lazy(() => import('./edit-form.tsx').then((loaded) => loaded.EditForm))

type AskCardProps = {
  ask: Ask
  /** For a card on the page of requests: after the answer the page goes to the request `next`. */
  page?: AskPage
  /** Becomes true when all of the call was shown. */
  isSeen?: Signal<boolean>
  children?: ComponentChildren
}

/** `hasKeys`: single keys act on this card. */
type AskPage = { hasKeys: boolean; next: string }

/** A tool call that waits for a person. The card never takes the focus, so that typed text cannot allow the call. */
export function AskCard({ ask, page, children, ...given }: AskCardProps) {
  const doing = useSignal<Doing>('deciding')
  const own = useSignal(false)
  const isSeen = given.isSeen ?? own
  const card = useRef<HTMLElement>(null)
  useSight(ask.id, card)
  useKeys(page?.hasKeys ?? false, (key) => onKey(key, card.current, (next) => (doing.value = next)))
  const back = () => (doing.value = 'deciding')
  useReturn(doing.value, card)
  const onAnswer = page && (() => navigate(hrefOf(`/approvals/${page.next}`), { replace: true }))
  // While the person writes an answer, the page stays at this request, even if somebody else decides it.
  useEffect(() => {
    if (page && doing.value !== 'deciding') navigate(hrefOf(`/approvals/${ask.id}`), { replace: true })
  }, [doing.value])
  return (
    <section ref={card} class="ask card" aria-label={`Permission for ${ask.tool_name}`} data-ask={ask.id}>
      <Head ask={ask} />
      <div class="body">
        {children}
        {doing.value === 'editing' ? (
          <EditForm ask={ask} isSeen={isSeen} onDone={back} onAnswer={onAnswer} />
        ) : (
          <Whole isSeen={isSeen}>
            <Preview ask={ask} />
          </Whole>
        )}
        {!may('approve') && <p class="soft small">Your token may not answer: it needs the scope approve.</p>}
        {may('approve') && doing.value === 'denying' && <DenyForm ask={ask} onDone={back} onAnswer={onAnswer} />}
        {may('approve') && doing.value === 'deciding' && (
          <AskActions ask={ask} doing={doing} isSeen={isSeen.value} onAnswer={onAnswer} />
        )}
      </div>
    </section>
  )
}

const Head = ({ ask }: { ask: Ask }) => (
  <header>
    <Icon name="approvals" />
    <strong>
      <Line text={ask.tool_name} />
    </strong>
    <span class="grow cut soft">
      <Lines text={ask.message} />
    </span>
    <Deadline ask={ask} />
  </header>
)

/** A key that follows another key sooner than this is ignored: the person is typing a word, probably meant for another field. */
const WORD_MS = 700

function useKeys(isOn: boolean, handle: (key: string) => boolean): void {
  const lastAt = useRef(Number.NEGATIVE_INFINITY)
  const ledTo = useRef<Element | null>(null)
  useEffect(() => {
    if (!isOn) return
    const onKeyDown = (event: KeyboardEvent) => {
      if (isTyping(event.target) || isChord(event) || event.key.length > 1) return
      const isOfWord = event.repeat || performance.now() - lastAt.current < WORD_MS
      lastAt.current = performance.now()
      if (document.activeElement === ledTo.current) leave(ledTo.current)
      const isTaken = isOfWord ? event.key === ' ' : handle(event.key)
      if (isTaken) event.preventDefault()
      if (isTaken && !isOfWord) ledTo.current = document.activeElement
    }
    addEventListener('keydown', onKeyDown)
    return () => removeEventListener('keydown', onKeyDown)
  })
}

/** When a form is closed without an answer, moves the focus back to the button that opened it. */
function useReturn(doing: Doing, card: RefObject<HTMLElement | null>): void {
  const before = useRef(doing)
  useLayoutEffect(() => {
    const left = before.current
    before.current = doing
    if (doing === 'deciding' && left !== doing)
      card.current?.querySelector<HTMLElement>(`[data-key="${left === 'denying' ? 'd' : 'e'}"]`)?.focus()
  }, [doing])
}

/** Enter presses the button that a shortcut has focused, unless another key was pressed in between. */
function leave(button: Element | null): void {
  if (button instanceof HTMLButtonElement) button.blur()
}

/** `a` and `s` move the focus to a button that allows; Enter then presses it. One key alone never allows. */
function onKey(key: string, card: HTMLElement | null, go: (doing: Doing) => void): boolean {
  const button = card?.querySelector<HTMLButtonElement>(`button[data-key="${CSS.escape(key)}"]`)
  if (!button || button.disabled) return false
  if (key === 'd') go('denying')
  else if (key === 'e') go('editing')
  else button.focus()
  return true
}

/** Denies with a reason, which the model reads. Its field takes the focus: nothing in here allows. */
function DenyForm({ ask, onDone, onAnswer }: FormProps) {
  const reason = typedReason(ask.id)
  const submit = async (event: Event) => {
    event.preventDefault()
    const why = reason.value.trim()
    const answer = { allow: false, ...(why !== '' && { reason: why }) } as const
    if (await sendTyped(reason, '', () => reply(ask, answer)).catch(tellFailure)) onAnswer?.()
    onDone()
  }
  return (
    <form
      class="stack close"
      onSubmit={(event) => void submit(event)}
      onKeyDown={({ key }) => key === 'Escape' && onDone()}
    >
      <ReasonField reason={reason} hint="The model reads it and can try another way. It may stay empty." />
      <FormButtons submit={`Deny ${ask.tool_name}`} look="danger" onBack={onDone} />
    </form>
  )
}
