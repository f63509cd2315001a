import { type Signal, useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Schema } from '../../../../shared/client/api.ts'
import { showJson } from '../../../../shared/reading/hidden.ts'
import { Field } from '../field.tsx'
import { FormButtons } from '../form-buttons.tsx'
import { Area } from '../text-area.tsx'
import type { FormProps } from './ask-actions.tsx'
import { reply } from './reply.ts'
import { sendTyped, typedInput } from './typed.ts'
import { NotSeen, showsEnd } from './whole.tsx'

type EditFormProps = FormProps & { isSeen: Signal<boolean> }

/** A form that changes the input of the call. The server checks the new input against the tool's schema and the policy. */
export function EditForm({ ask, isSeen, onDone, onAnswer }: EditFormProps) {
  const asked = showJson(ask.input, 2)
  const typed = typedInput(ask.id)
  const text = typed.value ?? asked
  const problem = useSignal<string | undefined>(undefined)
  const submit = async (event: Event) => {
    event.preventDefault()
    try {
      const input = JSON.parse(text) as Schema<'JsonObject'>
      if (await sendTyped(typed, undefined, () => reply(ask, { allow: true, input }))) onAnswer?.()
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
        {(id) => <InputField {...{ id, text, typed, isSeen }} isWrong={problem.value !== undefined} />}
      </Field>
      {!isSeen.value && <NotSeen />}
      <FormButtons submit="Allow with these changes" isOff={!isSeen.value || text === asked} onBack={onDone} />
    </form>
  )
}

type InputFieldProps = {
  id: string
  text: string
  typed: Signal<string | undefined>
  isSeen: Signal<boolean>
  isWrong: boolean
}

function InputField({ id, text, typed, isSeen, isWrong }: InputFieldProps) {
  const field = useRef<HTMLTextAreaElement>(null)
  const look = () => {
    if (field.current && !field.current.readOnly && showsEnd(field.current)) isSeen.value = true
  }
  useLayoutEffect(() => {
    field.current?.focus()
    look()
  }, [])
  return (
    <Area
      id={id}
      field={field}
      class="input mono"
      rows={Math.min(18, text.split('\n').length + 1)}
      spellcheck={false}
      aria-invalid={isWrong}
      value={text}
      onInput={({ currentTarget }) => (typed.value = currentTarget.value)}
      onScroll={look}
    />
  )
}
