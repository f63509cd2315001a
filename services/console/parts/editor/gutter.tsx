import { memo } from '../memo.ts'

/** The problems by the number of their line. */
export type Marks = ReadonlyMap<number, string>

type GutterProps = { lineCount: number; marks: Marks; onPick(line: number): void }

/** The numbers of the lines, with a mark at each that has a problem. The list of problems says the same to whoever does not see it. */
export const Gutter = ({ lineCount, marks, onPick }: GutterProps) => (
  <div class="gutter mono" style={{ '--digits': `${lineCount}`.length }} aria-hidden="true">
    <div class="scrolled">
      <Numbers count={lineCount} />
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

/** One text for all of them: a line more changes one node. */
const Numbers = memo(({ count }: { count: number }) => (
  <pre>{Array.from({ length: count }, (_, i) => i + 1).join('\n')}</pre>
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
