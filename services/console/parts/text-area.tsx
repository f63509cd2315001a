import type { Signal } from '@preact/signals'
import type { RefObject, TextareaHTMLAttributes } from 'preact'
import { tell } from '../base/announce.ts'
import { FIELD_LIMIT, isHeavy, isLong } from '../base/long-text.ts'
import { Field } from './field.tsx'
import './text-area.css'

type TextAreaProps = { label: string; value: Signal<string>; hint?: string; rows?: number }

export const TextArea = ({ label, value, hint, rows = 8 }: TextAreaProps) => (
  <Field label={label} hint={hint}>
    {(id) => (
      <Area
        id={id}
        class="input mono"
        rows={rows}
        spellcheck={false}
        value={value.value}
        onInput={({ currentTarget }) => (value.value = currentTarget.value)}
      />
    )}
  </Field>
)

type AreaProps = Omit<TextareaHTMLAttributes, 'value' | 'onInput' | 'ref'> & {
  value: string
  onInput(event: { currentTarget: HTMLTextAreaElement }): void
  field?: RefObject<HTMLTextAreaElement | null>
}

/**
 * The text area of the console. If it cannot show a text, it says so and does not change the text. It refuses input
 * that would make the text impossible to show.
 */
export const Area = ({ value, onInput, field, ...rest }: AreaProps) => (
  <textarea
    {...rest}
    {...(isHeavy(value)
      ? { readOnly: true, value: `This text is too long to be changed here. ${FIELD_LIMIT}` }
      : { value })}
    {...(field && { ref: field })}
    onBeforeInput={refuseHeavy}
    onInput={(event) => {
      layOutBeside(event.currentTarget)
      onInput(event)
    }}
  />
)

function refuseHeavy(event: InputEvent & { currentTarget: HTMLTextAreaElement }): void {
  const { currentTarget, data } = event
  if (data === null || data.length < 2) return
  const { value, selectionStart, selectionEnd } = currentTarget
  if (!isHeavy(value.slice(0, selectionStart) + data.replaceAll(/\r\n?/g, '\n') + value.slice(selectionEnd))) return
  event.preventDefault()
  tell(`This text is too long to be written here. ${FIELD_LIMIT} ae and the API take it.`, 'bad')
}

/** The browser lays out up to this many parts of a text without a delay. */
const MOST_PARTS = 100

/** Makes the browser lay out the whole page at once while it has a long text, if that is fast enough. */
function layOutBeside({ value }: HTMLTextAreaElement): void {
  const laysOutAll = isLong(value) && document.querySelectorAll('.part').length <= MOST_PARTS
  document.body.classList.toggle('has-long-field', laysOutAll)
}
