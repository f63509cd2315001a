import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { frameOf, renderData } from '../../../cluster/journal/frames.ts'
import type { JsonObject, RunEvent } from '../../../kernel/events.ts'
import { frameJson } from '../../../kernel/json.ts'
import { SYSTEM_TENANT, type TenantId } from '../../../kernel/tenant.ts'
import { DAY_MS } from '../../../kernel/time.ts'
import type { CollectionSpec, OwnedDocument, Store, Stored } from '../../../platform/store/port.ts'
import type { CapturedEvent } from './captured-events.ts'
import { type Phase, phasesOf } from './phases.ts'
import type { RunFacts, RunRecord } from './record.ts'

/** One document for each run that has ended, for as long as the tenant keeps its history. The first record of a run is its last. */
export const RUN_RECORDS: CollectionSpec = {
  name: 'run_records',
  key: ['run_id'],
  order: { within: [], by: ['started_at', 'run_id'], direction: 'descending' },
  expiresBy: 'expires_ms',
  hasBody: true,
}

/** The events of a run that has ended, as SSE frames, if they are too long to be part of its record. */
export const RUN_EVENTS: CollectionSpec = { name: 'run_events', key: ['run_id'], expiresBy: 'expires_ms' }

/**
 * The runs that a process had begun and not yet recorded, a few in each document. If the process dies, these runs are lost. The documents belong
 * to no tenant, so that one query finds those of all tenants.
 */
export const OPEN_RUNS: CollectionSpec = {
  name: 'open_runs',
  key: ['id'],
  order: { within: [], by: ['id'], direction: 'ascending' },
  filters: ['owner'],
}

/** A record, and the events of its run without the deltas; `undefined` when the events are not kept. */
export type EndedRun = {
  tenant: TenantId
  record: RunRecord
  events?: readonly CapturedEvent[] | undefined
  /** The length of the events' frames. */
  eventBytes?: number | undefined
  /** The request that started the run. */
  request?: RunRecord['request']
  keptDays: number
}

/** `owner` names the process: its epoch. */
export type OpenRuns = { id: string; owner: string; runs: RunFacts[] }

/** The position of the last record that the reader has received. */
export type RecordPosition = readonly [startedAt: string, runId: string]
export type RecordQuery = {
  after?: RecordPosition | undefined
  /** The earliest start, in ISO 8601. */
  since?: string | undefined
  limit: number
}

/** Every method throws `unavailable` when the store does not answer. */
export interface RunRecordStore {
  /** Stores each record unless its run has one. May be repeated. */
  add(ended: readonly EndedRun[]): Promise<void>
  /** Returns the record with the phases and the request, if they are kept. */
  get(tenant: TenantId, runId: string): Promise<RunRecord | undefined>
  /** Returns records without phases and request, newest first. */
  page(tenant: TenantId, query: RecordQuery): Promise<RunRecord[]>
  /** The frames of a run, without its deltas. */
  frames(tenant: TenantId, runId: string): Promise<string | undefined>

  addOpen(open: OpenRuns): Promise<void>
  deleteOpen(ids: readonly string[]): Promise<void>
  /** The next process, in the order of names, that has stored open runs. */
  nextOwner(after: string | undefined): Promise<string | undefined>
  openOf(owner: string): Promise<OpenRuns[]>
}

/** No run waits for its record, so a record need not survive a power failure. */
const BEHIND = { durability: 'ordered' } as const

const OPEN_PAGE = 100

export function createRunRecordStore(store: Store): RunRecordStore {
  const records = store.collection(RUN_RECORDS)
  const events = store.collection(RUN_EVENTS)
  const open = store.collection(OPEN_RUNS)
  return {
    async add(ended) {
      const long = ended.filter((each) => each.events && !isShort(each))
      await events.insertMissing(await Promise.all(long.map(eventsDocument)), BEHIND)
      // Last, so that a reader who finds the record also finds its events.
      await records.insertMissing(ended.map(recordDocument), BEHIND)
    },
    get: async (tenant, runId) => whole(await records.get(tenant, { run_id: runId })),
    async page(tenant, { after, since, limit }) {
      const until = since === undefined ? undefined : [since]
      const found = await records.page(tenant, { after, until, limit })
      return found.map(shown)
    },
    async frames(tenant, runId) {
      const record = await records.get(tenant, { run_id: runId })
      const { events: short, frames } = record ? besideOf(record) : {}
      if (short) return short.map(renderStored).join('')
      if (frames !== undefined) return frames
      const found = await events.get(tenant, { run_id: runId })
      return found && unpack(found.doc as Packed)
    },
    async addOpen({ id, owner, runs }) {
      await open.insert(SYSTEM_TENANT, { id, owner, runs }, BEHIND)
    },
    async deleteOpen(ids) {
      const keys = ids.map((id) => ({ id }))
      await open.deleteMany(SYSTEM_TENANT, keys, BEHIND)
    },
    nextOwner: (after) => open.nextValue(SYSTEM_TENANT, 'owner', after),
    async openOf(owner) {
      const found = await open.page(SYSTEM_TENANT, { where: { owner }, limit: OPEN_PAGE })
      return found.map(({ doc }) => doc as OpenRuns)
    },
  }
}

