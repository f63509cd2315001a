import type { Signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { lineAt, placeOf, type Span } from '../../base/json-places.ts'
import './editor.css'

/** `at`: where the text stops being JSON. */
export type Problem = { param: string; message: string; at?: number }

type JsonEditorProps = { label: string; text: Signal<string>; problems: readonly Problem[]; rows?: number }

/** Writes JSON, beside what is wrong with it. A click on a problem goes to its place. */
export function JsonEditor({ label, text, problems, rows = 24 }: JsonEditorProps) {
  const field = useRef<HTMLTextAreaElement>(null)
  const goTo = (problem: Problem) => {
    const place = spanOf(text.value, problem)
    if (!field.current || !place) return
    field.current.focus()
    field.current.setSelectionRange(place.from, place.to)
    scrollToLine(field.current, lineAt(text.value, place.from))
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
      <Problems
        problems={problems}
        lineOf={(problem) => lineAt(text.value, spanOf(text.value, problem)?.from ?? 0)}
        onPick={goTo}
      />
    </div>
  )
}

type ProblemsProps = { problems: readonly Problem[]; lineOf(problem: Problem): number; onPick(problem: Problem): void }

const Problems = ({ problems, lineOf: line, onPick }: ProblemsProps) => (
  <ul class="problems" aria-label="Problems" aria-live="polite">
    {problems.map((problem, i) => (
      <li key={i}>
        <button type="button" onClick={() => onPick(problem)}>
          <span class="small number">Line {line(problem)}</span> {problem.param !== '' && <code>{problem.param}</code>}{' '}
          {problem.message}
        </button>
      </li>
    ))}
  </ul>
)

const spanOf = (text: string, { param, at }: Problem): Span | undefined =>
  at === undefined ? placeOf(text, param) : { from: at, to: Math.min(text.length, at + 1) }

/** A text area has no way to show a line; its lines are equally high. */
function scrollToLine(field: HTMLTextAreaElement, line: number): void {
  const height = field.scrollHeight / Math.max(1, field.value.split('\n').length)
  field.scrollTop = Math.max(0, (line - 5) * height)
}
