/** The runs that a cursor names: two of the longest pages. They fit into the longest cursor that a request may have. */
const MAX_NAMED = 400
/** The last digits of a run's id, which are random: enough to tell it from the runs that its tenant keeps. */
const DIGITS = 10

/**
 * The runs that were listed before they had a record. A cursor names them, since the record of one that ends between two pages follows on a
 * later page. Of more than it can name, the first are forgotten: their runs may be listed once more.
 */
export class ListedRuns {
  readonly #names: Set<string>

  /** `text` is that of an earlier page. */
  constructor(text: string) {
    const digits = Buffer.from(text, 'base64url').toString('hex')
    this.#names = new Set(digits.match(NAMES))
  }

  add(runId: string): void {
    this.#names.add(nameOf(runId))
  }

  has(runId: string): boolean {
    return this.#names.has(nameOf(runId))
  }

  get text(): string {
    return Buffer.from([...this.#names].slice(-MAX_NAMED).join(''), 'hex').toString('base64url')
  }
}

const NAMES = new RegExp(`.{${DIGITS}}`, 'g')

const nameOf = (runId: string): string => runId.slice(-DIGITS)
