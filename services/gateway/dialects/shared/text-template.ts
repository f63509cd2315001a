import { frameJson } from '../../../../shared/kernel/json.ts'

/** Marks the place of the text in a template. No other value there contains it. */
const MARK = '\u0000text\u0000'

/** Writes JSON values that differ only in one text, as most chunks of a stream do: the rest is serialized once. */
export class TextTemplate {
  #key: string | undefined
  #head = ''
  #tail = ''

  /** Values of the same `key` differ only in their text; `make` makes the value with another text. */
  write(key: string, text: string, make: (text: string) => object): string {
    if (key !== this.#key) {
      this.#key = key
      const [head = '', tail = ''] = frameJson(make(MARK)).split(JSON.stringify(MARK))
      this.#head = `data: ${head}`
      this.#tail = `${tail}\n\n`
    }
    return this.#head + frameJson(text) + this.#tail
  }
}
