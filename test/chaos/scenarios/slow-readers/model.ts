import { startModelServer } from '../../../support/model-server/model-server.ts'
import type { Step } from '../../../support/model-server/script.ts'
import { now } from '../../history.ts'

/**
 * The model server as a process of its own: for `/ticks COUNT MS` it says the time, so often and so far apart; for `/blocks COUNT`
 * so many blocks of 64 KiB as fast as they are read, each in 8 prepared pieces. A block comes twice: its pieces, and it itself.
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

/** Text and thoughts take turns: either ends the block of the other. */
const BLOCKS: readonly Step[] = ['content', 'reasoning_content'].map((name) => {
  const chunk = `data: {"choices":[{"index":0,"delta":{"${name}":"${PIECE}"}}]}\n\n`
  return { raw: chunk.repeat(PIECES) }
})

/** Pieces each of which is made when it is sent. */
function clockReadings(count: number): string[] {
  return new Proxy(Array<string>(count).fill(''), {
    get: (all, key) => (/^\d+$/.test(String(key)) ? `${now()} ` : Reflect.get(all, key)),
  })
}
