import { readMarkdown, type Section } from './read-markdown.ts'

/** A block that is longer than this is parsed again only when it has grown by an eighth. */
const READ_ALWAYS = 4_000

/**
 * Parses a growing text: a complete block is parsed once. At the end the whole text is parsed again, because a late
 * link definition may change it.
 */
export class GrowingText {
  readonly #read: (text: string) => readonly Section[]
  #settled: readonly Section[] = []
  /** The text that the settled sections were read from. */
  #before = ''
  #open: { text: string; sections: readonly Section[] } = { text: '', sections: [] }

  constructor(read: (text: string) => readonly Section[] = readMarkdown) {
    this.#read = read
  }

  /** The sections of the text so far. Unchanged sections stay the same objects. */
  sections(text: string): readonly Section[] {
    if (!text.startsWith(this.#before)) [this.#settled, this.#before] = [[], '']
    const open = text.slice(this.#before.length)
    const wanted = open.slice(0, readTo(open.length))
    if (this.#open.text !== wanted) this.#open = { text: wanted, sections: this.#read(wanted) }
    const rest = open.slice(wanted.length)
    const shown = [
      ...this.#settled,
      ...this.#open.sections,
      ...(rest === '' ? [] : [{ start: wanted.length, raw: rest }]),
    ]
    this.#settle(wanted)
    return shown
  }

  /** All blocks except the last are complete. A block that begins in the last line may still become part of the block before it. */
  #settle(open: string): void {
    const { sections } = this.#open
    const line = open.lastIndexOf('\n') + 1
    const last = (sections.at(-1)?.start ?? 0) < line ? sections.length - 1 : sections.length - 2
    const from = sections[last]?.start ?? 0
    if (last < 1 || from === 0) return
    this.#settled = [...this.#settled, ...sections.slice(0, last)]
    this.#before += open.slice(0, from)
    this.#open = { text: '', sections: [] }
  }
}

function readTo(length: number): number {
  if (length <= READ_ALWAYS) return length
  const step = 2 ** (Math.floor(Math.log2(length)) - 3)
  return Math.floor(length / step) * step
}
