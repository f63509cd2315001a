/** A type as the part names it, with its parameters. */
const TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;.*)?$/

/** The type of a part that names none, or a wrong one. */
const UNKNOWN = 'application/octet-stream'

/**
 * Finds the Content-Type of a form's file in its bytes, with parameters such as the codec of a recording: the parser of the form keeps
 * the bare type only, and calls a file without one `text/plain`.
 */
export class FilePartType {
  readonly #headers: RegExp
  #rest = '\r\n'
  #found: string | undefined

  /** `contentType` is the one of the whole form. */
  constructor(contentType = '') {
    const [, quoted, bare = ''] = /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType) ?? []
    this.#headers = new RegExp(
      `\r\n--${(quoted ?? bare).replaceAll(/\W/g, '\\$&')}[ \t]*\r\n((?:[^\r\n]+\r\n)*)\r\n`,
      'g',
    )
  }

  get value(): string {
    return this.#found ?? UNKNOWN
  }

  push(chunk: Buffer): void {
    if (this.#found !== undefined) return
    this.#rest += chunk.toString('latin1')
    let end = 0
    for (const { 0: whole, 1: headers = '', index } of this.#rest.matchAll(this.#headers)) {
      end = index + whole.length - 2 // The next boundary may follow at once.
      const isFile = /^content-disposition:.*;\s*filename\*?=/im.test(headers)
      const type = /^content-type:[ \t]*(.*?)[ \t]*$/im.exec(headers)?.[1] ?? ''
      if (!isFile && !type.toLowerCase().startsWith(UNKNOWN)) continue
      this.#found = TYPE.test(type) ? type : UNKNOWN
      this.#rest = ''
      return
    }
    this.#rest = this.#rest.slice(end)
  }
}
