import type { ContentPiece } from './chunk.ts'

const OPEN = '<think>'
const CLOSE = '</think>'

/**
 * Finds `<think>…</think>` at the beginning of an answer's text, in which many open models write their thinking. Tags further on
 * are text. White space at the edges of the thinking is dropped.
 */
export class ThinkTags {
  #state: 'start' | 'thinking' | 'text' = 'start'
  /** Whether only white space has followed the last tag so far. */
  #isInGap = false
  #held = ''

  /** Whether no tag can follow, so that the text need not be passed in any more. */
  get isDone(): boolean {
    return this.#state === 'text' && !this.#isInGap
  }

  push(text: string): ContentPiece[] {
    const all = this.#held + text
    this.#held = ''
    if (this.#state === 'start') return this.#start(all)
    return this.#state === 'thinking' ? this.#think(all) : this.#say(all)
  }

  /** The text that was held back because it could have become a tag. */
  flush(): ContentPiece[] {
    const kind = this.#state === 'thinking' ? 'thinking' : 'text'
    const pieces = pieceOf(kind, this.#held)
    this.#held = ''
    return pieces
  }

  #start(text: string): ContentPiece[] {
    const begun = text.trimStart()
    if (begun.startsWith(OPEN)) {
      this.#state = 'thinking'
      this.#isInGap = true
      return this.#think(begun.slice(OPEN.length))
    }
    if (OPEN.startsWith(begun)) {
      this.#held = text
      return []
    }
    this.#state = 'text'
    return pieceOf('text', text)
  }

  #think(text: string): ContentPiece[] {
    const end = text.indexOf(CLOSE)
    if (end >= 0) {
      const thought = this.#leaveGap(text.slice(0, end))
      this.#state = 'text'
      this.#isInGap = true
      return [...pieceOf('thinking', thought), ...this.#say(text.slice(end + CLOSE.length))]
    }
    const cut = text.length - partialTagLength(text)
    this.#held = text.slice(cut)
    return pieceOf('thinking', this.#leaveGap(text.slice(0, cut)))
  }

  #say(text: string): ContentPiece[] {
    return pieceOf('text', this.#leaveGap(text))
  }

  #leaveGap(text: string): string {
    if (!this.#isInGap) return text
    const rest = text.trimStart()
    if (rest !== '') this.#isInGap = false
    return rest
  }
}

/** Length of the end of `text` that may become the closing tag. */
function partialTagLength(text: string): number {
  for (let length = Math.min(CLOSE.length - 1, text.length); length > 0; length--) {
    if (CLOSE.startsWith(text.slice(-length))) return length
  }
  return 0
}

const pieceOf = (kind: ContentPiece['kind'], text: string): ContentPiece[] => (text === '' ? [] : [{ kind, text }])
