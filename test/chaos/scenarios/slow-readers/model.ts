import { startModelServer } from '../../../support/model-server/model-server.ts'
import type { Step } from '../../../support/model-server/script.ts'
import { now } from '../../history.ts'

/**
 * A model server. It answers `/ticks COUNT MS` with COUNT timestamps, MS milliseconds apart, and `/blocks COUNT` with COUNT
 * blocks of 64 KiB as fast as they are read, each in 8 prepared pieces. The product sends a block twice: in pieces and whole.
 */
const PIECE = 'x'.repeat(8 * 1024)
const PIECES = 8

const server = await startModelServer({ record: false })
server.otherwise(({ prompt }) => {
  const [, kind, count = 0, everyMs = 0] = /^\/(ticks|blocks) (\d+)(?: (\d+))?$/.exec(prompt) ?? []
  if (kind === 'blocks') return Array.from({ length: Number(count) }, (_, i) => BLOCKS[i % 2] as Step)
  if (kind === 'ticks') return [{ text: clockReadings(Number(count)), everyMs: Number(everyMs) }]
  return 'ok'
})
process.stdout.write(`listening ${server.url}\n`)

/** Text and reasoning alternate, since a change between them ends a block. */
const BLOCKS: readonly Step[] = ['content', 'reasoning_content'].map((name) => {
  const chunk = `data: {"choices":[{"index":0,"delta":{"${name}":"${PIECE}"}}]}\n\n`
  return { raw: chunk.repeat(PIECES) }
})

/** Timestamps that are each computed when they are sent. */
function clockReadings(count: number): string[] {
  return new Proxy(Array<string>(count).fill(''), {
    get: (all, key) => (/^\d+$/.test(String(key)) ? `${now()} ` : Reflect.get(all, key)),
  })
}
