import { randomUUID } from 'node:crypto'
import { AppError } from '../../../kernel/errors.ts'
import type { FlowFailure, JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { truncate } from '../../../kernel/text.ts'
import { MAX_DOCUMENT_BYTES } from '../../../platform/store/document.ts'
import type { Collection, Store } from '../../../platform/store/port.ts'
import type { Dispatch, DispatchEnd, DispatchOutput } from '../port.ts'
import {
  DISPATCH_ANSWERS,
  DISPATCH_INPUTS,
  DISPATCH_OUTPUTS,
  isShort,
  type OwnPayloads,
  toOutput,
} from './dispatch-documents.ts'

/** How long an answer is kept for waiting clients when payloads are not kept; as long as an idempotency key (D6.6). */
const ANSWER_MS = 86_400_000

/** Decides which payloads are a part of their record, and stores the others. */
export class DispatchPayloads {
  readonly #inputs: Collection
  readonly #outputs: Collection
  readonly #answers: Collection
  readonly #now: () => Date

  constructor(store: Store, now: () => Date) {
    this.#inputs = store.collection(DISPATCH_INPUTS)
    this.#outputs = store.collection(DISPATCH_OUTPUTS)
    this.#answers = store.collection(DISPATCH_ANSWERS)
    this.#now = now
  }

  /** The input as a part of the new record; `undefined` when it must be stored separately. */
  ownInput(dispatch: Dispatch, input: JsonObject): OwnPayloads | undefined {
    return this.#isOwned(dispatch, input) ? { own_input: input } : undefined
  }

  /**
   * The payloads that are a part of an ended record. If the input is not, the output is stored separately, too, because the gateway that
   * created the record may be of an earlier version.
   */
  ownAtEnd({ dispatch, own_input }: WithPayloads, output: DispatchOutput | undefined): OwnPayloads {
    if (!own_input) return {}
    const kept = output && keptOutput(dispatch, output)
    return {
      ...(dispatch.keeps_payloads && { own_input }),
      ...(kept && this.#isOwned(dispatch, kept) && { own_output: kept }),
    }
  }

  async input(tenant: TenantId, traceId: string): Promise<JsonObject | undefined> {
    const found = await this.#inputs.get(tenant, { trace_id: traceId })
    return found?.doc['input'] as JsonObject | undefined
  }

  async output(tenant: TenantId, dispatch: Dispatch, outputId: string): Promise<DispatchOutput | undefined> {
    const found = await this.#outputsOf(dispatch).get(tenant, { output_id: outputId })
    return found && toOutput(found.doc)
  }

  /** Throws `invalid_request` (413) for one above the store's limit. */
  async keepInput(tenant: TenantId, dispatch: Dispatch, input: JsonObject): Promise<void> {
    const doc = { trace_id: dispatch.trace_id, expires_ms: this.#expiry(dispatch), input }
    try {
      await this.#inputs.insert(tenant, doc, { durability: 'weak' })
    } catch (cause) {
      if (!isTooLong(cause)) throw cause
      throw new AppError('invalid_request', `input is longer than ${MAX_DOCUMENT_BYTES} bytes: send less`, {
        status: 413,
        param: '/input',
      })
    }
  }

  /** Keeps the input of a request that was refused, unless the input is too long: that may be why it was refused. */
  async keepRefusedInput(tenant: TenantId, dispatch: Dispatch, input: JsonObject): Promise<void> {
    await this.keepInput(tenant, dispatch, input).catch((cause: unknown) => {
      if (!isTooLong(cause)) throw cause
    })
  }

  /** Returns its id. */
  async keepOutput(tenant: TenantId, dispatch: Dispatch, output: DispatchOutput): Promise<string> {
    const output_id = randomUUID()
    const doc = { output_id, expires_ms: this.#expiry(dispatch), ...keptOutput(dispatch, output) }
    await this.#outputsOf(dispatch).insert(tenant, doc, { durability: 'ordered' })
    return output_id
  }

  /** Deletes a separately stored input, unless payloads are kept. When that fails, it expires. */
  async dropInput(tenant: TenantId, { dispatch, own_input }: WithPayloads): Promise<void> {
    const { trace_id, keeps_payloads } = dispatch
    if (!keeps_payloads && !own_input) await this.#inputs.delete(tenant, { trace_id }).catch(() => {})
  }

  async dropOutput(tenant: TenantId, dispatch: Dispatch, outputId: string): Promise<void> {
    await this.#outputsOf(dispatch).delete(tenant, { output_id: outputId })
  }

  /** Deletes the separately stored payloads of an ended record. */
  async remove(tenant: TenantId, dispatch: Dispatch): Promise<void> {
    const { trace_id, output_id } = dispatch
    await Promise.all([
      this.#inputs.delete(tenant, { trace_id }),
      output_id !== undefined && this.dropOutput(tenant, dispatch, output_id),
    ])
  }

  /** Whether a payload is stored in its record: if it is short, and kept as long as the record. */
  #isOwned(dispatch: Dispatch, payload: JsonObject | DispatchOutput): boolean {
    return this.#expiry(dispatch) === Date.parse(dispatch.expires_at) && isShort(payload)
  }

  #outputsOf({ keeps_payloads }: Dispatch): Collection {
    return keeps_payloads ? this.#outputs : this.#answers
  }

  #expiry({ keeps_payloads, expires_at }: Dispatch): number {
    const expiresMs = Date.parse(expires_at)
    return keeps_payloads ? expiresMs : Math.min(expiresMs, this.#now().getTime() + ANSWER_MS)
  }
}

type WithPayloads = OwnPayloads & { dispatch: Dispatch }

const keptOutput = ({ keeps_payloads }: Dispatch, output: DispatchOutput): DispatchOutput =>
  keeps_payloads ? output : { ...output, raw_output: '' }

const isTooLong = (cause: unknown) => cause instanceof AppError && cause.status === 413

/** The rest is for the document's other fields and the marks of cut parts. */
const MAX_BYTES = MAX_DOCUMENT_BYTES - 64 * 1024
/** The kept part of a raw output that is too long. A character takes at most 6 bytes of JSON, one outside the BMP 4. */
const CUT_CHARS = 100_000
const CUT = '\n[cut]'
/** How many events are kept: `started` and the first ones after it. */
const CUT_ENTRIES = 20

export type Result = { output: DispatchOutput; result: DispatchEnd }

/**
 * Returns the result unchanged if it fits into one document. Otherwise the raw output is cut, then the timeline. An output that is too long by
 * itself, or nested too deeply to be stored, turns the result into an error.
 */
export function fitResult({ output, result }: Result, maxBytes = MAX_BYTES): Result {
  if (bytesOf(output) <= maxBytes) return { output, result }
  const cut = { ...output, raw_output: truncate(output.raw_output, CUT_CHARS, CUT) }
  if (bytesOf(cut) <= maxBytes) return { output: cut, result }
  const short = { ...cut, timeline: output.timeline.slice(0, CUT_ENTRIES) }
  if (bytesOf(short) <= maxBytes) return { output: short, result }
  return {
    output: { raw_output: cut.raw_output, output: null, timeline: [] },
    result: { ...result, status: 'error', error: tooLong(maxBytes) },
  }
}

const tooLong = (maxBytes: number): FlowFailure => ({
  status: 502,
  type: 'upstream_error',
  message: `the output of the flow cannot be stored: it is longer than ${maxBytes} bytes or nested too deeply; ask the model for less`,
})

/** Infinite for a value that is nested too deeply for `JSON.stringify`. */
function bytesOf(value: unknown): number {
  try {
    return Buffer.byteLength(JSON.stringify(value))
  } catch {
    return Infinity
  }
}
