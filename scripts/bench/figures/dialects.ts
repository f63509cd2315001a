import { DIALECTS } from '../dialect.ts'
import type { Figure, Measured } from '../figure.ts'
import { cpuOfRound, STREAMS, TOKENS } from './cpu.ts'

/** CPU time of the product for a stream in each dialect, beside the same stream in its own format. */
export const dialects: Figure[] = Object.entries(DIALECTS).map(([name, dialect]) => ({
  name: `dialect-${name}`,
  title: `CPU per 1,000 text events: ${name} beside native`,
  goal: { atMost: 1.5 },
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
    const each = (ms: number) => `${((1000 * ms) / (rounds * STREAMS * TOKENS)).toFixed(1)} ms`
    const detail = `native ${each(total.native)}, ${name} ${each(total.foreign)}`
    return { value: total.foreign / total.native, detail }
  },
}))
