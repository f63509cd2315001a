import { memo } from '../memo.ts'

/** The problems by the number of their line. */
export type Marks = ReadonlyMap<number, string>

/** `from`: the first line that has its number, by `firstNear`. */
type GutterProps = { from: number; lineCount: number; marks: Marks; onPick(line: number): void }

/** The numbers of the lines, with a mark at each that has a problem. The list of problems says the same to whoever does not see it. */
export const Gutter = ({ from, lineCount, marks, onPick }: GutterProps) => (
  <div class="gutter mono" style={{ '--digits': `${lineCount}`.length }} aria-hidden="true">
    <div class="scrolled">
      <Numbers from={from} to={Math.min(lineCount, from + 3 * SCREEN)} />
      {[...marks].map(([line, message]) => (
        <button
          key={line}
          type="button"
          tabIndex={-1}
          title={message}
          style={{ top: topOf(line) }}
          onClick={() => onPick(line)}
        >
          {line}
        </button>
      ))}
    </div>
  </div>
)

/** More lines than a screen has. */
const SCREEN = 100

/** The line that the numbers begin with, when the one at the top of the screen is the `top`th from 0. */
export const firstNear = (top: number): number => 1 + Math.max(0, Math.floor(top / SCREEN) - 1) * SCREEN

/** The numbers near the screen, as one text: parts that are not laid out would make the text area slow (`text-area.css`). */
const Numbers = memo(({ from, to }: { from: number; to: number }) => (
  <pre style={{ top: `calc(var(--line-height) * ${from - 1})` }}>
    {Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i).join('\n')}
  </pre>
))

/** The bands behind the lines that have a problem. */
export const Bands = ({ marks }: { marks: Marks }) => (
  <div class="bands" aria-hidden="true">
    <div class="scrolled">
      {[...marks.keys()].map((line) => (
        <i key={line} style={{ top: topOf(line) }} />
      ))}
    </div>
  </div>
)

const topOf = (line: number) => `calc(var(--line-height) * ${line - 1} + var(--above))`
