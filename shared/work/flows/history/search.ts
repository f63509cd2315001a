import { encodeCursor } from '../../../kernel/cursor.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { Dispatch, DispatchOutput, DispatchPage, DispatchQuery, DispatchStore } from '../port.ts'
import { dispatchPosition } from '../store/dispatch-documents.ts'

/** `q` is a text in the record, its input or its output; case is ignored. */
export type SearchFilter = RecordFilter & { q?: string | undefined }

type Searched = Pick<DispatchStore, 'list' | 'input' | 'output'>

const PAGE = 200
/** How many records one request reads, and of how many it reads the payloads. */
const MAX_SCANNED = 2_000
const MAX_READ = 200
/** The most characters of these payloads; the last one is always searched to its end. */
const MAX_CHARS = 32_000_000

/**
 * The records of a query that pass the filter, in the order of the store. One request looks at a limited number of records, so that a page may
 * be short, or empty, and still have a `next_cursor`: the search continues there.
 */
export async function searchDispatches(
  dispatches: Searched,
  tenant: TenantId,
  { query, filter }: { query: DispatchQuery; filter: SearchFilter },
): Promise<DispatchPage> {
  const search = new Search(dispatches, tenant, filter)
  const found: Dispatch[] = []
  let { cursor } = query
  while (!search.isOver) {
    const page = await dispatches.list(tenant, { ...query, cursor, limit: PAGE })
    for (const [i, dispatch] of page.dispatches.entries()) {
      if (await search.passes(dispatch)) found.push(dispatch)
      const isLast = page.next_cursor === null && i === page.dispatches.length - 1
      if (isLast) return { dispatches: found, next_cursor: null }
      if (found.length === query.limit || search.isOver)
        return { dispatches: found, next_cursor: encodeCursor(dispatchPosition(dispatch)) }
    }
    if (page.next_cursor === null) break // This page was empty: the loop returns within any other.
    cursor = page.next_cursor
  }
  return { dispatches: found, next_cursor: null }
}

/** Counts what one request reads. */
class Search {
  readonly #dispatches: Searched
  readonly #tenant: TenantId
  readonly #filter: SearchFilter
  #scanned = 0
  #read = 0
  #chars = 0

  constructor(dispatches: Searched, tenant: TenantId, filter: SearchFilter) {
    this.#dispatches = dispatches
    this.#tenant = tenant
    this.#filter = filter
  }

  get isOver(): boolean {
    return this.#scanned >= MAX_SCANNED || this.#read >= MAX_READ || this.#chars >= MAX_CHARS
  }

  async passes(dispatch: Dispatch): Promise<boolean> {
    this.#scanned++
    if (!fits(dispatch, this.#filter)) return false
    const text = this.#filter.q?.toLowerCase()
    return text === undefined || recordHolds(dispatch, text) || this.#payloadsHold(dispatch, text)
  }

  /** Payloads that are not kept are not searched. */
  async #payloadsHold(dispatch: Dispatch, text: string): Promise<boolean> {
    if (!dispatch.keeps_payloads) return false
    this.#read++
    const [input, output] = await Promise.all([
      this.#dispatches.input(this.#tenant, dispatch.trace_id),
      this.#dispatches.output(this.#tenant, dispatch),
    ])
    const { isFound, chars } = searchPayloads({ input, output }, text)
    this.#chars += chars
    return isFound
  }
}

/** Filters without an index in the store. All given ones must match. */
type RecordFilter = {
  model?: string | undefined
  /** The instance that the request named, or the one that answered. */
  instance?: string | undefined
  subject?: string | undefined
  /** The Idempotency-Key. */
  key?: string | undefined
  /** The execution has ended, and took at least this long. */
  minMs?: number | undefined
}

type Payloads = { input: JsonObject | undefined; output: DispatchOutput | undefined }

/** Whether a record passes; `undefined` filters are not given. */
function fits(dispatch: Dispatch, { model, instance, subject, key, minMs }: RecordFilter): boolean {
  const { provider_instance, served_instance, duration_ms } = dispatch
  return (
    (model === undefined || dispatch.model === model) &&
    (instance === undefined || provider_instance === instance || served_instance === instance) &&
    (subject === undefined || dispatch.subject === subject) &&
    (key === undefined || dispatch.idempotency_key === key) &&
    (minMs === undefined || (duration_ms !== null && duration_ms >= minMs))
  )
}

/** Whether the record itself contains a text, which must be in lower case. */
const recordHolds = ({ flow, error }: Dispatch, text: string): boolean =>
  findText([flow.name, error?.message], text).isFound

/** The same for the execution's input and output. */
const searchPayloads = ({ input, output }: Payloads, text: string): TextSearch =>
  findText([input, output?.raw_output, output?.output], text)

/** `chars`: how many characters were searched. */
type TextSearch = { isFound: boolean; chars: number }

/** Searches a text in the strings, numbers and field names of a JSON value, ignoring case. */
function findText(root: unknown, text: string): TextSearch {
  const waiting: unknown[] = [root]
  let chars = 0
  const holds = (part: string) => {
    chars += part.length
    return part.toLowerCase().includes(text)
  }
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (isJsonObject(value) && Object.keys(value).some(holds)) return { isFound: true, chars }
    if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) waiting.push(inner)
    else if (typeof value === 'string' ? holds(value) : isPlain(value) && holds(`${value}`))
      return { isFound: true, chars }
  }
  return { isFound: false, chars }
}

const isPlain = (value: unknown): value is number | boolean => typeof value === 'number' || typeof value === 'boolean'
