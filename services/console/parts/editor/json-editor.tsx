import type { Signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { placeOf } from '../../base/json-places.ts'
import './editor.css'

export type Problem = { param: string; message: string }

type JsonEditorProps = { label: string; text: Signal<string>; problems: readonly Problem[]; rows?: number }

/** Writes JSON, beside what is wrong with it. A click on a problem goes to its place. */
export function JsonEditor({ label, text, problems, rows = 24 }: JsonEditorProps) {
  const field = useRef<HTMLTextAreaElement>(null)
  const goTo = (pointer: string) => {
    const place = placeOf(text.value, pointer)
    if (!field.current || !place) return
    field.current.focus()
    field.current.setSelectionRange(place.from, place.to)
    scrollToLine(field.current, text.value.slice(0, place.from).split('\n').length)
  }
  return (
    <div class="editor">
      <textarea
        ref={field}
        class="input mono"
        aria-label={label}
        rows={rows}
        spellcheck={false}
        wrap="off"
        aria-invalid={problems.length > 0}
        value={text.value}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
      />
      <Problems problems={problems} lineOf={(pointer) => lineOf(text.value, pointer)} onPick={goTo} />
    </div>
  )
}

type ProblemsProps = { problems: readonly Problem[]; lineOf(pointer: string): number; onPick(pointer: string): void }

const Problems = ({ problems, lineOf: line, onPick }: ProblemsProps) => (
  <ul class="problems" aria-label="Problems" aria-live="polite">
    {problems.map(({ param, message }, i) => (
      <li key={i}>
        <button type="button" onClick={() => onPick(param)}>
          <span class="small number">Line {line(param)}</span> {param !== '' && <code>{param}</code>} {message}
        </button>
      </li>
    ))}
  </ul>
)

const lineOf = (text: string, pointer: string) => text.slice(0, placeOf(text, pointer)?.from ?? 0).split('\n').length

/** A text area has no way to show a line; its lines are equally high. */
function scrollToLine(field: HTMLTextAreaElement, line: number): void {
  const height = field.scrollHeight / Math.max(1, field.value.split('\n').length)
  field.scrollTop = Math.max(0, (line - 5) * height)
}
