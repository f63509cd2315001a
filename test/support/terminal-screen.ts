const ESC = '\u001b'
const SEQUENCE = `${ESC}\\[([\\d;?]*)([A-Za-z])`
const PART = new RegExp(`${SEQUENCE}|([\\r\\n])|([^\\p{Cc}])`, 'gu')
const BEGINS_WITH_SEQUENCE = new RegExp(`^${SEQUENCE}`)

/** The screen of a terminal as far as our programs move on it: lines that grow downwards, in which the cursor moves. */
export class TerminalScreen {
  readonly #columns: number
  #lines: string[][] = [[]]
  #row = 0
  #column = 0
  #rest = ''
  /** What is shown again when a program leaves the whole screen. */
  #kept: { lines: string[][]; row: number; column: number } | undefined

  constructor(columns: number) {
    this.#columns = columns
  }

  /** All lines so far, without blanks at their ends. */
  get lines(): string[] {
    return this.#lines.map((line) =>
      Array.from(line, (character) => character ?? ' ')
        .join('')
        .trimEnd(),
    )
  }

  get text(): string {
    return this.lines.join('\n')
  }

  write(text: string): void {
    const whole = this.#rest + text
    const end = whole.lastIndexOf(ESC)
    const isCut = end >= 0 && !BEGINS_WITH_SEQUENCE.test(whole.slice(end))
    this.#rest = isCut ? whole.slice(end) : ''
    for (const [, count = '', command, control, character] of (isCut ? whole.slice(0, end) : whole).matchAll(PART)) {
      if (count === '?1049') this.#switch(command === 'h')
      else if (command !== undefined) this.#move(command, Number(count || (command === 'K' || command === 'J' ? 0 : 1)))
      else if (control === '\r') this.#column = 0
      else if (control === '\n') this.#down()
      else if (character !== undefined) this.#put(character)
    }
  }

  #switch(isWhole: boolean): void {
    const { lines, row, column } = this.#kept ?? { lines: [[]], row: 0, column: 0 }
    this.#kept = isWhole ? { lines: this.#lines, row: this.#row, column: this.#column } : undefined
    this.#lines = isWhole ? [[]] : lines
    this.#row = isWhole ? 0 : row
    this.#column = isWhole ? 0 : column
  }

  #move(command: string, count: number): void {
    if (command === 'A') this.#row = Math.max(0, this.#row - count)
    if (command === 'B') this.#row += count
    if (command === 'C') this.#column += count
    if (command === 'D') this.#column = Math.max(0, this.#column - count)
    if (command === 'G') this.#column = count - 1
    if (command === 'H') this.#row = this.#column = 0
    if (command === 'K' || command === 'J') this.#lines[this.#row]?.splice(this.#column)
    if (command === 'J') this.#lines.splice(this.#row + 1)
  }

  #put(character: string): void {
    if (this.#column >= this.#columns) {
      this.#down()
      this.#column = 0
    }
    const line = this.#lines[this.#row] ?? []
    line[this.#column++] = character
    this.#lines[this.#row] = line
  }

  #down(): void {
    this.#row++
    this.#lines[this.#row] ??= []
  }
}
