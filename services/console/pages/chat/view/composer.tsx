import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { caller, canRun } from '../../../api/caller.ts'
import { Icon } from '../../../parts/icon.tsx'
import type { Message } from '../model/conversation.ts'

type ComposerProps = {
  draft: Signal<string>
  isBusy: boolean
  waiting?: number
  onSend(message: Message): void
  onStop?(): void
}

/** Where a message is written. While a run goes on the next message waits behind it. */
export function Composer({ draft, isBusy, waiting = 0, onSend, onStop }: ComposerProps) {
  const isPlanMode = useSignal(false)
  const model = useSignal('')
  const submit = () => {
    const prompt = draft.value.trim()
    if (prompt === '' || !canRun().value) return
    draft.value = ''
    onSend({ prompt, ...(isPlanMode.value && { plan_mode: true }), ...(model.value !== '' && { model: model.value }) })
  }
  return (
    <form class="composer" onSubmit={(event) => (event.preventDefault(), submit())}>
      <PromptField draft={draft} onEnter={submit} />
      <div class="row">
        <Options isPlanMode={isPlanMode} model={model} />
        <span class="grow" />
        {waiting > 0 && <span class="badge">{waiting} waiting</span>}
        {isBusy && (
          <button type="button" class="button" onClick={onStop}>
            <Icon name="stop" /> Stop
          </button>
        )}
        <button type="submit" class="button main" disabled={draft.value.trim() === '' || !canRun().value}>
          <Icon name="send" /> {isBusy ? 'Queue' : 'Send'}
        </button>
      </div>
    </form>
  )
}

const MOST_HEIGHT = 240

function PromptField({ draft, onEnter }: { draft: Signal<string>; onEnter(): void }) {
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    const { current } = field
    if (!current) return
    current.style.height = 'auto'
    current.style.height = `${Math.min(MOST_HEIGHT, current.scrollHeight)}px`
  }, [draft.value])
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    onEnter()
  }
  return (
    <textarea
      ref={field}
      rows={1}
      placeholder="Write a message. Enter sends it, Shift and Enter makes a new line."
      aria-label="Message"
      value={draft.value}
      onInput={({ currentTarget }) => (draft.value = currentTarget.value)}
      onKeyDown={onKeyDown}
    />
  )
}

function Options({ isPlanMode, model }: { isPlanMode: Signal<boolean>; model: Signal<string> }) {
  return (
    <>
      <label class="check small">
        <input
          type="checkbox"
          checked={isPlanMode.value}
          onChange={({ currentTarget }) => (isPlanMode.value = currentTarget.checked)}
        />
        Plan first
      </label>
      <input
        class="input model small"
        aria-label="Model"
        placeholder={caller().value?.model ?? 'model'}
        value={model.value}
        onInput={({ currentTarget }) => (model.value = currentTarget.value.trim())}
      />
    </>
  )
}
