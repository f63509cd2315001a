/** A text as Read shows it, where each line ends with a line feed, and the way back to its characters. */
export class LineFeedView {
  /** The text that is searched. */
  readonly text: string
  readonly #whole: string
  /** Where lines end with CRLF: places of the line feeds in `text`, ascending. */
  readonly #returns: number[] = []
  #nextLineFeed = -1

  /** `hidesReturns` is false for a search that names carriage returns itself: `text` is then the text as it is. */
  constructor(whole: string, hidesReturns: boolean) {
    this.#whole = whole
    this.text = hidesReturns ? whole.replaceAll('\r\n', '\n') : whole
    if (this.text.length === whole.length) return
    for (let at = whole.indexOf('\r\n'); at >= 0; at = whole.indexOf('\r\n', at + 2))
      this.#returns.push(at - this.#returns.length)
  }

  get hidesReturns(): boolean {
    return this.#returns.length > 0
  }

  /** The characters of the whole text between two places of `text`. */
  between(start: number, end: number): string {
    return this.#whole.slice(this.#toWhole(start), this.#toWhole(end))
  }

  /** The line end behind a place of `text`. For the last line, which has none, it is the one of the line before. */
  lineEndAt(place: number): '\n' | '\r\n' {
    const at = this.#toWhole(place)
    if (this.#nextLineFeed < at) this.#nextLineFeed = this.#lineFeedFrom(at)
    const lineFeed = this.#nextLineFeed === this.#whole.length ? this.#whole.lastIndexOf('\n') : this.#nextLineFeed
    return this.#whole[lineFeed - 1] === '\r' ? '\r\n' : '\n'
  }

  #lineFeedFrom(at: number): number {
    const found = this.#whole.indexOf('\n', at)
    return found < 0 ? this.#whole.length : found
  }

  /** A CRLF is one place: the one of its carriage return. */
  #toWhole(place: number): number {
    let [low, high] = [0, this.#returns.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#returns[middle] ?? 0) < place) low = middle + 1
      else high = middle
    }
    return place + low
  }
}
