import { createWriteStream, existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { getBody } from '../connect/transfer.ts'
import { upload } from '../connect/upload.ts'
import { EXIT, usageError } from '../exit-codes.ts'
import { abortOnInterrupt } from '../io.ts'
import { type ListOptions, printList } from '../list.ts'
import { resolveId } from '../resolve-id.ts'
import { age, dollars } from '../text/figures.ts'
import { plainJson, plainLine } from '../text/plain.ts'

/** `out`: the new file for the results, which go to stdout otherwise. */
export type ResultsOptions = { out?: string }

export type BatchOptions = ResultsOptions & {
  instance: string
  model?: string
  version?: number
  deadline?: number
  key?: string
  detach?: boolean
}

type Batch = Schema<'FlowBatch'>

/** The pauses between two requests for the status of a batch grow, because the server limits requests per minute. */
const LOOK = { firstMs: 1_000, growth: 1.2, mostMs: 10_000 }

/** Runs a flow for each line of a file, and follows the batch to its end; with `detach` it prints the id and exits. */
export async function batch(given: BatchOptions & { name: string; file: string }, cli: Cli): Promise<void> {
  const { name, file, instance, model, version, deadline, key, detach, out } = given
  assertFree(out, cli)
  const client = await cli.engine()
  const { file_id } = await upload(file, cli)
  const body = {
    ...{ file_id, provider_instance: instance },
    ...(model !== undefined && { model }),
    ...(version !== undefined && { version }),
    ...(deadline !== undefined && { deadline_hours: deadline }),
  }
  const { batch_id: id } = await client.raw.post('/flows/{name}/batch', {
    ...{ path: { name }, body },
    ...(key !== undefined && { idempotencyKey: key }),
  })
  if (detach) return cli.output.out(`${id}\n`)
  await followBatch(id, given, cli)
}

/** Follows a batch to its end, and writes its results. After Ctrl-C the batch continues. The exit code is 1 if an item has failed. */
export async function followBatch(id: string, options: ResultsOptions, cli: Cli): Promise<void> {
  const { io, output, exitWith } = cli
  const { signal, release } = abortOnInterrupt(io)
  try {
    const { item_counts: counts } = await untilEnded(id, signal, cli)
    await write(id, options, cli)
    if (counts.ok < counts.total) exitWith(EXIT.failed)
  } catch (cause) {
    if (!signal.aborted) throw cause
    output.err(`the batch goes on: ae attach ${id}\n`)
    exitWith(EXIT.cancelled)
  } finally {
    release()
  }
}

async function untilEnded(id: string, signal: AbortSignal, { engine, output }: Cli): Promise<Batch> {
  const client = await engine()
  let told = ''
  for (let pauseMs = LOOK.firstMs; ; pauseMs = Math.min(LOOK.mostMs, pauseMs * LOOK.growth)) {
    const now = await client.raw.get('/batches/{id}', { path: { id }, signal })
    const line = `${now.status}: ${itemsOf(now)}, ${dollars(now.usage.cost_usd)}`
    if (line !== told) output.err(`  ${plainLine(line)}\n`)
    told = line
    if (now.ended_at !== null) return now
    await sleep(pauseMs, undefined, { signal })
  }
}

function itemsOf({ item_counts: { total, ended, ok } }: Batch): string {
  const failed = ended - ok
  return `${ended} of ${total}${failed > 0 ? `, ${failed} not ok` : ''}`
}

export async function results(text: string, options: ResultsOptions, cli: Cli): Promise<void> {
  assertFree(options.out, cli)
  const { id } = await resolveId(await cli.engine(), text, ['batch'])
  await write(id, options, cli)
}

async function write(id: string, { out }: ResultsOptions, { io, target, output }: Cli): Promise<void> {
  const { signal, release } = abortOnInterrupt(io)
  try {
    const body = await getBody(`/batches/${encodeURIComponent(id)}/results`, signal, { io, target })
    if (out !== undefined) {
      const to = createWriteStream(resolve(io.cwd, out), { flags: 'wx', mode: 0o600 })
      return await pipeline(body ? Readable.fromWeb(body) : [], to, { signal })
    }
    for await (const line of linesOf(body ?? [])) output.out(`${plainJson(JSON.parse(line))}\n`)
  } finally {
    release()
  }
}

/** An existing file is not overwritten. The file is checked before the batch begins, because otherwise its results could not be written. */
function assertFree(out: string | undefined, { io }: Cli): void {
  if (out === undefined || !existsSync(resolve(io.cwd, out))) return
  throw usageError(`${plainLine(out)} is there already`, 'Name a file that is not there yet.')
}

/** Only `\n` ends a line: other line separators may occur within JSON. */
async function* linesOf(body: AsyncIterable<Uint8Array> | Uint8Array[]): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}

type Wanted = ListOptions & { flow?: string; status?: string }

export async function batches({ flow, status, ...options }: Wanted, cli: Cli): Promise<void> {
  const { raw } = await cli.engine()
  const now = Date.now()
  const query = { flow, status, limit: Math.min(options.limit, 100) }
  const { batches: found } = await raw.request<Schema<'FlowBatchList'>>('GET', '/batches', { query })
  printList<Batch>(found, options, cli, {
    id: ({ batch_id: id }) => id,
    nothing: 'there are no such batches',
    columns: [
      { title: 'ID', value: ({ batch_id: id }) => id, isId: true },
      { title: 'FLOW', value: ({ flow: { name } }) => name, canShrink: true },
      { title: 'STATE', value: (each) => each.status },
      { title: 'ITEMS', value: itemsOf },
      { title: 'COST', value: ({ usage }) => dollars(usage.cost_usd), isNumber: true, isMinor: true },
      { title: 'AGO', value: ({ created_at: at }) => age(at, now), isNumber: true },
    ],
  })
}
