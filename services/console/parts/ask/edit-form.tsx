import { type Signal, useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Schema } from '../../../../shared/client/api.ts'
import { showJson } from '../../../../shared/reading/hidden.ts'
import type { Ask } from '../../api/pending.ts'
import { Field } from '../field.tsx'
import { FormButtons } from '../form-buttons.tsx'
import { reply } from './reply.ts'

/** Changes what the call runs with. The server checks the new input against the tool's schema and the policy. */
export function EditForm({ ask, onDone }: { ask: Ask; onDone(): void }) {
  const asked = showJson(ask.input, 2)
  const text = useSignal(asked)
  const problem = useSignal<string | undefined>(undefined)
  const submit = async (event: Event) => {
    event.preventDefault()
    try {
      await reply(ask, { allow: true, input: JSON.parse(text.value) as Schema<'JsonObject'> })
      onDone()
    } catch (cause) {
      problem.value = cause instanceof Error ? cause.message : String(cause)
    }
  }
  return (
    <form
      class="stack close"
      onSubmit={(event) => void submit(event)}
      onKeyDown={({ key }) => key === 'Escape' && onDone()}
    >
      <Field label={`Input of ${ask.tool_name}`} hint="The model is told what has run instead." problem={problem.value}>
        {(id) => <InputField id={id} text={text} isWrong={problem.value !== undefined} />}
      </Field>
      <FormButtons submit="Allow with these changes" isOff={text.value === asked} onBack={onDone} />
    </form>
  )
}

function InputField({ id, text, isWrong }: { id: string; text: Signal<string>; isWrong: boolean }) {
  const field = useRef<HTMLTextAreaElement>(null)
  useLayoutEffect(() => field.current?.focus(), [])
  return (
    <textarea
      id={id}
      ref={field}
      class="input mono"
      rows={Math.min(18, text.value.split('\n').length + 1)}
      spellcheck={false}
      aria-invalid={isWrong}
      value={text.value}
      onInput={({ currentTarget }) => (text.value = currentTarget.value)}
    />
  )
}
