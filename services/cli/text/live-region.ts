/** The lines at the bottom of a terminal that are redrawn in place. The cursor is after the last line. */
export class LiveRegion {
  readonly #write: (text: string) => void
  #lines: readonly string[] = []

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0
  }

  /**
   * Shows these lines in place of the present ones, and before them `above`, whole lines that stay. Everything is
   * written at once, and only if something changed.
   */
  update(lines: readonly string[], above = ''): void {
    const isSame = lines.length === this.#lines.length && lines.every((line, i) => line === this.#lines[i])
    if (isSame && above === '') return
    const up = this.#lines.length > 1 ? `\x1b[${this.#lines.length - 1}A` : ''
    const start = this.isEmpty ? '' : `${up}\r`
    const stays = this.isEmpty ? above : above.replaceAll('\n', '\x1b[K\n')
    this.#write(`${start}${stays}${lines.map((line) => `${line}\x1b[K`).join('\n')}${this.isEmpty ? '' : '\x1b[J'}`)
    this.#lines = [...lines]
  }
}