const expiryOf = ({ record, keptDays }: Pick<EndedRun, 'record' | 'keptDays'>): number =>
  Date.parse(record.ended_at) + keptDays * DAY_MS

/** Events up to this size are stored in the record, which saves a document. */
const SHORT_BYTES = 2 * 1024
const isShort = ({ eventBytes = 0 }: EndedRun): boolean => eventBytes <= SHORT_BYTES

/**
 * The JSON body of a document, which is not part of the record: the events if they are short, otherwise the phases; and the request. Earlier versions
 * stored both in the document itself, the phases as a text; still earlier ones stored short events as frames.
 */
type Beside = { events?: StoredEvent[]; phases?: Phase[]; frames?: string; request?: RunRecord['request'] }
type Earlier = Omit<Beside, 'phases' | 'request'> & { phases?: string }
type StoredEvent = [seq: number, atMs: number, type: RunEvent['type'], data: JsonObject]

/** Builds the JSON here: copying the fields of a record takes longer than rendering them. */
function recordDocument(ended: EndedRun): OwnedDocument {
  const { tenant, record } = ended
  const { run_id, started_at } = record
  const expires_ms = expiryOf(ended)
  const json = `${JSON.stringify(record).slice(0, -1)},"expires_ms":${expires_ms}}`
  return { tenant, doc: { run_id, started_at, expires_ms }, json, body: bodyOf(ended) }
}

/** Built without parsing: the data of events is JSON already. */
function bodyOf(ended: EndedRun): string | undefined {
  const { events, request } = ended
  if (!events) return undefined
  const beside = request ? `,"request":${JSON.stringify(request)}` : ''
  if (isShort(ended)) return `{"events":[${storedEvents(events)}]${beside}}`
  return `{"phases":${JSON.stringify(phasesOf(events))}${beside}}`
}

/** The JSON of `StoredEvent`s, with commas between them. */
function storedEvents(events: readonly CapturedEvent[]): string {
  let json = ''
  for (const { seq, atMs, event, data = renderData(event) } of events) {
    if (json !== '') json += ','
    json += `[${seq},${atMs},"${event.type}",${data}]`
  }
  return json
}

const readStored = ([seq, atMs, type, data]: StoredEvent): CapturedEvent => {
  return { seq, atMs, event: { ...data, type } as RunEvent }
}

const renderStored = ([seq, , type, data]: StoredEvent): string => frameOf(seq, type, frameJson(data))

function shown({ doc }: Pick<Stored, 'doc'>): RunRecord {
  const { expires_ms: _expires, events: _events, phases: _phases, frames: _frames, ...record } = doc as RecordDoc
  return record
}

type RecordDoc = Omit<RunRecord, keyof Earlier> & Earlier & { expires_ms: number }

function whole(stored: Stored | undefined): RunRecord | undefined {
  if (!stored) return undefined
  const { events, phases = events ? phasesOf(events.map(readStored)) : [], request } = besideOf(stored)
  return { ...shown(stored), ...(phases.length > 0 && { phases }), ...(request && { request }) }
}

function besideOf({ doc, body }: Stored): Beside {
  if (body !== undefined) return JSON.parse(body) as Beside
  const { events, phases, frames } = doc as Earlier
  return {
    ...(events && { events }),
    ...(phases && { phases: JSON.parse(phases) as Phase[] }),
    ...(frames !== undefined && { frames }),
  }
}

/** Frames of a few KiB stay as they are: compressing them takes longer than it saves. */
const PACKED_CHARS = 4 * 1024
const compress = promisify(gzip)
const decompress = promisify(gunzip)

type Packed = { text: string } | { gzip: string }

async function eventsDocument(ended: EndedRun) {
  const { tenant, record, events = [] } = ended
  const text = events.map(({ seq, event, data = renderData(event) }) => frameOf(seq, event.type, data)).join('')
  const packed: Packed = text.length < PACKED_CHARS ? { text } : { gzip: (await compress(text)).toString('base64') }
  return { tenant, doc: { run_id: record.run_id, ...packed, expires_ms: expiryOf(ended) } }
}

async function unpack(packed: Packed): Promise<string> {
  if ('text' in packed) return packed.text
  return (await decompress(Buffer.from(packed.gzip, 'base64'))).toString()
}
