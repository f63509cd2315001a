import { memo } from '../memo.ts'

/** The problems by the number of their line. */
export type Marks = ReadonlyMap<number, string>

/** `from`: the first line that has its number, by `firstNear`. */
type GutterProps = { from: number; lineCount: number; marks: Marks; onPick(line: number): void }

/**
 * The numbers of the lines, with a mark at each that has a problem. The list of problems gives the same information to
 * people who do not see the marks.
 */
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

/** The first line with a number, if line `top` (from 0) is at the top of the screen. */
export const firstNear = (top: number): number => 1 + Math.max(0, Math.floor(top / SCREEN) - 1) * SCREEN

/** The numbers near the screen, as one text: parts that are skipped in the layout would make the text area slow (`text-area.css`). */
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
