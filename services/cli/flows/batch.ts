import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentEngine, Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { getBody } from '../connect/transfer.ts'
import { upload } from '../connect/upload.ts'
import { EXIT } from '../exit-codes.ts'
import { abortOnInterrupt } from '../follow/interrupt.ts'
import { dollars } from '../text/figures.ts'
import { plainJson, plainLine } from '../text/plain.ts'

export type BatchOptions = {
  instance: string
  model?: string
  version?: number
  deadline?: number
  key?: string
  detach?: boolean
}

const LOOK_EVERY_MS = 1_000

/** Follows a batch to its end. Ctrl-C leaves it at work. Exit code 1 when an item has not ended well. */
export async function batch(given: BatchOptions & { name: string; file: string }, cli: Cli): Promise<void> {
  const { io, output, exitWith } = cli
  const { name, file, instance, model, version, deadline, key, detach } = given
  const client = await cli.engine()
  const { file_id } = await upload(file, cli)
  const body = {
    ...{ file_id, provider_instance: instance },
    ...(model !== undefined && { model }),
    ...(version !== undefined && { version }),
    ...(deadline !== undefined && { deadline_hours: deadline }),
  }
  const started = await client.raw.post('/flows/{name}/batch', {
    ...{ path: { name }, body },
    ...(key !== undefined && { idempotencyKey: key }),
  })
  const { batch_id: id } = started
  if (detach) return output.out(`${id}\n`)
  const { signal, release } = abortOnInterrupt(io)
  try {
    const { item_counts: counts } = await untilEnded(client, started, { cli, signal })
    await results(id, cli)
    if (counts.ok < counts.total) exitWith(EXIT.failed)
  } catch (cause) {
    if (!signal.aborted) throw cause
    output.err(`the batch goes on: ae flows results ${id}\n`)
    exitWith(EXIT.cancelled)
  } finally {
    release()
  }
}

type Following = { cli: Cli; signal: AbortSignal }

async function untilEnded(
  client: AgentEngine,
  started: Schema<'FlowBatch'>,
  { cli: { output }, signal }: Following,
): Promise<Schema<'FlowBatch'>> {
  let told = ''
  for (let now = started; ; ) {
    const { status, item_counts: counts, usage } = now
    const failed = counts.ended - counts.ok
    const line = `${status}: ${counts.ended} of ${counts.total}${failed > 0 ? `, ${failed} not ok` : ''}, ${dollars(usage.cost_usd)}`
    if (line !== told) output.err(`  ${plainLine(line)}\n`)
    told = line
    if (now.ended_at !== null) return now
    await sleep(LOOK_EVERY_MS, undefined, { signal })
    now = await client.raw.get('/batches/{id}', { path: { id: now.batch_id }, signal })
  }
}

export async function results(id: string, { io, target, output }: Cli): Promise<void> {
  const { signal, release } = abortOnInterrupt(io)
  try {
    const body = await getBody(`/batches/${encodeURIComponent(id)}/results`, signal, { io, target })
    for await (const line of linesOf(body ?? [])) output.out(`${plainJson(JSON.parse(line))}\n`)
  } finally {
    release()
  }
}

/** Other line ends than `\n` may stand within JSON. */
async function* linesOf(body: AsyncIterable<Uint8Array> | Uint8Array[]): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}
