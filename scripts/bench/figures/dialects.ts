import { setTimeout as sleep } from 'node:timers/promises'
import { DIALECTS } from '../dialect.ts'
import type { Figure, Measured } from '../figure.ts'
import { openFlowService } from '../flow-service.ts'
import { MASTER_KEY } from '../master-key.ts'
import { cpuMs } from '../proc.ts'
import { AFTER_MS, cpuOfRound, STREAMS, tokensOf } from './cpu.ts'

const CALLS = 100
const AT_ONCE = 10

/** CPU time of the product for a call of a tool of its MCP server with progress, beside the same run of a flow as a stream. */
const mcp: Figure = {
  name: 'dialect-mcp',
  title: 'CPU per flow run: mcp beside native',
  goal: { atMost: 1.5 },
  unit: 'x',
  async measure(bench): Promise<Measured> {
    await using ours = await bench.startOurs('data-mcp', { MASTER_KEY })
    using service = await openFlowService({ port: ours.port, basePath: '/v1' }, { bench, counts: [0] })
    const cpuOf = async (call: () => Promise<void>) => {
      const before = cpuMs(ours.pid)
      const worker = async () => {
        for (let left = CALLS / AT_ONCE; left > 0; left -= 1) await call()
      }
      await Promise.all(Array.from({ length: AT_ONCE }, worker))
      await sleep(AFTER_MS, undefined, { signal: bench.signal })
      return cpuMs(ours.pid) - before
    }
    const total = { native: 0, foreign: 0 }
    const rounds = bench.pick(8, 4)
    for (let round = -2; round < rounds; round += 1) {
      const [native, foreign] = [await cpuOf(() => service.stream(0)), await cpuOf(() => service.callTool(0))]
      if (round < 0) continue
      total.native += native
      total.foreign += foreign
    }
    const each = (ms: number) => `${(ms / (rounds * CALLS)).toFixed(2)} ms`
    return { value: total.foreign / total.native, detail: `native ${each(total.native)}, mcp ${each(total.foreign)}` }
  },
}

/** CPU time of the product for a stream in each dialect, beside the same stream in its own format. */
const streams: Figure[] = Object.entries(DIALECTS).map(([name, dialect]) => ({
  name: `dialect-${name}`,
  title: `CPU per 1,000 text events: ${name} beside native`,
  goal: { atMost: 1.3 },
  unit: 'x',
  async measure(bench): Promise<Measured> {
    const native = await bench.ours()
    const foreign = { ...native, dialect }
    for (const warm of [native, foreign]) await cpuOfRound(warm, bench)
    const total = { native: 0, foreign: 0 }
    const rounds = bench.pick(4, 2)
    for (let round = 0; round < rounds; round += 1) {
      total.native += await cpuOfRound(native, bench)
      total.foreign += await cpuOfRound(foreign, bench)
    }
    const each = (ms: number) => `${((1000 * ms) / (rounds * STREAMS * tokensOf(bench))).toFixed(1)} ms`
    const detail = `native ${each(total.native)}, ${name} ${each(total.foreign)}`
    return { value: total.foreign / total.native, detail }
  },
}))

export const dialects: Figure[] = [...streams, mcp]
