import type { CallOwner } from '../../../agent/providers/batch/pool/store.ts'
import { invalidRequest } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import { itemTraceId } from '../../../kernel/ids.ts'
import { DAY_MS } from '../../../kernel/time.ts'
import type { ApiType } from '../../../platform/api/api-type.ts'
import { MAX_DOCUMENT_BYTES } from '../../../platform/store/document.ts'
import type { Dispatch, FlowDefinition, FlowRef, FlowRunRequest } from '../port.ts'

/** Body of `POST /flows/{name}/batch`, checked; the lines of a file or a body have become `items`. */
export type BatchRequest = Omit<ApiType<'FlowBatchRequest'>, 'file_id' | 'items'> & { items: BatchItem[] }
export type BatchItem = { custom_id?: string; input: JsonObject }

export const BATCH_STATUSES = ['running', 'cancelling', 'done', 'cancelled'] as const
export type BatchStatus = (typeof BATCH_STATUSES)[number]

/** Many inputs of one flow (D55). running -> done, or running -> cancelling -> cancelled; each change is a compare-and-set. */
export type Batch = {
  batch_id: string
  flow: FlowRef
  subject: string
  request: Omit<FlowRunRequest, 'input' | 'version'>
  model: string
  /** Its calls go through the batches of this instance's vendor. */
  vendor_instance: string | null
  status: BatchStatus
  items: number
  chunks: number
  created_at: string
  deadline_at: string
  ended_at: string | null
  expires_at: string
  /** Its request was refused, so no client knows it. */
  is_refused?: true
  /** Set when it has ended; until then its chunks show the progress. */
  progress?: Progress
}

type ItemStatus = ApiType<'BatchItemStatus'>

/** The end of an item: its status and its usage. */
export type ItemEnd = readonly [status: ItemStatus, inputTokens: number, outputTokens: number, costUsd: number]

/** Consecutive items, which one job runs: `first` is the number of the first one. `ends` has `null` for items that have not ended. */
export type Chunk = {
  batch_id: string
  chunk: number
  first: number
  ends: readonly (ItemEnd | null)[]
  /** Set while it waits for a vendor: it need not be checked before this time. */
  look_at_ms?: number
}
export type NewChunk = Chunk & { items: readonly BatchItem[] }

/** A batch is divided among at most this many jobs, each with at least this many items and at most this many characters. */
const CHUNKS = 100
const LEAST_ITEMS = 8
const MOST_CHARS = 1024 * 1024

/** The most bytes of one item that the store accepts. */
const MOST_ITEM_BYTES = MAX_DOCUMENT_BYTES - 1_024

/**
 * Divides the items of a batch. An item that is longer than a chunk gets its own. Throws `invalid_request` for an item
 * that is too long for the store.
 */
export function divide(batch_id: string, items: readonly BatchItem[]): NewChunk[] {
  const most = Math.max(LEAST_ITEMS, Math.ceil(items.length / CHUNKS))
  const chunks: (NewChunk & { items: BatchItem[]; ends: null[] })[] = []
  let chars = 0
  for (const [i, item] of items.entries()) {
    const json = JSON.stringify(item)
    const { length } = json
    if (3 * length > MOST_ITEM_BYTES && Buffer.byteLength(json) > MOST_ITEM_BYTES) throw tooLong(i)
    const last = chunks.at(-1)
    const isFull = !last || last.items.length >= most || chars + length > MOST_CHARS
    chars = isFull ? length : chars + length
    if (isFull) chunks.push({ batch_id, chunk: chunks.length, first: i + 1, ends: [null], items: [item] })
    else {
      last.items.push(item)
      last.ends.push(null)
    }
  }
  return chunks
}

const tooLong = (at: number) =>
  invalidRequest(
    `an item has at most ${MOST_ITEM_BYTES} bytes: shorten this one, or pass a file of its own by its id`,
    {
      ...{ status: 413, param: `/items/${at}` },
    },
  )

/** Until when the answers of vendors and tools are kept: items need them until the deadline, and the API does not show them. */
export const answersUntil = ({ deadline_at }: Pick<Batch, 'deadline_at'>): string =>
  new Date(Date.parse(deadline_at) + DAY_MS).toISOString()

/** The id of the job that runs a chunk. */
export const chunkJobId = (batchId: string, chunk: number): string => `${batchId}-${chunk}`

/** Every other job of this kind is a flow with a deadline. */
export const isChunkJob = (jobId: string): boolean => jobId.startsWith('batch_')

/** A flow that has time until its deadline makes its calls as the only item of a batch with its own id (D58.7). */
const isOneFlow = (batchId: string): boolean => batchId.startsWith('trace_')

/** The id of an item's execution. */
export const executionOf = (batchId: string, item: number): string =>
  isOneFlow(batchId) ? batchId : itemTraceId(batchId, item)

/** The id of the job that waits for answers to these calls; `undefined` for the calls of a run, whose worker waits. */
export function waitingJobOf({ batch_id: id, chunk }: CallOwner): string | undefined {
  if (isOneFlow(id)) return id
  return isChunkJob(id) ? chunkJobId(id, chunk) : undefined
}

/** Whether a flow's calls may go into vendor batches: a wave goes to one instance. The executor checks the tools. */
export const maySendInBatches = ({ sub_agents: agents }: Pick<FlowDefinition, 'sub_agents'>): boolean =>
  agents.every((each) => each.provider_instance === undefined)

export function chunkOfJob(jobId: string): { batchId: string; chunk: number } {
  const at = jobId.lastIndexOf('-')
  return { batchId: jobId.slice(0, at), chunk: Number(jobId.slice(at + 1)) }
}

export const hasEnded = ({ ends }: Pick<Chunk, 'ends'>): boolean => ends.every((end) => end !== null)

/** Merges the known ends; an item ends only once. */
export const joinEnds = (a: Chunk['ends'], b: Chunk['ends']): Chunk['ends'] => a.map((end, i) => end ?? b[i] ?? null)

/** The end of an item from its execution's record. A cancelled item counts as failed. */
export function endOf({ status, error, input_tokens, output_tokens, cost_usd }: Dispatch): ItemEnd {
  const isCancelled = status === 'error' && error?.code === 'cancelled'
  return [isCancelled ? 'cancelled' : (status as ItemStatus), input_tokens, output_tokens, cost_usd]
}

export const NOTHING_USED = [0, 0, 0] as const

type Progress = Pick<ApiType<'FlowBatch'>, 'item_counts' | 'usage'>

/** The progress of a batch. */
export function progressOf(total: number, chunks: readonly Pick<Chunk, 'ends'>[]): Progress {
  const counts = { total, ended: 0, ok: 0, invalid_output: 0, error: 0, rejected: 0, cancelled: 0, expired: 0 }
  const usage = { input_tokens: 0, output_tokens: 0, cost_usd: 0 }
  for (const end of chunks.flatMap(({ ends }) => ends)) {
    if (!end) continue
    const [status, input, output, cost] = end
    counts.ended++
    counts[status]++
    usage.input_tokens += input
    usage.output_tokens += output
    usage.cost_usd += cost
  }
  return { item_counts: counts, usage }
}

export function shownBatch({ flow, request, ...batch }: Batch, progress: Progress): ApiType<'FlowBatch'> {
  const { batch_id, subject, status, model, created_at, deadline_at, ended_at, expires_at } = batch
  const shown = { batch_id, flow: { name: flow.name, version: flow.version }, subject, status, ...progress }
  const { provider_instance } = request
  return { ...shown, provider_instance, model, created_at, deadline_at, ended_at, expires_at }
}
