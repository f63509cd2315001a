/** A text in the form that Read shows, where each line ends with a line feed, with a mapping back to the original characters. */
export class LineFeedView {
  /** The text that is searched. */
  readonly text: string
  readonly #whole: string
  /** The places in `text` of the line feeds that are CRLF in the original, ascending. */
  readonly #returns: number[] = []
  #nextLineFeed = -1

  /** `hidesReturns` is false for a search that names carriage returns itself: `text` is then the original text. */
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

  /** The line end after a place of `text`. The last line has no line end; for it the line end of the line before is returned. */
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
