import { type Signal, useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { placesIn, type Span } from '../../../../shared/reading/json-places.ts'
import { isHeavy, isLong } from '../../base/long-text.ts'
import { Bands, firstNear, Gutter, type Marks } from './gutter.tsx'
import { useCodeKeys } from './use-code-keys.ts'
import './editor.css'
import { Area } from '../text-area.tsx'

/** `at`: where the text stops being JSON. */
export type Problem = { param: string; message: string; at?: number }

type JsonEditorProps = { label: string; text: Signal<string>; problems: readonly Problem[]; rows?: number }

/** A problem and where it is. */
type Placed = { problem: Problem; span: Span; line: number }

/** An editor for JSON with line numbers. Each problem is marked at its line, and listed. A click on either moves the cursor to the problem. */
export function JsonEditor({ label, text, problems, rows = 24 }: JsonEditorProps) {
  const field = useRef<HTMLTextAreaElement>(null)
  const frame = useRef<HTMLDivElement>(null)
  const caret = useSignal(0)
  const from = useSignal(firstNear(0))
  const placed = useMemo(() => place(text.value, problems), [text.value, problems])
  const marks = marksOf(placed)
  const goTo = ({ span }: Placed) => select(field.current, span)
  return (
    <div class="editor">
      <div class={problems.length > 0 ? 'writing wrong' : 'writing'} ref={frame}>
        <Gutter
          from={from.value}
          lineCount={isHeavy(text.value) ? 1 : lineAt(text.value, text.value.length)}
          marks={marks}
          onPick={(line) =>
            placed
              .filter((each) => each.line === line)
              .slice(0, 1)
              .forEach(goTo)
          }
        />
        <Bands marks={marks} />
        <Field
          {...{ field, label, text, rows }}
          isWrong={problems.length > 0}
          onCaret={(index) => (caret.value = index)}
          onScroll={({ scrollTop }, lineHeight) => {
            frame.current?.style.setProperty('--scrolled', `${-scrollTop}px`)
            from.value = firstNear(scrollTop / lineHeight)
          }}
        />
      </div>
      <Footer text={text.value} caret={caret.value} />
      <Problems placed={placed} onPick={goTo} />
    </div>
  )
}

type FieldProps = Pick<JsonEditorProps, 'label' | 'text' | 'rows'> & {
  field: RefObject<HTMLTextAreaElement | null>
  isWrong: boolean
  onCaret(index: number): void
  onScroll(field: HTMLTextAreaElement, lineHeight: number): void
}

function Field({ field, label, text, rows, isWrong, onCaret, onScroll }: FieldProps) {
  const late = useLate(text)
  const keys = useCodeKeys(field)
  const readCaret = () => onCaret(field.current?.selectionStart ?? 0)
  return (
    <Area
      {...keys}
      field={field}
      class="input mono"
      aria-label={label}
      aria-description={HINT}
      rows={rows}
      spellcheck={false}
      wrap="off"
      aria-invalid={isWrong}
      value={isLong(text.value) ? late.value : text.value}
      onFocus={() => {
        late.value = text.value
        keys.onFocus()
      }}
      onInput={({ currentTarget }) => (late.value = text.value = currentTarget.value)}
      onSelect={readCaret}
      onKeyUp={readCaret}
      onClick={readCaret}
      onScroll={({ currentTarget }) =>
        onScroll(currentTarget, Number.parseFloat(getComputedStyle(currentTarget).lineHeight))
      }
    />
  )
}

/**
 * A long text that was changed elsewhere is shown here after a pause, or when the editor gets the focus. Otherwise each
 * key press elsewhere would wait for the layout of its lines.
 */
const PAUSE_MS = 300

function useLate(text: Signal<string>): Signal<string> {
  const late = useSignal(text.value)
  useEffect(() => {
    const timer = setTimeout(() => (late.value = text.value), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text.value])
  return late
}

const HINT = 'Tab indents; after Esc, Tab leads on'

const Footer = ({ text, caret }: { text: string; caret: number }) => (
  <footer>
    <span class="grow">{HINT}</span>
    <span class="number">
      Line {lineAt(text, caret)}, column {caret - text.lastIndexOf('\n', caret - 1)}
    </span>
  </footer>
)

type ProblemsProps = { placed: readonly Placed[]; onPick(problem: Placed): void }

const Problems = ({ placed, onPick }: ProblemsProps) => (
  <ul class="problems" aria-label="Problems" aria-live="polite">
    {placed.map((each, i) => (
      <li key={i}>
        <button type="button" onClick={() => onPick(each)}>
          <span class="small number">Line {each.line}</span>{' '}
          {each.problem.param !== '' && <code>{each.problem.param}</code>} {each.problem.message}
        </button>
      </li>
    ))}
  </ul>
)

/** A problem without a position belongs to the whole text. */
function place(text: string, problems: readonly Problem[]): Placed[] {
  const whole = { from: 0, to: text.length }
  const placeOf = problems.length > 0 ? placesIn(text) : () => whole
  return problems.map((problem) => {
    const { param, at } = problem
    const span = at === undefined ? (placeOf(param) ?? whole) : { from: at, to: Math.min(text.length, at + 1) }
    return { problem, span, line: lineAt(text, span.from) }
  })
}

/** The line of a character, counted from 1. */
const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length

function marksOf(placed: readonly Placed[]): Marks {
  const lines = Map.groupBy(placed, ({ line }) => line)
  return new Map([...lines].map(([line, all]) => [line, all.map(({ problem }) => problem.message).join('\n')]))
}

function select(field: HTMLTextAreaElement | null, { from, to }: Span): void {
  if (!field) return
  field.focus()
  field.setSelectionRange(from, to)
  // A text area has no way to show a line; its lines are equally high.
  const height = field.scrollHeight / Math.max(1, lineAt(field.value, field.value.length))
  field.scrollTop = Math.max(0, (lineAt(field.value, from) - 5) * height)
}
